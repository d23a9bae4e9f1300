// What AVX2 and AVX-512 lanes of BLAKE2s have in common. For kernels' files only: compiled with their flags.
#pragma once

#include <immintrin.h>

#include "crypto/blake2s_lanes.h"

namespace sphynx::crypto {
namespace {

struct EightLanes {
    typedef std::uint32_t V __attribute__((vector_size(32)));
    static constexpr std::size_t kWidth = 8;

    [[gnu::always_inline]] static V all(std::uint32_t number) {
        return (V)_mm256_set1_epi32(static_cast<int>(number));
    }
    // Words 4 i .. 4 i + 3: of blocks j and j + 4 in the halves of row j, then transposed within the halves.
    [[gnu::always_inline]] static void words_of(const std::uint8_t* blocks, V (&words)[16]) {
        for (std::size_t i = 0; i < 4; ++i) {
            __m256i row[4];
            for (std::size_t j = 0; j < 4; ++j) {
                const std::uint8_t* at = blocks + kBlake2sBlockBytes * j + 16 * i;
                const auto *low = reinterpret_cast<const __m128i*>(at),
                           *high = reinterpret_cast<const __m128i*>(at + 4 * kBlake2sBlockBytes);
                row[j] = _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(low)),
                                                 _mm_loadu_si128(high), 1);
            }
            const __m256i a = _mm256_unpacklo_epi32(row[0], row[1]),
                          b = _mm256_unpackhi_epi32(row[0], row[1]),
                          c = _mm256_unpacklo_epi32(row[2], row[3]),
                          d = _mm256_unpackhi_epi32(row[2], row[3]);
            words[4 * i] = (V)_mm256_unpacklo_epi64(a, c);
            words[4 * i + 1] = (V)_mm256_unpackhi_epi64(a, c);
            words[4 * i + 2] = (V)_mm256_unpacklo_epi64(b, d);
            words[4 * i + 3] = (V)_mm256_unpackhi_epi64(b, d);
        }
    }
};

}  // namespace
}  // namespace sphynx::crypto
