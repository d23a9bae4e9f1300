// The sums of silent OT's check (silent.h): a polynomial in alpha over all leaves of a batch, in GF(2^128).
#pragma once

#include <vector>

#include "ot/tree_check.h"

namespace sphynx::ot {

class LeafPolynomial {
  public:
    LeafPolynomial(Block alpha, unsigned depth);

    // sum over x of leaves[x] alpha^(2^depth - 1 - x).
    Block of_tree(BlockView leaves) const;
    // alpha^(2^depth - 1 - x), without a branch or address that depends on x.
    Block of_leaf(std::uint64_t x) const;
    // The same over all trees, from what each of them gives.
    Block of_batch(BlockView trees) const;

  private:
    static constexpr std::size_t kStep = 8;  // leaves that are folded at a time
    unsigned depth_;
    std::vector<Block> squares_;  // alpha^(2^b), b = 0 .. depth
    Block factors_[kStep], next_step_;
};

// alpha for a batch whose trees are `message`.
Block silent_challenge(Block session, std::uint64_t batch, BlockView message);
// 128 blocks as one element: the sum of blocks[i] x^i.
Block field_element_of(BlockView blocks);
Digest silent_proof(Block session, std::uint64_t batch, Block sum);

}  // namespace sphynx::ot
