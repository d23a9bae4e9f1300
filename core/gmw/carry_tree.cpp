#include "gmw/carry_tree.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace sphynx::gmw {
namespace {

std::size_t power(std::size_t base, std::size_t exponent) {
    std::size_t result = 1;
    for (; exponent > 0; --exponent) result *= base;
    return result;
}

}  // namespace

CarryTree::CarryTree(unsigned leaves, unsigned low, unsigned arity) : leaf_count_(leaves) {
    if (leaves > 63 || low >= leaves || arity < 2 || arity > 3)
        throw std::invalid_argument(
            "carry tree: needs 1 to 63 leaves, fewer of them low, and an arity of 2 or 3");
    std::size_t levels = 0;
    while (power(arity, levels) < leaves) ++levels;

    std::vector<Range> ranges;
    for (unsigned leaf = 0; leaf < leaf_count_; ++leaf) ranges.push_back({leaf, leaf, leaf + 1});
    std::optional<Range> tail;  // of [0, low), what no whole range covers
    for (std::size_t level = 0; level < levels; ++level) {
        // As many groups as the levels after this one can join, unless pairs leave fewer.
        const std::size_t count = ranges.size(), pairs = (count + 1) / 2;
        const std::size_t groups = std::min(power(arity, levels - level - 1), pairs);
        std::vector<Range> joined;
        for (std::size_t group = 0, first = 0; group < groups; ++group) {
            const std::size_t size = count / groups + (group < count % groups ? 1 : 0);
            const auto members = std::span<const Range>(ranges).subspan(first, size);
            const unsigned cut = tail ? tail->begin : low;
            std::size_t below = 0;
            while (below < size && members[below].end <= cut) ++below;
            if (below > 0 && below < size) tail = join(members.first(below), tail, level);
            joined.push_back(join(members, std::nullopt, level));
            first += size;
        }
        ranges = std::move(joined);
    }
    sign_node_ = ranges[0].node;
    truncation_node_ = low == 0 ? node_count() : tail->node;
}

CarryTree::Range CarryTree::join(std::span<const Range> members, const std::optional<Range>& above,
                                 std::size_t level) {
    CarryNode node{};
    const auto add = [&node](const Range& range) { node.inputs[node.arity++] = range.node; };
    if (above) add(*above);
    for (std::size_t i = members.size(); i > 0; --i) add(members[i - 1]);
    const Range whole{node_count(), members.front().begin, (above ? *above : members.back()).end};
    if (node.arity == 1) return members.front();
    node.number = counts_[node.arity - 2];
    node.out = whole.node;
    node.needs_p = whole.begin != 0;
    ++counts_[node.arity - 2];
    if (levels_.size() <= level) levels_.resize(level + 1);
    levels_[level].push_back(node);
    return whole;
}

std::size_t CarryTree::opened_rows(std::size_t level) const {
    std::size_t rows = 0;
    for (const CarryNode& node : levels_.at(level)) rows += node.opened_rows();
    return rows;
}

void open_level(const CarryTree& tree, std::size_t level, WordView g, WordView p, const NodeMasks& masks,
                WordSpan out) {
    const std::size_t words = g.size() / tree.node_count();
    std::uint64_t* to = out.data();
    for (const CarryNode& node : tree.levels().at(level)) {
        const bool is_pair = node.arity == 2;
        const std::uint64_t* mask = (is_pair ? masks.pairs : masks.threes).data() + node.number * words;
        const std::size_t stride = (is_pair ? tree.pair_count() : tree.three_count()) * words;
        for (std::size_t row = 0; row < node.opened_rows(); ++row, mask += stride, to += words) {
            // p0, g1, p1, g2, p2
            const std::uint64_t* share = (row % 2 ? g : p).data() + node.inputs[(row + 1) / 2] * words;
            for (std::size_t j = 0; j < words; ++j) to[j] = share[j] ^ mask[j];
        }
    }
}

void close_level(const CarryTree& tree, std::size_t level, bool adds_public, WordView mine, WordView theirs,
                 const NodeMasks& masks, WordSpan g, WordSpan p) {
    using M = NodeMasks;
    const std::size_t words = g.size() / tree.node_count();
    const std::uint64_t *my_rows = mine.data(), *their_rows = theirs.data();
    const std::uint64_t add = adds_public ? ~std::uint64_t{0} : 0;
    // x y = (X xor a)(Y xor b) with X, Y public
    const auto product = [add](std::uint64_t X, std::uint64_t Y, std::uint64_t a, std::uint64_t b,
                               std::uint64_t ab) { return (add & X & Y) ^ (X & b) ^ (Y & a) ^ ab; };
    for (const CarryNode& node : tree.levels().at(level)) {
        const bool is_pair = node.arity == 2;
        const std::uint64_t* base = (is_pair ? masks.pairs : masks.threes).data() + node.number * words;
        const std::size_t stride = (is_pair ? tree.pair_count() : tree.three_count()) * words;
        const std::uint64_t* highest = g.data() + node.inputs[0] * words;
        std::uint64_t *g_out = g.data() + node.out * words, *p_out = p.data() + node.out * words;
        for (std::size_t j = 0; j < words; ++j) {
            const auto mask = [&](std::size_t row) { return base[row * stride + j]; };
            const auto opened = [&](std::size_t row) {
                return my_rows[row * words + j] ^ their_rows[row * words + j];
            };
            const std::uint64_t A = opened(0), B = opened(1);
            if (is_pair) {
                g_out[j] = highest[j] ^ product(A, B, mask(M::pair_a), mask(M::pair_b), mask(M::pair_ab));
                p_out[j] = node.needs_p
                               ? product(A, opened(2), mask(M::pair_a), mask(M::pair_c), mask(M::pair_ac))
                               : 0;
                continue;
            }
            // p0 p1 z = (p0 p1)(Z xor z'), and p0 p1 = A C xor A c xor C a xor ac
            const std::uint64_t C = opened(2), a = mask(M::a), c = mask(M::c), ac = mask(M::ac);
            const auto triple = [&](std::uint64_t Z, std::uint64_t z, std::uint64_t az, std::uint64_t cz,
                                    std::uint64_t acz) {
                return (Z & product(A, C, a, c, ac)) ^ (A & C & z) ^ (A & cz) ^ (C & az) ^ acz;
            };
            g_out[j] = highest[j] ^ product(A, B, a, mask(M::b), mask(M::ab)) ^
                       triple(opened(3), mask(M::d), mask(M::ad), mask(M::cd), mask(M::acd));
            p_out[j] =
                node.needs_p ? triple(opened(4), mask(M::e), mask(M::ae), mask(M::ce), mask(M::ace)) : 0;
        }
        my_rows += node.opened_rows() * words;
        their_rows += node.opened_rows() * words;
    }
}

}  // namespace sphynx::gmw
