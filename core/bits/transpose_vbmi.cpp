// VBMI and GFNI: eight rows of a bit matrix become eight bytes of columns in one instruction.
#if defined(__x86_64__)
#include <immintrin.h>

#include "bits/transpose.h"

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

// Eight rows of a bit matrix of 128 columns: eight bytes for each column, as a word for each eight columns.
struct Words {
    __m512i low, high;
};

[[gnu::always_inline]] inline Words of_eight_rows(const Block* rows, std::size_t stride) {
    static constexpr Bytes low_columns = column_words(0), high_columns = column_words(8);
    // x = A b with b the identity: of the matrix whose rows are A's bytes, the transpose.
    const __m512i identity = _mm512_set1_epi64(static_cast<long long>(0x8040201008040201));
    const auto row = [=](std::size_t i) __attribute__((always_inline)) {
        return _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows + i * stride));
    };
    const auto four = [&row](std::size_t i) __attribute__((always_inline)) {
        const __m256i low = _mm256_inserti128_si256(_mm256_castsi128_si256(row(i)), row(i + 1), 1);
        const __m256i high = _mm256_inserti128_si256(_mm256_castsi128_si256(row(i + 2)), row(i + 3), 1);
        return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
    };
    const __m512i first = four(0), second = four(4);
    const auto columns = [&](const Bytes& which) __attribute__((always_inline)) {
        return _mm512_gf2p8affine_epi64_epi8(identity,
                                             _mm512_permutex2var_epi8(first, which.vector(), second), 0);
    };
    return {columns(low_columns), columns(high_columns)};
}

// Words (j, i) of eight vectors become (i, j).
[[gnu::always_inline]] inline void transpose_words(const __m512i* in, __m512i (&out)[8]) {
    __m512i pairs[2][4];
    for (int i = 0; i < 4; ++i) {
        pairs[0][i] = _mm512_unpacklo_epi64(in[2 * i], in[2 * i + 1]);
        pairs[1][i] = _mm512_unpackhi_epi64(in[2 * i], in[2 * i + 1]);
    }
    for (int odd = 0; odd < 2; ++odd) {
        const auto& of = pairs[odd];
        const __m512i even_low = _mm512_shuffle_i64x2(of[0], of[1], 0x88),
                      even_high = _mm512_shuffle_i64x2(of[2], of[3], 0x88),
                      odd_low = _mm512_shuffle_i64x2(of[0], of[1], 0xdd),
                      odd_high = _mm512_shuffle_i64x2(of[2], of[3], 0xdd);
        out[odd] = _mm512_shuffle_i64x2(even_low, even_high, 0x88);
        out[2 + odd] = _mm512_shuffle_i64x2(odd_low, odd_high, 0x88);
        out[4 + odd] = _mm512_shuffle_i64x2(even_low, even_high, 0xdd);
        out[6 + odd] = _mm512_shuffle_i64x2(odd_low, odd_high, 0xdd);
    }
}

}  // namespace

void transpose_vbmi(const Block* rows, std::size_t row_blocks, Block* out) {
    static constexpr Bytes low_bytes = bytes_of_words(0), high_bytes = bytes_of_words(4);
    __m512i words[2][16];  // of the lower and of the higher columns, by rows
    for (std::size_t column = 0; column < row_blocks; ++column) {
        for (std::size_t group = 0; group < 16; ++group) {
            const Words found = of_eight_rows(rows + column + 8 * group * row_blocks, row_blocks);
            words[0][group] = found.low;
            words[1][group] = found.high;
        }
        for (const auto& half : words) {
            __m512i low[8], high[8];  // of the lower and of the higher rows, by columns
            transpose_words(half, low);
            transpose_words(half + 8, high);
            for (int i = 0; i < 8; ++i, out += 8) {
                _mm512_storeu_si512(out, _mm512_permutex2var_epi8(low[i], low_bytes.vector(), high[i]));
                _mm512_storeu_si512(out + 4, _mm512_permutex2var_epi8(low[i], high_bytes.vector(), high[i]));
            }
        }
    }
    zeroise(words, sizeof words);
}

}  // namespace sphynx::bits
#endif
