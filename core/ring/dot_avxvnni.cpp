// Sixteen outputs by up to eight columns: VPDPBUSD, 64 products of unsigned bytes with signed ones per instruction,
// and VPDPWSSD, 32 products of signed 16-bit numbers.
#if defined(__x86_64__)
#include <immintrin.h>

#include <cstring>

#include "ring/dot_tile.h"

namespace sphynx::ring {
namespace {

using Products = __m512i (*)(__m512i sum, __m512i x, __m512i w);

template <Products kProducts>
struct Vnni {
    static constexpr int kOutputs = 16;
    using Sum = __m512i;

    static Sum zero() { return _mm512_setzero_si512(); }
    static void store(std::int32_t* to, Sum sum) { _mm512_storeu_si512(to, sum); }

    template <int kGroups, int kColumns>
    [[gnu::always_inline]] static void add(const std::int8_t* weights, const std::uint8_t* const* columns,
                                           std::ptrdiff_t at, Sum (&sums)[kColumns]) {
        for (int group = 0; group < kGroups; ++group) {
            const Sum w = _mm512_loadu_si512(weights + 64 * group);
            unrolled<kColumns>([&](auto c) __attribute__((always_inline)) {
                std::int32_t x;
                std::memcpy(&x, columns[c] + at + 4 * group, sizeof x);
                sums[c] = kProducts(sums[c], _mm512_set1_epi32(x), w);
            });
        }
    }
};

[[gnu::always_inline]] inline __m512i bytes(__m512i sum, __m512i x, __m512i w) {
    return _mm512_dpbusd_epi32(sum, x, w);
}
[[gnu::always_inline]] inline __m512i halves(__m512i sum, __m512i x, __m512i w) {
    return _mm512_dpwssd_epi32(sum, x, w);
}

}  // namespace

extern const DotKernel kVnniKernel, kVnni16Kernel;
const DotKernel kVnniKernel{"avx512-vnni", LimbForm::unsigned8, 16, any_tile<Vnni<bytes>>};
const DotKernel kVnni16Kernel{"avx512-vnni-16", LimbForm::signed16, 16, any_tile<Vnni<halves>>};

}  // namespace sphynx::ring
#endif
