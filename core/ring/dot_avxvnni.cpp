// VPDPBUSD: 64 products of unsigned limbs with signed weights per instruction, sixteen outputs by up to eight
// columns.
#include "ring/dot.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include <cstring>

namespace sphynx::ring {
namespace {

template <int kColumns>
void tile(const std::int8_t* weights, const Run* runs, std::size_t run_count,
          const std::uint8_t* const* columns, std::int32_t* sums) {
    __m512i sum[kColumns];
    for (auto& s : sum) s = _mm512_setzero_si512();
    for (std::size_t r = 0; r < run_count; ++r) {
        const std::ptrdiff_t end =
            runs[r].offset_bytes + static_cast<std::ptrdiff_t>(runs[r].steps) * kStepBytes;
        for (std::ptrdiff_t at = runs[r].offset_bytes; at < end; at += 4, weights += 64) {
            const __m512i w = _mm512_loadu_si512(weights);
            for (int c = 0; c < kColumns; ++c) {
                std::int32_t x;
                std::memcpy(&x, columns[c] + at, sizeof x);
                sum[c] = _mm512_dpbusd_epi32(sum[c], _mm512_set1_epi32(x), w);
            }
        }
    }
    for (int c = 0; c < kColumns; ++c) _mm512_storeu_si512(sums + c * 16, sum[c]);
}

void any_tile(const std::int8_t* weights, const Run* runs, std::size_t run_count,
              const std::uint8_t* const* columns, int column_count, std::int32_t* sums) {
    switch (column_count) {
        case 1:
            return tile<1>(weights, runs, run_count, columns, sums);
        case 2:
            return tile<2>(weights, runs, run_count, columns, sums);
        case 3:
            return tile<3>(weights, runs, run_count, columns, sums);
        case 4:
            return tile<4>(weights, runs, run_count, columns, sums);
        case 5:
            return tile<5>(weights, runs, run_count, columns, sums);
        case 6:
            return tile<6>(weights, runs, run_count, columns, sums);
        case 7:
            return tile<7>(weights, runs, run_count, columns, sums);
        default:
            return tile<8>(weights, runs, run_count, columns, sums);
    }
}

}  // namespace

extern const DotKernel kVnniKernel;
const DotKernel kVnniKernel{"avx512-vnni", LimbForm::unsigned8, 16, any_tile};

}  // namespace sphynx::ring
#endif
