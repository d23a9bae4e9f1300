// SDOT: sixteen 8-bit products per instruction. Eight outputs (two vectors) by up to eight columns: 16
// accumulators, the columns' 16 bytes stay in registers for the four groups of a step.
#if defined(__aarch64__)
#include <arm_neon.h>

#include "ring/dot_tile.h"

namespace sphynx::ring {
namespace {

struct Sdot {
    static constexpr int kOutputs = 8;
    struct Sum {
        int32x4_t low, high;
    };

    static Sum zero() { return {vdupq_n_s32(0), vdupq_n_s32(0)}; }
    static void store(std::int32_t* to, const Sum& sum) {
        vst1q_s32(to, sum.low);
        vst1q_s32(to + 4, sum.high);
    }

    template <int kGroup, int kColumns>
    [[gnu::always_inline]] static void add_group(const std::int8_t* weights, const int8x16_t (&x)[kColumns],
                                                 Sum (&sums)[kColumns]) {
        const int8x16_t low = vld1q_s8(weights + kGroup * 32), high = vld1q_s8(weights + kGroup * 32 + 16);
        unrolled<kColumns>([&](auto c) __attribute__((always_inline)) {
            sums[c].low = vdotq_laneq_s32(sums[c].low, low, x[c], kGroup);
            sums[c].high = vdotq_laneq_s32(sums[c].high, high, x[c], kGroup);
        });
    }

    template <int kGroups, int kColumns>
    [[gnu::always_inline]] static void add(const std::int8_t* weights, const std::uint8_t* const* columns,
                                           std::ptrdiff_t at, Sum (&sums)[kColumns]) {
        int8x16_t x[kColumns];
        unrolled<kColumns>([&](auto c) __attribute__((always_inline)) {
            x[c] = vreinterpretq_s8_u8(vld1q_u8(columns[c] + at));
        });
        add_group<0>(weights, x, sums);
        if constexpr (kGroups > 1) add_group<1>(weights, x, sums);
        if constexpr (kGroups > 2) add_group<2>(weights, x, sums);
        if constexpr (kGroups > 3) add_group<3>(weights, x, sums);
    }
};

}  // namespace

extern const DotKernel kDotprodKernel;
const DotKernel kDotprodKernel{"dotprod", LimbForm::signed8, Sdot::kOutputs, any_tile<Sdot>};

}  // namespace sphynx::ring
#endif
