// The generic transforms compiled for AVX2; the compiler vectorises them (vpmuldq for the wide products).
#include "rlwe/ntt.h"

#if defined(__x86_64__)
#include "rlwe/ntt_generic.h"

namespace sphynx::rlwe {
namespace {
#define SPHYNX_AVX2 __attribute__((target("avx2")))

SPHYNX_AVX2 void forward(std::int32_t* values, const NttTable& table) {
    generic::forward(values, table);
}
SPHYNX_AVX2 void inverse(std::int32_t* values, const NttTable& table) {
    generic::inverse(values, table);
}
SPHYNX_AVX2 void multiply_add(const std::int32_t* a, const std::int32_t* b, const Modulus& modulus,
                              std::size_t count, std::int32_t* sum) {
    generic::multiply_add(a, b, modulus, count, sum);
}
SPHYNX_AVX2 void product_sum(const std::int32_t* weights, const std::int32_t* const* ciphertexts,
                             std::size_t offset, std::size_t count, const Modulus& modulus,
                             std::int32_t* out0, std::int32_t* out1) {
    generic::product_sum(weights, ciphertexts, offset, count, modulus, out0, out1);
}

const Kernels kAvx2{"avx2", forward, inverse, multiply_add, product_sum};
}  // namespace

const Kernels& avx2_kernels() {
    return kAvx2;
}

}  // namespace sphynx::rlwe
#endif
