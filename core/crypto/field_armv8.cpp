// PMULL of the ARMv8 cryptography extension: three for each product.
#if defined(__aarch64__)
#include <arm_neon.h>

#include "crypto/field_lanes.h"

namespace sphynx::crypto {
namespace {

struct PmullField {
    static uint64x2_t load(const Block& block) { return vld1q_u64(&block.lo); }
    static void store(Block& block, uint64x2_t value) { vst1q_u64(&block.lo, value); }
    static uint64x2_t product(uint64x1_t a, uint64x1_t b) {
        return vreinterpretq_u64_p128(
            vmull_p64(vget_lane_p64(vreinterpret_p64_u64(a), 0), vget_lane_p64(vreinterpret_p64_u64(b), 0)));
    }
    static uint64x2_t high_product(uint64x2_t a, uint64x2_t b) {
        return vreinterpretq_u64_p128(vmull_high_p64(vreinterpretq_p64_u64(a), vreinterpretq_p64_u64(b)));
    }

    struct Factor {
        Factor() = default;
        explicit Factor(Block factor)
            : own(load(factor)), both(veor_u64(vget_low_u64(own), vget_high_u64(own))) {}
        uint64x2_t own;
        uint64x1_t both;
    };
    struct Sum {
        explicit Sum(const OpenSum& open)
            : low(load(open.low)), high(load(open.high)), middle(load(open.middle)) {}
        [[gnu::always_inline]] void add(const Block* row, const Factor& factor) {
            const uint64x2_t a = load(*row);
            const uint64x1_t both = veor_u64(vget_low_u64(a), vld1_u64(&row->hi));
            low = veorq_u64(low, product(vget_low_u64(a), vget_low_u64(factor.own)));
            high = veorq_u64(high, high_product(a, factor.own));
            middle = veorq_u64(middle, product(both, factor.both));
        }
        void store(OpenSum& open) const {
            PmullField::store(open.low, low);
            PmullField::store(open.high, high);
            PmullField::store(open.middle, middle);
        }
        uint64x2_t low, high, middle;
    };
};

}  // namespace

const FieldKernels& pmull_field() {
    static constexpr FieldKernels table = {"pmull", fold_lanes<PmullField>};
    return table;
}

}  // namespace sphynx::crypto
#endif
