// The carries of x_s + x_c that a ReLU needs, by a prefix tree over XOR-shared bits (GMW, bit-sliced: one
// machine word is 64 instances). A node over digits [lo, hi) holds g (a carry is generated) and p (a carry
// would pass); the leaves are digits of one or two bits, whose g and p the caller gives:
//   inner node   g = g_high xor p_high g_low,   p = p_high p_low
// Wanted: the carry out of all leaves, into the sign bit, and the carry out of the lowest ones, into the bit
// down to which the sum is truncated: a subtree where their number is a power of two and otherwise popcount - 1
// more nodes, at no more depth: ceil(log2(leaves)) levels in all. An inner node opens p_high, g_low and, where
// its own p is needed, p_low, once each, masked by a, b, c; preprocessed shares of ab and ac then give both
// products. Nodes that begin at the lowest leaf need no p.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sphynx {

struct CarryNode {
    std::uint32_t high, low, out;
    bool needs_p;
};

class CarryTree {
  public:
    // 0 <= low < leaves <= 63; low: how many leaves are below the truncation.
    CarryTree(unsigned leaves, unsigned low);

    std::uint32_t leaf_count() const { return leaf_count_; }
    std::uint32_t node_count() const { return node_count_; }  // leaves first, then inner nodes by level
    std::uint32_t inner_count() const { return node_count_ - leaf_count_; }
    const std::vector<std::vector<CarryNode>>& levels() const { return levels_; }
    std::uint32_t sign_node() const { return sign_node_; }  // carry out of all leaves
    std::uint32_t truncation_node() const {
        return truncation_node_;
    }  // carry out of the low leaves; node_count() if there are none
    std::size_t opened_rows(std::size_t level) const;  // planes that each party sends for this level

  private:
    std::uint32_t combine(std::uint32_t high, std::uint32_t low, bool needs_p, std::size_t level);

    std::uint32_t leaf_count_, node_count_, sign_node_ = 0, truncation_node_ = 0;
    std::vector<std::vector<CarryNode>> levels_;
};

// Shares of the masks and products of all inner nodes, each [inner node][words].
struct NodeMasks {
    const std::uint64_t *a, *b, *c, *ab, *ac;
};

// out[opened_rows(level)][words]: this party's masked shares. g, p: [node][words].
void open_level(const CarryTree& tree, std::size_t level, std::size_t words, const std::uint64_t* g,
                const std::uint64_t* p, const NodeMasks& masks, std::uint64_t* out);

// Fills the level's rows of g and p from both parties' openings. Exactly one party adds the public product.
void close_level(const CarryTree& tree, std::size_t level, std::size_t words, bool adds_public,
                 const std::uint64_t* mine, const std::uint64_t* theirs, const NodeMasks& masks,
                 std::uint64_t* g, std::uint64_t* p);

}  // namespace sphynx
