// VPDPBUSD: 64 products of unsigned limbs with signed weights per instruction, sixteen outputs by up to eight
// columns.
#if defined(__x86_64__)
#include <immintrin.h>

#include <cstring>

#include "ring/dot_tile.h"

namespace sphynx::ring {
namespace {

struct Vpdpbusd {
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
                sums[c] = _mm512_dpbusd_epi32(sums[c], _mm512_set1_epi32(x), w);
            });
        }
    }
};

}  // namespace

extern const DotKernel kVnniKernel;
const DotKernel kVnniKernel{"avx512-vnni", LimbForm::unsigned8, Vpdpbusd::kOutputs, any_tile<Vpdpbusd>};

}  // namespace sphynx::ring
#endif
