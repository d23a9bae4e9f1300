// VPMADDWD: sixteen 16-bit products per instruction, eight outputs by up to eight columns.
#include "ring/dot.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include <cstring>

namespace sphynx::ring {
namespace {

template <int kColumns>
void tile(const std::int8_t* weights, const Run* runs, std::size_t run_count,
          const std::uint8_t* const* columns, std::int32_t* sums) {
    __m256i sum[kColumns];
    for (auto& s : sum) s = _mm256_setzero_si256();
    for (std::size_t r = 0; r < run_count; ++r) {
        const std::ptrdiff_t end =
            runs[r].offset_bytes + static_cast<std::ptrdiff_t>(runs[r].steps) * kStepBytes;
        for (std::ptrdiff_t at = runs[r].offset_bytes; at < end; at += 4, weights += 32) {
            const __m256i w = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(weights));
            for (int c = 0; c < kColumns; ++c) {
                std::int32_t x;
                std::memcpy(&x, columns[c] + at, sizeof x);
                sum[c] = _mm256_add_epi32(sum[c], _mm256_madd_epi16(_mm256_set1_epi32(x), w));
            }
        }
    }
    for (int c = 0; c < kColumns; ++c) _mm256_storeu_si256(reinterpret_cast<__m256i*>(sums + c * 8), sum[c]);
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

extern const DotKernel kAvx2Kernel;
const DotKernel kAvx2Kernel{"avx2", LimbForm::signed16, 8, any_tile};

}  // namespace sphynx::ring
#endif
