// Whether all trees of an extension carry the same choices r (Roy, eprint 2022/192, its consistency check for a malicious
// receiver, with a polynomial over GF(2^128) as the universal hash; KOS's weighted sum of OTs is another).
//
// The rows of the extension are v_0 .. v_127 and r at the receiver, w_b = v_b xor delta_b r at the sender, each c + 1
// blocks long: c of OTs, whatever padding included, and one of random choices that serves nothing else. With
//
//   alpha      BLAKE2b of all that was said in the session, the extension's number and kind, and BLAKE2sp of its message
//   h(row)     last block + sum over i < c of block_i alpha^(i+1) in GF(2^128)
//
// the receiver sends h(r), uniform by the last block, and a BLAKE2b of h(v_0) .. h(v_127). The sender compares it with
// that of h(w_b) xor delta_b h(r). If the receiver put other choices into a tree, h of the difference is 0 for one
// alpha in 2^128 / c; else it has to know delta_b for every row of that tree: it learns as many bits of delta as it
// staked, and passes with probability 2^-(that many). A receiver can try alphas without the sender, by changing its
// message: 2^128 / c for each pair of trees, 2^107 in all for 2^19 OTs.
#pragma once

#include "crypto/field.h"
#include "ot/tree_check.h"

namespace sphynx::ot {

constexpr std::size_t kCheckRows = 128;

// The hashes of the rows so far. One for each thread; they add up.
class RowHashes {
  public:
    // Takes rows whose first block is number `column` of `last` blocks before the last one.
    RowHashes(Block alpha, std::size_t column, std::size_t last);
    // rows[b * columns ..], at most kMostFoldedColumns of each; r[..] at the receiver, none at the sender.
    void add(BlockView rows, BlockView r);
    RowHashes& operator^=(const RowHashes& other);

    ~RowHashes() { zeroise(this, sizeof *this); }

    Block of_choices() const { return of_choices_.reduced(); }
    // A digest of the rows' hashes, row b's xor `corrections[b]`, if there are any.
    Digest digest_of_rows(BlockView corrections) const;

  private:
    crypto::OpenSum of_choices_, of_rows_[kCheckRows];
    Block alpha_, factor_;  // factor_: of the next column
    std::size_t column_, last_;
};

}  // namespace sphynx::ot
