// SDOT: sixteen 8-bit products per instruction. Eight outputs (two vectors) by up to eight columns: 16
// accumulators, the columns' 16 bytes stay in registers for the four groups of a step.
#include "ring/dot.h"

#if defined(__aarch64__)
#include <arm_neon.h>

namespace sphynx::ring {
namespace {

template <int kGroup, int kColumns>
inline __attribute__((always_inline)) void group(const std::int8_t* weights, const int8x16_t (&x)[kColumns],
                                                 int32x4_t (&sum)[kColumns][2]) {
    const int8x16_t w0 = vld1q_s8(weights + kGroup * 32), w1 = vld1q_s8(weights + kGroup * 32 + 16);
    for (int c = 0; c < kColumns; ++c) {
        sum[c][0] = vdotq_laneq_s32(sum[c][0], w0, x[c], kGroup);
        sum[c][1] = vdotq_laneq_s32(sum[c][1], w1, x[c], kGroup);
    }
}

template <int kColumns>
void tile(const std::int8_t* weights, const Run* runs, std::size_t run_count,
          const std::uint8_t* const* columns, std::int32_t* sums) {
    int32x4_t sum[kColumns][2];
    for (auto& pair : sum) pair[0] = pair[1] = vdupq_n_s32(0);
    for (std::size_t r = 0; r < run_count; ++r) {
        std::ptrdiff_t at = runs[r].offset_bytes;
        for (int step = 0; step < runs[r].steps; ++step, at += kStepBytes, weights += 8 * kStepBytes) {
            int8x16_t x[kColumns];
            for (int c = 0; c < kColumns; ++c) x[c] = vreinterpretq_s8_u8(vld1q_u8(columns[c] + at));
            group<0>(weights, x, sum);
            group<1>(weights, x, sum);
            group<2>(weights, x, sum);
            group<3>(weights, x, sum);
        }
    }
    for (int c = 0; c < kColumns; ++c) {
        vst1q_s32(sums + c * 8, sum[c][0]);
        vst1q_s32(sums + c * 8 + 4, sum[c][1]);
    }
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

extern const DotKernel kDotprodKernel;
const DotKernel kDotprodKernel{"dotprod", LimbForm::signed8, 8, any_tile};

}  // namespace sphynx::ring
#endif
