#include "gmw/carry_tree.h"

#include <bit>
#include <map>
#include <stdexcept>
#include <utility>

namespace sphynx {

CarryTree::CarryTree(unsigned leaves, unsigned low) : leaf_count_(leaves), node_count_(leaves) {
    if (leaves > 63 || low >= leaves)
        throw std::invalid_argument("carry tree: needs 1 to 63 leaves, fewer of them low");

    // Bottom up: neighbours merge; an odd one out at the top end waits for the next level.
    struct Span {
        std::uint32_t node;
        unsigned begin, end;
    };
    std::vector<Span> spans;
    std::map<std::pair<unsigned, unsigned>, std::uint32_t> node_of;
    for (unsigned leaf = 0; leaf < leaf_count_; ++leaf) {
        spans.push_back({leaf, leaf, leaf + 1});
        node_of[{leaf, leaf + 1}] = leaf;
    }
    for (std::size_t level = 0; spans.size() > 1; ++level) {
        std::vector<Span> merged;
        for (std::size_t i = 0; i + 1 < spans.size(); i += 2) {
            const Span &lower = spans[i], &upper = spans[i + 1];
            const std::uint32_t node = combine(upper.node, lower.node, lower.begin != 0, level);
            node_of[{lower.begin, upper.end}] = node;
            merged.push_back({node, lower.begin, upper.end});
        }
        if (spans.size() % 2) merged.push_back(spans.back());
        spans = std::move(merged);
    }
    sign_node_ = spans[0].node;

    // [0, low) is a row of aligned blocks, largest first. Joining from the small end, a block of 2^e leaves meets
    // a sum that is ready by level e, so the join fits in level e and depth does not grow.
    std::uint32_t joined = 0;
    for (unsigned end = low; end > 0;) {
        const unsigned exponent = static_cast<unsigned>(std::countr_zero(end)),
                       begin = end - (1u << exponent);
        const std::uint32_t block = node_of.at({begin, end});
        joined = end == low ? block : combine(joined, block, begin != 0, exponent);
        end = begin;
    }
    truncation_node_ = low == 0 ? node_count_ : joined;
}

std::uint32_t CarryTree::combine(std::uint32_t high, std::uint32_t low, bool needs_p, std::size_t level) {
    if (levels_.size() <= level) levels_.resize(level + 1);
    levels_[level].push_back({high, low, node_count_, needs_p});
    return node_count_++;
}

std::size_t CarryTree::opened_rows(std::size_t level) const {
    std::size_t rows = 0;
    for (const CarryNode& node : levels_.at(level)) rows += node.needs_p ? 3 : 2;
    return rows;
}

void open_level(const CarryTree& tree, std::size_t level, std::size_t words, const std::uint64_t* g,
                const std::uint64_t* p, const NodeMasks& masks, std::uint64_t* out) {
    const auto open = [&](const std::uint64_t* share, const std::uint64_t* mask) {
        for (std::size_t j = 0; j < words; ++j) out[j] = share[j] ^ mask[j];
        out += words;
    };
    for (const CarryNode& node : tree.levels().at(level)) {
        const std::size_t at = (node.out - tree.leaf_count()) * words;
        open(p + node.high * words, masks.a + at);
        open(g + node.low * words, masks.b + at);
        if (node.needs_p) open(p + node.low * words, masks.c + at);
    }
}

void close_level(const CarryTree& tree, std::size_t level, std::size_t words, bool adds_public,
                 const std::uint64_t* mine, const std::uint64_t* theirs, const NodeMasks& masks,
                 std::uint64_t* g, std::uint64_t* p) {
    const std::uint64_t add = adds_public ? ~std::uint64_t{0} : 0;
    // x y = (e_x xor a)(e_y xor b) with e_x, e_y public
    const auto product = [add](std::uint64_t e_x, std::uint64_t e_y, std::uint64_t a, std::uint64_t b,
                               std::uint64_t ab) { return (add & e_x & e_y) ^ (e_x & b) ^ (e_y & a) ^ ab; };
    std::size_t row = 0;
    for (const CarryNode& node : tree.levels().at(level)) {
        const std::size_t at = (node.out - tree.leaf_count()) * words;
        for (std::size_t j = 0; j < words; ++j) {
            const auto opened = [&](std::size_t which) {
                const std::size_t i = (row + which) * words + j;
                return mine[i] ^ theirs[i];
            };
            const std::uint64_t e_high = opened(0), a = masks.a[at + j];
            g[node.out * words + j] =
                g[node.high * words + j] ^ product(e_high, opened(1), a, masks.b[at + j], masks.ab[at + j]);
            p[node.out * words + j] =
                node.needs_p ? product(e_high, opened(2), a, masks.c[at + j], masks.ac[at + j]) : 0;
        }
        row += node.needs_p ? 3 : 2;
    }
}

}  // namespace sphynx
