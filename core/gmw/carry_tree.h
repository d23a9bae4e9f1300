// The carries of x_s + x_c that a ReLU needs, by a prefix tree over XOR-shared bits (GMW, bit-sliced: one
// machine word is 64 instances). A node over digits [lo, hi) holds g (a carry is generated) and p (a carry
// would pass); the leaves are digits of one to four bits, whose g and p the caller gives. A node joins two or
// three neighbours, the highest first:
//   g = g0 xor p0 g1 xor p0 p1 g2,   p = p0 p1 p2
// Wanted: the carry out of all leaves, into the sign bit, and the carry out of the lowest ones, into the bit
// down to which the sum is truncated, which takes few nodes more and no level more. Levels are as few as the
// arity allows, ceil(log_arity(leaves)); within them, nodes of two are preferred. A node opens p0, g1, p1, g2
// and p2, but its lowest p only where its own is needed: nodes that begin at the lowest leaf need none. They
// are masked by a, b, c, d, e; shares of products of these are preprocessed.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "views.h"

namespace sphynx::gmw {

struct CarryNode {
    std::array<std::uint32_t, 3> inputs;  // nodes, the highest first
    std::uint32_t arity, number, out;     // number: among the nodes of its arity
    bool needs_p;

    std::size_t opened_rows() const { return 2 * arity - (needs_p ? 1 : 2); }
};

class CarryTree {
  public:
    // 0 <= low < leaves <= 63; low: how many leaves are below the truncation. Nodes join at most `arity`, 2 or 3.
    CarryTree(unsigned leaves, unsigned low, unsigned arity);

    std::uint32_t leaf_count() const { return leaf_count_; }
    std::uint32_t node_count() const { return leaf_count_ + counts_[0] + counts_[1]; }  // leaves first
    std::uint32_t pair_count() const { return counts_[0]; }
    std::uint32_t three_count() const { return counts_[1]; }
    const std::vector<std::vector<CarryNode>>& levels() const { return levels_; }
    std::uint32_t sign_node() const { return sign_node_; }  // carry out of all leaves
    std::uint32_t truncation_node() const {
        return truncation_node_;
    }  // carry out of the low leaves; node_count() if there are none
    std::size_t opened_rows(std::size_t level) const;  // planes that each party sends for this level

  private:
    // The digits [begin, end) and the node over them.
    struct Range {
        std::uint32_t node;
        unsigned begin, end;
    };
    Range join(std::span<const Range> members, const std::optional<Range>& above, std::size_t level);

    std::uint32_t leaf_count_, counts_[2] = {0, 0}, sign_node_ = 0, truncation_node_ = 0;
    std::vector<std::vector<CarryNode>> levels_;
};

// Shares of the masks of all nodes and of products of these: [row][node of this arity][words].
struct NodeMasks {
    enum PairRow { pair_a, pair_b, pair_c, pair_ab, pair_ac, pair_rows };
    enum ThreeRow { a, b, c, d, e, ab, ac, ad, ae, cd, ce, acd, ace, three_rows };
    WordView pairs, threes;
};

// out[opened_rows(level)][words]: this party's masked shares. g, p: [node][words], of all nodes of the tree.
void open_level(const CarryTree& tree, std::size_t level, WordView g, WordView p, const NodeMasks& masks,
                WordSpan out);

// Fills the level's rows of g and p from both parties' openings. Exactly one party adds the public product.
void close_level(const CarryTree& tree, std::size_t level, bool adds_public, WordView mine, WordView theirs,
                 const NodeMasks& masks, WordSpan g, WordSpan p);

}  // namespace sphynx::gmw
