// PCLMULQDQ: three for each product.
#if defined(__x86_64__)
#include <immintrin.h>

#include "crypto/field_lanes.h"

namespace sphynx::crypto {
namespace {

struct PclmulField {
    static __m128i load(const Block& block) {
        return _mm_loadu_si128(reinterpret_cast<const __m128i*>(&block));
    }
    static void store(Block& block, __m128i value) {
        _mm_storeu_si128(reinterpret_cast<__m128i*>(&block), value);
    }

    struct Factor {
        Factor() = default;
        explicit Factor(Block factor)
            : own(load(factor)), both(_mm_cvtsi64_si128(static_cast<long long>(factor.lo ^ factor.hi))) {}
        __m128i own, both;
    };
    struct Sum {
        explicit Sum(const OpenSum& open)
            : low(load(open.low)), high(load(open.high)), middle(load(open.middle)) {}
        [[gnu::always_inline]] void add(const Block* row, const Factor& factor) {
            const __m128i a = load(*row);
            // The high word comes from memory: the unit that shuffles is the one that multiplies.
            const __m128i upper = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(&row->hi));
            low = _mm_xor_si128(low, _mm_clmulepi64_si128(a, factor.own, 0x00));
            high = _mm_xor_si128(high, _mm_clmulepi64_si128(a, factor.own, 0x11));
            middle = _mm_xor_si128(middle, _mm_clmulepi64_si128(_mm_xor_si128(a, upper), factor.both, 0x00));
        }
        void store(OpenSum& open) const {
            PclmulField::store(open.low, low);
            PclmulField::store(open.high, high);
            PclmulField::store(open.middle, middle);
        }
        __m128i low, high, middle;
    };
};

}  // namespace

const FieldKernels& pclmul_field() {
    static constexpr FieldKernels table = {"pclmul", fold_lanes<PclmulField>};
    return table;
}

}  // namespace sphynx::crypto
#endif
