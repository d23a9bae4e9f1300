// GF(2^128) as in tweaks.h: bit i of a block is the coefficient of x^i, modulo x^128 + x^7 + x^2 + x + 1. Products by
// PMULL or PCLMULQDQ where the CPU has it, else by integer multiplications of spread bits. Constant time on all paths.
#pragma once

#include <cstddef>

#include "block.h"

namespace sphynx::crypto {

Block field_product(Block a, Block b);
Block field_power(Block base, std::uint64_t exponent);  // the exponent is public

// A sum of products that is not reduced yet, by Karatsuba's three: of the low words, of the high words, and of the sums
// of both. Such sums add up word by word.
struct OpenSum {
    Block low = {}, high = {}, middle = {};

    Block reduced() const;
    OpenSum& operator^=(const OpenSum& other) {
        low ^= other.low, high ^= other.high, middle ^= other.middle;
        return *this;
    }
};

constexpr std::size_t kMostFoldedColumns = 8;

// sums[b] ^= sum over j of rows[b * columns + j] * factors[j], for columns <= kMostFoldedColumns.
void fold_rows(const Block* rows, std::size_t row_count, std::size_t columns, const Block* factors,
               OpenSum* sums);

// Which path calls take now: "pmull", "vpclmul", "pclmul" or "portable".
const char* field_path_name();

}  // namespace sphynx::crypto
