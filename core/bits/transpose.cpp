#include "bits/transpose.h"

#include <algorithm>
#include <cstring>

namespace sphynx {
namespace {

typedef std::uint64_t Vector __attribute__((vector_size(16)));

Vector load(const Block* from) {
    Vector value;
    std::memcpy(&value, from, sizeof value);
    return value;
}
void store(Block* to, Vector value) {
    std::memcpy(to, &value, sizeof value);
}

// Columns whose index has bit log2(distance) clear.
constexpr std::uint64_t low_columns(int distance) {
    return ~std::uint64_t{0} / ((std::uint64_t{1} << distance) + 1);
}

template <int distance>
[[gnu::always_inline]] inline void exchange(Vector& low, Vector& high) {
    if constexpr (distance == 64) {
        const Vector joined_low = {low[0], high[0]};
        high = Vector{low[1], high[1]};
        low = joined_low;
    } else {
        const Vector mask = {low_columns(distance), low_columns(distance)};
        const Vector difference = ((low >> distance) ^ high) & mask;
        high ^= difference;
        low ^= difference << distance;
    }
}

// Three levels of the network on eight rows held in registers: distances 4 d, 2 d, d.
template <int d>
void exchange_eight(Block* rows) {
    Vector v[8];
    for (int i = 0; i < 8; ++i) v[i] = load(rows + i * d);
    for (int i = 0; i < 4; ++i) exchange<4 * d>(v[i], v[i + 4]);
    for (int i : {0, 1, 4, 5}) exchange<2 * d>(v[i], v[i + 2]);
    for (int i : {0, 2, 4, 6}) exchange<d>(v[i], v[i + 1]);
    for (int i = 0; i < 8; ++i) store(rows + i * d, v[i]);
}

}  // namespace

void transpose_128x128(Block rows[128]) {
    for (int i = 0; i < 16; ++i) exchange_eight<16>(rows + i);
    for (int group = 0; group < 128; group += 16) {
        for (int i = 0; i < 2; ++i) exchange_eight<2>(rows + group + i);
    }
    for (int i = 0; i < 128; i += 2) {
        Vector low = load(rows + i), high = load(rows + i + 1);
        exchange<1>(low, high);
        store(rows + i, low);
        store(rows + i + 1, high);
    }
}

void transpose_64x64(std::uint64_t rows[64]) {
    for (int distance = 32; distance > 0; distance >>= 1) {
        const std::uint64_t mask = low_columns(distance);
        for (int i = 0; i < 64; i = (i + distance + 1) & ~distance) {
            const std::uint64_t difference = ((rows[i] >> distance) ^ rows[i + distance]) & mask;
            rows[i + distance] ^= difference;
            rows[i] ^= difference << distance;
        }
    }
}

void transpose_rows_to_blocks(const Block* rows, std::size_t row_blocks, Block* out) {
    for (std::size_t column = 0; column < row_blocks; ++column) {
        Block* square = out + 128 * column;
        for (std::size_t row = 0; row < 128; ++row) square[row] = rows[row * row_blocks + column];
        transpose_128x128(square);
    }
}

void slice_bits(const std::uint64_t* values, std::size_t count, unsigned width, std::uint64_t* planes) {
    const std::size_t words = plane_words(count);
    for (std::size_t word = 0; word < words; ++word) {
        std::uint64_t square[64] = {};
        std::copy_n(values + 64 * word, std::min<std::size_t>(64, count - 64 * word), square);
        transpose_64x64(square);
        for (unsigned bit = 0; bit < width; ++bit) planes[bit * words + word] = square[bit];
    }
}

void unslice_bits(const std::uint64_t* planes, std::size_t count, unsigned width, std::uint64_t* values) {
    const std::size_t words = plane_words(count);
    for (std::size_t word = 0; word < words; ++word) {
        std::uint64_t square[64] = {};
        for (unsigned bit = 0; bit < width; ++bit) square[bit] = planes[bit * words + word];
        transpose_64x64(square);
        std::copy_n(square, std::min<std::size_t>(64, count - 64 * word), values + 64 * word);
    }
}

}  // namespace sphynx
