// VBMI: the lowest bytes of 64 blocks side by side, whose bits are then taken as masks.
#if defined(__x86_64__)
#include <immintrin.h>

#include "ot/forms.h"

namespace sphynx::ot {
namespace {

struct Bytes {
    alignas(64) std::uint8_t at[64]{};
};

// Byte 8 g + i: the first byte of block i of eight blocks in two vectors.
constexpr Bytes first_bytes() {
    Bytes from;
    for (std::uint8_t i = 0; i < 64; ++i) from.at[i] = static_cast<std::uint8_t>(16 * (i % 8));
    return from;
}

}  // namespace

void low_bit_planes_vbmi(Pads pads, unsigned width, std::size_t stride, std::uint64_t* planes) {
    static constexpr Bytes first = first_bytes();
    const __m512i from = _mm512_load_si512(first.at);
    for (std::size_t word = 0; word < pads.size() / 64; ++word) {
        const Block* block = pads.data() + 64 * word;
        __m512i bytes = _mm512_setzero_si512();
        for (unsigned group = 0; group < 8; ++group, block += 8) {
            const __m512i low = _mm512_loadu_si512(block), high = _mm512_loadu_si512(block + 4);
            const __mmask8 place = static_cast<__mmask8>(1u << group);
            bytes = _mm512_mask_mov_epi64(bytes, place, _mm512_permutex2var_epi8(low, from, high));
        }
        for (unsigned bit = 0; bit < width; ++bit) {
            const __m512i moved = _mm512_sll_epi16(bytes, _mm_cvtsi32_si128(static_cast<int>(7 - bit)));
            planes[bit * stride + word] = _mm512_movepi8_mask(moved);
        }
    }
}

}  // namespace sphynx::ot
#endif
