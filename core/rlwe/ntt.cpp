#include "rlwe/ntt.h"

#include <algorithm>
#include <stdexcept>

#include "cpu.h"
#include "rlwe/block_products.h"
#include "rlwe/ntt_generic.h"

namespace sphynx::rlwe {

namespace {
int reverse_bits(int value, int bits) {
    int reversed = 0;
    for (int i = 0; i < bits; ++i) reversed |= ((value >> i) & 1) << (bits - 1 - i);
    return reversed;
}

// See NttTable::short_root.
std::vector<std::int32_t> short_layers_of(const std::vector<std::int32_t>& root) {
    const std::size_t blocks = root.size() / 8;
    std::vector<std::int32_t> ordered;
    ordered.reserve(7 * blocks);
    for (const std::size_t step : {1, 2, 4}) {  // roots of a block
        for (std::size_t first = 0; first < blocks; first += 8) {
            for (std::size_t which = 0; which < step; ++which) {
                for (std::size_t block = first; block < first + 8; ++block)
                    ordered.push_back(root[(blocks + block) * step + which]);
            }
        }
    }
    return ordered;
}

std::int32_t primitive_root(const Modulus& modulus, int order) {
    // x^((p-1)/order) has exact order `order` (a power of two) when its order/2-th power is -1.
    for (std::int64_t x = 2;; ++x) {
        const std::int32_t root = modulus.power(x, static_cast<std::uint64_t>((modulus.p() - 1) / order));
        if (modulus.power(root, static_cast<std::uint64_t>(order / 2)) == modulus.p() - 1) return root;
    }
}
}  // namespace

NttTable::NttTable(std::int32_t prime, int degree) : modulus(prime), n(degree) {
    if (n < kMinDegree || (n & (n - 1)) != 0 || (prime - 1) % (2 * n) != 0) {
        throw std::invalid_argument(
            "an NTT needs a power-of-two degree n >= 64 and a prime that is 1 modulo 2n");
    }
    int log_n = 0;
    while ((1 << log_n) < n) ++log_n;
    const std::int32_t psi = primitive_root(modulus, 2 * n);
    const std::int32_t psi_inverse = modulus.inverse(psi);
    const auto size = static_cast<std::size_t>(n);
    for (auto* table : {&root, &root_quotient, &inverse_root, &inverse_root_quotient}) table->resize(size);
    std::int64_t power = 1, inverse_power = 1;
    for (int i = 0; i < n; ++i) {
        const auto at = static_cast<std::size_t>(reverse_bits(i, log_n));
        const Factor f = modulus.factor(power), g = modulus.factor(inverse_power);
        root[at] = f.value;
        root_quotient[at] = f.quotient;
        inverse_root[at] = g.value;
        inverse_root_quotient[at] = g.quotient;
        power = power * psi % prime;
        inverse_power = inverse_power * psi_inverse % prime;
    }
    short_root = short_layers_of(root);
    short_root_quotient = short_layers_of(root_quotient);
    short_inverse_root = short_layers_of(inverse_root);
    short_inverse_root_quotient = short_layers_of(inverse_root_quotient);
    const std::int32_t scale = modulus.inverse(n);
    n_inverse = modulus.factor(scale);
    n_inverse_root = modulus.factor(static_cast<std::int64_t>(scale) * inverse_root[1]);
}

namespace {
class PortableLanes {
  public:
    static constexpr int kSums = 2;
    using Values = const std::int32_t*;
    struct Sums {
        std::int64_t lane[kBlock];
    };

    explicit PortableLanes(const Modulus& modulus) : modulus_(modulus) {}

    static Values load_values(const std::int32_t* values) { return values; }
    static Sums begin(const std::int32_t* before) {
        Sums sums{};
        if (before != nullptr) std::copy_n(before, kBlock, sums.lane);
        return sums;
    }
    template <int kDistinct>
    static void add(Sums& sums, const std::int32_t* weights, Values values) {
        for (int lane = 0; lane < kBlock; ++lane)
            sums.lane[lane] += std::int64_t{weights[lane * kDistinct / kBlock]} * values[lane];
    }
    void reduce(const Sums& sums, std::int32_t* out) const {
        for (int lane = 0; lane < kBlock; ++lane) out[lane] = modulus_.reduce_wide(sums.lane[lane]);
    }

  private:
    const Modulus& modulus_;
};

const Kernels kPortable{"portable",
                        generic::forward,
                        generic::inverse,
                        generic::multiply_add,
                        product_sums_of<PortableLanes>,
                        generic::add,
                        generic::subtract_multiply,
                        generic::multiply_wide,
                        generic::round};
}  // namespace

const Kernels& portable_kernels() {
    return kPortable;
}

#if defined(__aarch64__)
const Kernels& neon_kernels();  // ntt_neon.cpp
const Kernels& best_kernels() {
    return usable_features().neon ? neon_kernels() : kPortable;
}
#elif defined(__x86_64__)
const Kernels& avx2_kernels();    // ntt_avx2.cpp
const Kernels& avx512_kernels();  // ntt_avx512.cpp
const Kernels& best_kernels() {
    const CpuFeatures& features = usable_features();
    if (!features.avx2) return kPortable;
    return features.avx512 ? avx512_kernels() : avx2_kernels();
}
#else
const Kernels& best_kernels() {
    return kPortable;
}
#endif

}  // namespace sphynx::rlwe
