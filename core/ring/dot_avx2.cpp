// VPMADDWD: sixteen 16-bit products per instruction, eight outputs by up to eight columns.
#if defined(__x86_64__)
#include <immintrin.h>

#include <cstring>

#include "ring/dot_tile.h"

namespace sphynx::ring {
namespace {

struct Vpmaddwd {
    static constexpr int kOutputs = 8;
    using Sum = __m256i;

    static Sum zero() { return _mm256_setzero_si256(); }
    static void store(std::int32_t* to, Sum sum) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), sum); }

    template <int kGroups, int kColumns>
    [[gnu::always_inline]] static void add(const std::int8_t* weights, const std::uint8_t* const* columns,
                                           std::ptrdiff_t at, Sum (&sums)[kColumns]) {
        for (int group = 0; group < kGroups; ++group) {
            const Sum w = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(weights + 32 * group));
            unrolled<kColumns>([&](auto c) __attribute__((always_inline)) {
                std::int32_t x;
                std::memcpy(&x, columns[c] + at + 4 * group, sizeof x);
                sums[c] = _mm256_add_epi32(sums[c], _mm256_madd_epi16(_mm256_set1_epi32(x), w));
            });
        }
    }
};

}  // namespace

extern const DotKernel kAvx2Kernel;
const DotKernel kAvx2Kernel{"avx2", LimbForm::signed16, Vpmaddwd::kOutputs, any_tile<Vpmaddwd>};

}  // namespace sphynx::ring
#endif
