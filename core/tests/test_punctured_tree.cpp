// At every depth and index: the sender's leaf y is the receiver's leaf y xor delta, and leaf y = 0 is missing.
// What a node encrypts is its tree's and level's own.
#include "ot/punctured_tree.h"

#include "check.h"
#include "crypto/aes.h"
#include "crypto/prg.h"

using namespace sphynx;
using namespace sphynx::crypto;
using namespace sphynx::ot;

namespace {

void check_children_are_salted_by_tree_and_level() {
    const Block root = {3, 4}, salt = {0x1234567800, 99};
    Block sums[4], expected[4];
    expand_tree(root, salt, sums);
    const Block plain[4] = {salt, salt ^ Block{1, 0}, salt ^ Block{2, 0}, salt ^ Block{3, 0}};
    aes_encrypt(AesKey(root), plain, expected, 4);
    CHECK(sums[2] == expected[2] && sums[3] == expected[3]);  // the root's children, bit 1
    Block below[2][2];
    for (int side = 0; side < 2; ++side) aes_encrypt(AesKey(expected[2 + side]), plain, below[side], 2);
    CHECK(sums[0] == (below[0][0] ^ below[1][0]) && sums[1] == (below[0][1] ^ below[1][1]));
}

}  // namespace

int main() {
    check_children_are_salted_by_tree_and_level();
    Prg prg = Prg::fixed_seed_for_tests({1, 1});
    for (unsigned depth = 1; depth <= 8; ++depth) {
        Block sums[16];
        const Block salt = prg.block();
        const std::vector<Block> leaves = expand_tree(prg.block(), salt, BlockSpan(sums).first(2 * depth));
        CHECK(leaves.size() == std::size_t{1} << depth);
        for (unsigned delta = 0; delta < leaves.size(); delta += depth > 5 ? 7 : 1) {
            Block known[8];
            for (unsigned bit = 0; bit < depth; ++bit) known[bit] = sums[2 * bit + (1 ^ (delta >> bit & 1))];
            const std::vector<Block> punctured =
                expand_punctured_tree(delta, salt, BlockView(known).first(depth));
            CHECK(punctured.size() == leaves.size());
            CHECK((punctured[0] == Block{}));
            for (unsigned y = 1; y < leaves.size(); ++y) CHECK(punctured[y] == leaves[y ^ delta]);
        }
    }
    return test_result();
}
