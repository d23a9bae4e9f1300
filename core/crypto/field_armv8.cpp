// PMULL of the ARMv8 cryptography extension: four for each product, no reduction in between.
#if defined(__aarch64__)
#include <arm_neon.h>

#include "crypto/field_lanes.h"

namespace sphynx {
namespace {

struct PmullField {
    static uint64x2_t product(uint64x2_t a, uint64x2_t b) {
        return vreinterpretq_u64_p128(vmull_p64(vgetq_lane_p64(vreinterpretq_p64_u64(a), 0),
                                                vgetq_lane_p64(vreinterpretq_p64_u64(b), 0)));
    }
    static uint64x2_t high_product(uint64x2_t a, uint64x2_t b) {
        return vreinterpretq_u64_p128(vmull_high_p64(vreinterpretq_p64_u64(a), vreinterpretq_p64_u64(b)));
    }

    struct Factor {
        Factor() = default;
        explicit Factor(Block factor) : own(vld1q_u64(&factor.lo)), swapped(vextq_u64(own, own, 1)) {}
        uint64x2_t own, swapped;
    };
    struct Sum {
        uint64x2_t low = vdupq_n_u64(0), middle = low, high = low;
        [[gnu::always_inline]] void add(const Block* row, const Factor& factor) {
            const uint64x2_t a = vld1q_u64(reinterpret_cast<const std::uint64_t*>(row));
            low = veorq_u64(low, product(a, factor.own));
            high = veorq_u64(high, high_product(a, factor.own));
            middle =
                veorq_u64(middle, veorq_u64(product(a, factor.swapped), high_product(a, factor.swapped)));
        }
        std::array<std::uint64_t, 4> words() const {
            return {vgetq_lane_u64(low, 0), vgetq_lane_u64(low, 1) ^ vgetq_lane_u64(middle, 0),
                    vgetq_lane_u64(high, 0) ^ vgetq_lane_u64(middle, 1), vgetq_lane_u64(high, 1)};
        }
    };
};

}  // namespace

const FieldKernels& pmull_field() {
    static constexpr FieldKernels table = {"pmull", fold_lanes<PmullField>};
    return table;
}

}  // namespace sphynx
#endif
