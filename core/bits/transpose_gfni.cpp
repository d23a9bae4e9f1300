// GFNI: eight rows of a bit matrix become eight bytes of columns in one instruction.
#if defined(__x86_64__)
#include <immintrin.h>

#include "bits/transpose.h"
#include "unroll.h"

namespace sphynx::bits {
namespace {

struct Bytes {
    alignas(64) std::uint8_t at[64];
    __m512i vector() const { return _mm512_load_si512(at); }
};

// Word c of the result: byte `first` + c of eight rows of 16 bytes, the last row first, as the matrix is read.
constexpr Bytes column_words(std::uint8_t first) {
    Bytes from{};
    for (std::uint8_t i = 0; i < 64; ++i)
        from.at[i] = static_cast<std::uint8_t>(16 * (7 - i % 8) + first + i / 8);
    return from;
}

// Of sixteen words, eight in each operand: byte `first` of them, then the next, four in all.
constexpr Bytes bytes_of_words(std::uint8_t first) {
    Bytes from{};
    for (std::uint8_t i = 0; i < 64; ++i)
        from.at[i] = static_cast<std::uint8_t>(8 * (i % 16) + first + i / 16);
    return from;
}

}  // namespace

void transpose_128x128_gfni(const Block* rows, std::size_t stride, Block* out) {
    static constexpr Bytes low_columns = column_words(0), high_columns = column_words(8);
    static constexpr Bytes low_bytes = bytes_of_words(0), high_bytes = bytes_of_words(4);
    // x = A b with b the identity: of the matrix whose rows are A's bytes, the transpose.
    const __m512i identity = _mm512_set1_epi64(static_cast<long long>(0x8040201008040201));
    alignas(64) std::uint64_t words[16][16];  // [column of bytes][eight rows]
    for (std::size_t group = 0; group < 16; ++group) {
        __m128i row[8];
        for (std::size_t i = 0; i < 8; ++i)
            row[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows + (8 * group + i) * stride));
        const auto joined = [&row](std::size_t first) __attribute__((always_inline)) {
            const __m256i low =
                _mm256_inserti128_si256(_mm256_castsi128_si256(row[first]), row[first + 1], 1);
            const __m256i high =
                _mm256_inserti128_si256(_mm256_castsi128_si256(row[first + 2]), row[first + 3], 1);
            return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
        };
        const __m512i first = joined(0), second = joined(4);
        alignas(64) std::uint64_t made[16];
        const __m512i columns[2] = {_mm512_permutex2var_epi8(first, low_columns.vector(), second),
                                    _mm512_permutex2var_epi8(first, high_columns.vector(), second)};
        for (int half = 0; half < 2; ++half)
            _mm512_store_si512(made + 8 * half, _mm512_gf2p8affine_epi64_epi8(identity, columns[half], 0));
        for (std::size_t column = 0; column < 16; ++column) words[column][group] = made[column];
    }
    for (std::size_t column = 0; column < 16; ++column, out += 8) {
        const __m512i low = _mm512_load_si512(words[column]), high = _mm512_load_si512(words[column] + 8);
        _mm512_storeu_si512(out, _mm512_permutex2var_epi8(low, low_bytes.vector(), high));
        _mm512_storeu_si512(out + 4, _mm512_permutex2var_epi8(low, high_bytes.vector(), high));
    }
    zeroise(words, sizeof words);
}

}  // namespace sphynx::bits
#endif
