// The public code of silent OT (silent.h): sums of ten entries of a short vector for each entry of a long one.
//
//   row j     ten indices below k, drawn with replacement: words 10 j .. 10 j + 9 of AES-CTR under a public seed, each
//             a number w of 32 bits that stands for floor(w k / 2^32)
//   encoding  out_j ^= sum of the ten entries of the short vector
//
// The matrix is public: addresses depend on it alone, never on what is summed. The short vector is read at random and
// need not fit into a core's own cache, for the reads of many rows are under way at a time.
#pragma once

#include "crypto/aes.h"
#include "views.h"

namespace sphynx::ot {

constexpr std::size_t kLpnRowWeight = 10;

class LpnCode {
  public:
    // Codes `secret` entries, below 2^32.
    LpnCode(Block public_seed, std::size_t secret) : seed_(public_seed), secret_(secret) {}

    // out[i] ^= row first_row + i of the matrix times `vector`, which has `secret` entries.
    void add_rows(BlockView vector, std::size_t first_row, BlockSpan out) const;

  private:
    crypto::AesKey seed_;
    std::size_t secret_;
};

}  // namespace sphynx::ot
