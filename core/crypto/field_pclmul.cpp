// PCLMULQDQ: four for each product, no reduction in between.
#if defined(__x86_64__)
#include <immintrin.h>

#include "crypto/field_lanes.h"

namespace sphynx {
namespace {

struct PclmulField {
    struct Factor {
        Factor() = default;
        explicit Factor(Block factor) : own(_mm_loadu_si128(reinterpret_cast<const __m128i*>(&factor))) {}
        __m128i own;
    };
    struct Sum {
        __m128i low = _mm_setzero_si128(), middle = low, high = low;
        [[gnu::always_inline]] void add(const Block* row, const Factor& factor) {
            const __m128i a = _mm_loadu_si128(reinterpret_cast<const __m128i*>(row));
            low = _mm_xor_si128(low, _mm_clmulepi64_si128(a, factor.own, 0x00));
            high = _mm_xor_si128(high, _mm_clmulepi64_si128(a, factor.own, 0x11));
            middle = _mm_xor_si128(middle, _mm_xor_si128(_mm_clmulepi64_si128(a, factor.own, 0x01),
                                                         _mm_clmulepi64_si128(a, factor.own, 0x10)));
        }
        std::array<std::uint64_t, 4> words() const {
            alignas(16) std::uint64_t l[2], m[2], h[2];
            _mm_store_si128(reinterpret_cast<__m128i*>(l), low);
            _mm_store_si128(reinterpret_cast<__m128i*>(m), middle);
            _mm_store_si128(reinterpret_cast<__m128i*>(h), high);
            return {l[0], l[1] ^ m[0], h[0] ^ m[1], h[1]};
        }
    };
};

}  // namespace

const FieldKernels& pclmul_field() {
    static constexpr FieldKernels table = {"pclmul", fold_lanes<PclmulField>};
    return table;
}

}  // namespace sphynx
#endif
