// For all numbers of leaves: depth, node and opening counts as stated, and both carries right on shared bits,
// one a leaf, with dealt masks.
#include "gmw/carry_tree.h"

#include "check.h"
#include "dealer.h"

using namespace sphynx;
using namespace sphynx::bits;
using namespace sphynx::crypto;
using namespace sphynx::gmw;

namespace {

void check_counts(const CarryTree& tree, unsigned arity) {
    std::size_t depth = 0, reached = 1;
    for (; reached < tree.leaf_count(); reached *= arity) ++depth;
    CHECK(tree.levels().size() == depth);
    std::size_t pairs = 0, threes = 0;
    for (std::size_t level = 0; level < depth; ++level) {
        std::size_t rows = 0;
        for (const CarryNode& node : tree.levels()[level]) {
            (node.arity == 2 ? pairs : threes) += 1;
            rows += (node.arity == 2 ? 2 : 4) + (node.needs_p ? 1 : 0);
        }
        CHECK(rows == tree.opened_rows(level));
    }
    CHECK(pairs == tree.pair_count() && threes == tree.three_count());
    CHECK(arity == 3 || threes == 0);
}

void check_tree(unsigned leaves, unsigned low, unsigned arity, Prg& prg) {
    const CarryTree tree(leaves, low, arity);
    check_counts(tree, arity);
    const std::size_t depth = tree.levels().size();
    constexpr std::size_t words = 2;
    const DealtNodes dealt(tree, words, prg);
    Planes g[2], p[2], opened[2];
    const auto drawn = [&] { return random_words(prg, leaves * words); };
    const Planes s = drawn(), c = drawn(), noise = drawn();
    for (int party : {0, 1}) {
        g[party].resize(tree.node_count() * words);
        p[party].resize(tree.node_count() * words);
    }
    for (std::size_t i = 0; i < s.size(); ++i) {
        g[0][i] = noise[i];
        g[1][i] = g[0][i] ^ (s[i] & c[i]);
        p[0][i] = s[i], p[1][i] = c[i];
    }
    for (std::size_t level = 0; level < depth; ++level) {
        for (int party : {0, 1}) {
            opened[party].resize(tree.opened_rows(level) * words);
            open_level(tree, level, g[party], p[party], dealt.of(party), opened[party]);
        }
        for (int party : {0, 1}) {
            close_level(tree, level, party == 0, opened[party], opened[1 - party], dealt.of(party), g[party],
                        p[party]);
        }
    }
    for (std::size_t j = 0; j < words; ++j) {
        std::uint64_t carry = 0;
        for (unsigned bit = 0; bit <= leaves; ++bit) {
            const auto node_is = [&](std::uint32_t node) {
                return (g[0][node * words + j] ^ g[1][node * words + j]) == carry;
            };
            if (bit == low && low > 0) CHECK(node_is(tree.truncation_node()));
            if (bit == leaves) CHECK(node_is(tree.sign_node()));
            if (bit == leaves) break;
            const std::uint64_t x = s[bit * words + j], y = c[bit * words + j];
            carry = (x & y) | (carry & (x ^ y));
        }
    }
}

}  // namespace

int main() {
    Prg prg;
    for (unsigned leaves = 1; leaves <= 63; ++leaves) {
        for (unsigned low = 0; low < leaves; ++low) {
            for (const unsigned arity : {2u, 3u}) check_tree(leaves, low, arity, prg);
        }
    }
    CHECK_THROWS(CarryTree(0, 0, 2));
    CHECK_THROWS(CarryTree(64, 0, 2));
    CHECK_THROWS(CarryTree(7, 7, 2));
    CHECK_THROWS(CarryTree(7, 1, 1));
    CHECK_THROWS(CarryTree(7, 1, 4));
    return test_result();
}
