// All eight leaves in vectors of 256 bits, with rotations and the 32 registers of AVX-512.
#if defined(__x86_64__)
#include "crypto/blake2s_x86.h"

namespace sphynx::crypto {
namespace {

struct Avx512Lanes : EightLanes {
    template <int n>
    [[gnu::always_inline]] static V rotated(V x) {
        return (V)_mm256_ror_epi32((__m256i)x, n);
    }
};

}  // namespace

const Blake2spKernels& avx512_blake2sp() {
    static constexpr Blake2spKernels table = {"avx512", absorb_stripes<Avx512Lanes>};
    return table;
}

}  // namespace sphynx::crypto
#endif
