// For all numbers of leaves: depth, node and opening counts as stated, and both carries right on shared bits,
// one a leaf, with dealt masks.
#include "gmw/carry_tree.h"

#include <bit>
#include <vector>

#include "check.h"
#include "crypto/prg.h"

using namespace sphynx;

namespace {

using Planes = std::vector<std::uint64_t>;

Planes random_planes(Prg& prg, std::size_t size) {
    Planes planes(size);
    prg.fill(planes.data(), 8 * size);
    return planes;
}

Planes combined(const Planes& x, const Planes& y, auto operation) {
    Planes result(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) result[i] = operation(x[i], y[i]);
    return result;
}

void check_tree(unsigned leaves, unsigned low, Prg& prg) {
    const CarryTree tree(leaves, low);
    const std::size_t depth = std::bit_width(leaves - 1);
    CHECK(tree.levels().size() == depth);
    const unsigned extra = low == 0 ? 0 : static_cast<unsigned>(std::popcount(low)) - 1;
    CHECK(tree.inner_count() == leaves - 1 + extra);
    std::size_t rows = 0;
    for (std::size_t level = 0; level < depth; ++level) rows += tree.opened_rows(level);
    CHECK(2 * rows == 6 * (leaves - 1) - 2 * depth + (extra ? 6 * extra - 2 : 0));

    constexpr std::size_t words = 2;
    const auto exclusive_or = [](std::uint64_t x, std::uint64_t y) { return x ^ y; };
    const auto both = [](std::uint64_t x, std::uint64_t y) { return x & y; };
    Planes masks[2][5];
    for (auto& party : masks) {
        for (int i = 0; i < 4; ++i) party[i] = random_planes(prg, tree.inner_count() * words);
        party[4] = random_planes(prg, tree.inner_count() * words);
    }
    for (int i : {0, 1}) {  // party 1's shares of ab and ac make the products right
        const Planes a = combined(masks[0][0], masks[1][0], exclusive_or);
        const Planes other = combined(masks[0][1 + i], masks[1][1 + i], exclusive_or);
        masks[1][3 + i] = combined(combined(a, other, both), masks[0][3 + i], exclusive_or);
    }
    Planes g[2], p[2], opened[2];
    const Planes s = random_planes(prg, leaves * words), c = random_planes(prg, leaves * words);
    for (int party : {0, 1}) {
        g[party].resize(tree.node_count() * words);
        p[party].resize(tree.node_count() * words);
    }
    for (std::size_t i = 0; i < s.size(); ++i) {
        g[0][i] = masks[0][3].empty() ? 7 : masks[0][3][0] + i;
        g[1][i] = g[0][i] ^ (s[i] & c[i]);
        p[0][i] = s[i], p[1][i] = c[i];
    }
    const auto view = [&](int party) {
        return NodeMasks{masks[party][0].data(), masks[party][1].data(), masks[party][2].data(),
                         masks[party][3].data(), masks[party][4].data()};
    };
    for (std::size_t level = 0; level < depth; ++level) {
        for (int party : {0, 1}) {
            opened[party].resize(tree.opened_rows(level) * words);
            open_level(tree, level, words, g[party].data(), p[party].data(), view(party),
                       opened[party].data());
        }
        for (int party : {0, 1}) {
            close_level(tree, level, words, party == 0, opened[party].data(), opened[1 - party].data(),
                        view(party), g[party].data(), p[party].data());
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
        for (unsigned low = 0; low < leaves; ++low) check_tree(leaves, low, prg);
    }
    CHECK_THROWS(CarryTree(0, 0));
    CHECK_THROWS(CarryTree(64, 0));
    CHECK_THROWS(CarryTree(7, 7));
    return test_result();
}
