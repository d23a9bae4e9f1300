#include "bits/transpose.h"

#include <algorithm>
#include <type_traits>

#include "bits/vector.h"
#include "cpu.h"

namespace sphynx::bits {
namespace {

// Columns whose index has bit log2(distance) clear.
constexpr std::uint64_t low_columns(int distance) {
    return ~std::uint64_t{0} / ((std::uint64_t{1} << distance) + 1);
}

template <int kDistance>
[[gnu::always_inline]] inline void exchange(Vector& low, Vector& high) {
    if constexpr (kDistance == 64) {
        const Vector joined_low = {low[0], high[0]};
        high = Vector{low[1], high[1]};
        low = joined_low;
    } else {
        const Vector mask = {low_columns(kDistance), low_columns(kDistance)};
        const Vector difference = ((low >> kDistance) ^ high) & mask;
        high ^= difference;
        low ^= difference << kDistance;
    }
}

// Three levels of the network on eight rows held in registers: distances 4 d, 2 d, d.
template <int d>
void exchange_eight(Block* rows) {
    Vector v[8];
    for (int i = 0; i < 8; ++i) v[i] = loaded<Vector>(rows + i * d);
    for (int i = 0; i < 4; ++i) exchange<4 * d>(v[i], v[i + 4]);
    for (int i : {0, 1, 4, 5}) exchange<2 * d>(v[i], v[i + 2]);
    for (int i : {0, 2, 4, 6}) exchange<d>(v[i], v[i + 1]);
    for (int i = 0; i < 8; ++i) store(rows + i * d, v[i]);
}

// 64 / size squares side by side.
template <int kSize>
void transpose_squares(std::uint64_t rows[kSize]) {
    // Pairs of rows whose index differs in one bit; neighbours are done alike, which compilers turn into vectors.
    const auto exchange_all = [rows]<int distance>(std::integral_constant<int, distance>) {
        for (int group = 0; group < kSize; group += 2 * distance) {
            for (int i = group; i < group + distance; ++i) {
                const std::uint64_t difference =
                    ((rows[i] >> distance) ^ rows[i + distance]) & low_columns(distance);
                rows[i + distance] ^= difference;
                rows[i] ^= difference << distance;
            }
        }
    };
    if constexpr (kSize == 64) exchange_all(std::integral_constant<int, 32>());
    exchange_all(std::integral_constant<int, 16>());
    exchange_all(std::integral_constant<int, 8>());
    exchange_all(std::integral_constant<int, 4>());
    exchange_all(std::integral_constant<int, 2>());
    exchange_all(std::integral_constant<int, 1>());
}

// The two squares that are enough for values of this width: value i in row i, value 32 + i beside it.
constexpr unsigned kHalf = 32;
constexpr std::uint64_t kLowHalf = 0xffffffff;

// rows[r] bit c  <->  rows[c] bit r
void transpose_128x128(Block rows[128]) {
    for (int i = 0; i < 16; ++i) exchange_eight<16>(rows + i);
    for (int group = 0; group < 128; group += 16) {
        for (int i = 0; i < 2; ++i) exchange_eight<2>(rows + group + i);
    }
    for (int i = 0; i < 128; i += 2) {
        Vector low = loaded<Vector>(rows + i), high = loaded<Vector>(rows + i + 1);
        exchange<1>(low, high);
        store(rows + i, low);
        store(rows + i + 1, high);
    }
}

}  // namespace

void transpose_rows_to_blocks(const Block* rows, std::size_t row_blocks, Block* out) {
#if defined(__x86_64__)
    if (usable_features().vbmi) return transpose_vbmi(rows, row_blocks, out);
#endif
    for (std::size_t column = 0; column < row_blocks; ++column) {
        Block* square = out + 128 * column;
        for (std::size_t row = 0; row < 128; ++row) square[row] = rows[row * row_blocks + column];
        transpose_128x128(square);
    }
}

void bits_of_word(const std::uint64_t* values, std::size_t count, std::size_t word, unsigned width,
                  std::uint64_t bits[64]) {
    const std::size_t held = std::min<std::size_t>(64, count - 64 * word);
    std::copy_n(values + 64 * word, held, bits);
    std::fill(bits + held, bits + 64, 0);
    if (width > kHalf) return transpose_squares<64>(bits);
    for (unsigned i = 0; i < kHalf; ++i) bits[i] = (bits[i] & kLowHalf) | bits[i + kHalf] << kHalf;
    transpose_squares<kHalf>(bits);
}

void slice_bits(const std::uint64_t* values, std::size_t count, unsigned width, std::uint64_t* planes) {
    const std::size_t words = plane_words(count);
    std::uint64_t square[64];
    for (std::size_t word = 0; word < words; ++word) {
        bits_of_word(values, count, word, width, square);
        for (unsigned bit = 0; bit < width; ++bit) planes[bit * words + word] = square[bit];
    }
    zeroise(square, sizeof square);
}

void unslice_bits(const std::uint64_t* planes, std::size_t count, unsigned width, std::uint64_t* values) {
    const std::size_t words = plane_words(count);
    std::uint64_t square[64];
    for (std::size_t word = 0; word < words; ++word) {
        for (unsigned bit = 0; bit < width; ++bit) square[bit] = planes[bit * words + word];
        std::fill(square + width, square + 64, 0);
        if (width > kHalf) {
            transpose_squares<64>(square);
        } else {
            transpose_squares<kHalf>(square);
            for (unsigned i = 0; i < kHalf; ++i)
                square[i + kHalf] = square[i] >> kHalf, square[i] &= kLowHalf;
        }
        std::copy_n(square, std::min<std::size_t>(64, count - 64 * word), values + 64 * word);
    }
    zeroise(square, sizeof square);
}

}  // namespace sphynx::bits
