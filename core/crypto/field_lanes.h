// The loops of field.h, generic over how two halves are multiplied; each kernels' file instantiates them in its own
// unnamed namespace, as lanes.h says. A Lane offers a Sum of products that are not reduced yet:
//   Factor(block)    a factor as it is needed for many products
//   Sum              zero at first; add(row, factor); words(): 256 bits, lowest first
#pragma once

#include <array>

#include "crypto/field.h"

namespace sphynx {

struct FieldKernels {
    const char* name;
    void (*fold)(const Block* rows, std::size_t row_count, std::size_t columns, const Block* factors,
                 Block* sums);
};

const FieldKernels& portable_field();
const FieldKernels& pmull_field();   // aarch64 only
const FieldKernels& pclmul_field();  // x86-64 only

// x^128 = x^7 + x^2 + x + 1: the two high words go down one after the other.
inline Block reduced(const std::array<std::uint64_t, 4>& w) {
    const auto low = [](std::uint64_t a) { return a ^ a << 1 ^ a << 2 ^ a << 7; };
    const auto high = [](std::uint64_t a) { return a >> 63 ^ a >> 62 ^ a >> 57; };
    const std::uint64_t second = w[2] ^ high(w[3]);
    return {w[0] ^ low(second), w[1] ^ low(w[3]) ^ high(second)};
}

// `Columns` is the number of columns where it is known, so that the factors stay in registers, and 0 elsewhere.
template <class Lane, std::size_t Columns>
void fold_columns(const Block* rows, std::size_t row_count, std::size_t columns, const Block* factors,
                  Block* sums) {
    if (Columns != 0) columns = Columns;
    typename Lane::Factor prepared[most_folded_columns];
    for (std::size_t j = 0; j < columns; ++j) prepared[j] = typename Lane::Factor(factors[j]);
    for (std::size_t b = 0; b < row_count; ++b, rows += columns) {
        typename Lane::Sum sum;
        for (std::size_t j = 0; j < columns; ++j) sum.add(rows + j, prepared[j]);
        sums[b] ^= reduced(sum.words());
    }
}

template <class Lane>
void fold_lanes(const Block* rows, std::size_t row_count, std::size_t columns, const Block* factors,
                Block* sums) {
    if (columns == most_folded_columns) {
        fold_columns<Lane, most_folded_columns>(rows, row_count, columns, factors, sums);
    } else {
        fold_columns<Lane, 0>(rows, row_count, columns, factors, sums);
    }
}

}  // namespace sphynx
