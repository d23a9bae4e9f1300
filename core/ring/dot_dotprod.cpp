// SDOT: sixteen 8-bit products per instruction. Eight outputs (two vectors) by up to eight columns: 16
// accumulators, the weights of a step (8 vectors) stay in registers for all columns.
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

    template <int kGroups, int kColumns>
    [[gnu::always_inline]] static void add(const std::int8_t* weights, const std::uint8_t* const* columns,
                                           std::ptrdiff_t at, Sum (&sums)[kColumns]) {
        int8x16_t low[kGroups], high[kGroups];
        unrolled<kGroups>([&](auto group) __attribute__((always_inline)) {
            low[group] = vld1q_s8(weights + group * 32);
            high[group] = vld1q_s8(weights + group * 32 + 16);
        });
        unrolled<kColumns>([&](auto c) __attribute__((always_inline)) {
            const int8x16_t x = vreinterpretq_s8_u8(vld1q_u8(columns[c] + at));
            unrolled<kGroups>([&](auto group) __attribute__((always_inline)) {
                sums[c].low = vdotq_laneq_s32(sums[c].low, low[group], x, group);
                sums[c].high = vdotq_laneq_s32(sums[c].high, high[group], x, group);
            });
        });
    }
};

}  // namespace

extern const DotKernel kDotprodKernel;
const DotKernel kDotprodKernel{"dotprod", LimbForm::signed8, Sdot::kOutputs, any_tile<Sdot>};

}  // namespace sphynx::ring
#endif
