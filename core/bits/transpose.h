// Bit-matrix transposes and bit-slicing. Bits count from the lowest, in memory order.
//   rows -> blocks   an OT matrix of 128 long rows becomes one 128-bit block per column
//   slice / unslice  ring elements become bit planes and back: plane b, bit j is bit b of element j
// Masked-swap networks (Eklundh) on the 128-bit vectors that both x86-64 and aarch64 always have, or GFNI's matrices;
// constant time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "block.h"

namespace sphynx::bits {

// Words in a plane that holds one bit for each of `count` elements. Unused high bits of the last word are
// zero.
constexpr std::size_t plane_words(std::size_t count) {
    return (count + 63) / 64;
}

// `rows` holds 128 rows of `row_blocks` blocks each; out[j] collects bit j of every row, 128 * row_blocks in
// all.
void transpose_rows_to_blocks(const Block* rows, std::size_t row_blocks, Block* out);
void transpose_vbmi(const Block* rows, std::size_t row_blocks, Block* out);  // the same, for CPUs with vbmi

// bits[b] bit j = bit b of values[64 * word + j], 0 beyond `count`, for b < width <= 64: one word of every plane. The
// rest of `bits` is scratch.
void bits_of_word(const std::uint64_t* values, std::size_t count, std::size_t word, unsigned width,
                  std::uint64_t bits[64]);

// planes[b * plane_words(count) + j / 64] bit j % 64 = bit b of values[j], for b < width <= 64.
void slice_bits(const std::uint64_t* values, std::size_t count, unsigned width, std::uint64_t* planes);

// The inverse; bits from `width` up are zero in `values`.
void unslice_bits(const std::uint64_t* planes, std::size_t count, unsigned width, std::uint64_t* values);

}  // namespace sphynx::bits
