// The public code of silent OT (silent.h): sums of ten entries of a short vector for each entry of a long one.
//
//   regions   the short vector is ten parts of as many entries, a power of two
//   row j     one index in each region. In region i those of rows 512 c .. 512 c + 511 are 64 blocks of AES-CTR under a
//             public seed, from block 64 (10 c + i) on: their words of 16 bits in order, cut to a region's size
//   encoding  out_j ^= sum of the ten entries of the short vector
//
// The matrix is public: addresses depend on it alone, never on what is summed. Rows are summed two regions at a time, for
// as many rows as the caller gives: kLpnTile rows and two regions of silent.h's shape stay in a core's own cache, whereas
// a row at a time would wait for most of its entries.
#pragma once

#include "crypto/aes.h"
#include "views.h"

namespace sphynx::ot {

constexpr std::size_t kLpnRowWeight = 10;
constexpr std::size_t kLpnTile = 1 << 15;  // rows at a time that are the fastest: 512 KiB of results

class LpnCode {
  public:
    // Codes kLpnRowWeight times `region` entries; `region` is a power of two, at most 2^16.
    LpnCode(Block public_seed, std::size_t region);

    // out[i] ^= row first_row + i of the matrix times `vector`, which has all regions' entries.
    void add_rows(BlockView vector, std::size_t first_row, BlockSpan out) const;

  private:
    crypto::AesKey seed_;
    std::size_t region_;
};

}  // namespace sphynx::ot
