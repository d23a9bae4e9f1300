// VPCLMULQDQ on four blocks at once: three for each four products.
#if defined(__x86_64__)
#include <immintrin.h>

#include "crypto/field_lanes.h"

namespace sphynx::crypto {
namespace {

constexpr std::size_t kWidth = 4;

Block sum_of(__m512i blocks) {
    const __m256i two =
        _mm256_xor_si256(_mm512_castsi512_si256(blocks), _mm512_extracti64x4_epi64(blocks, 1));
    const __m128i one = _mm_xor_si128(_mm256_castsi256_si128(two), _mm256_extracti128_si256(two, 1));
    Block sum;
    _mm_storeu_si128(reinterpret_cast<__m128i*>(&sum), one);
    return sum;
}

// Both words of every block hold the sum of its two.
__m512i joined(__m512i blocks) {
    return _mm512_xor_si512(blocks, _mm512_shuffle_epi32(blocks, _MM_PERM_BADC));
}

// Fewer columns than a whole tile has are the narrower path's.
void fold(const Block* rows, std::size_t row_count, std::size_t columns, const Block* factors,
          OpenSum* sums) {
    if (columns != kMostFoldedColumns) return pclmul_field().fold(rows, row_count, columns, factors, sums);
    constexpr std::size_t vectors = kMostFoldedColumns / kWidth;
    __m512i own[vectors], both[vectors];
    for (std::size_t i = 0; i < vectors; ++i) {
        own[i] = _mm512_loadu_si512(factors + kWidth * i);
        both[i] = joined(own[i]);
    }
    for (std::size_t b = 0; b < row_count; ++b, rows += kMostFoldedColumns) {
        __m512i low = _mm512_setzero_si512(), high = low, middle = low;
        for (std::size_t i = 0; i < vectors; ++i) {
            const __m512i a = _mm512_loadu_si512(rows + kWidth * i);
            low = _mm512_xor_si512(low, _mm512_clmulepi64_epi128(a, own[i], 0x00));
            high = _mm512_xor_si512(high, _mm512_clmulepi64_epi128(a, own[i], 0x11));
            middle = _mm512_xor_si512(middle, _mm512_clmulepi64_epi128(joined(a), both[i], 0x00));
        }
        sums[b] ^= {sum_of(low), sum_of(high), sum_of(middle)};
    }
}

}  // namespace

const FieldKernels& vpclmul_field() {
    static constexpr FieldKernels table = {"vpclmul", fold};
    return table;
}

}  // namespace sphynx::crypto
#endif
