// At every depth and index: the sender's leaf y is the receiver's leaf y xor delta, and leaf y = 0 is
// missing.
#include "ot/punctured_tree.h"

#include "check.h"
#include "crypto/prg.h"

using namespace sphynx;

int main() {
    Prg prg = Prg::fixed_seed_for_tests({1, 1});
    for (unsigned depth = 1; depth <= 8; ++depth) {
        Block sums[16];
        const std::vector<Block> leaves = expand_tree(prg.block(), depth, sums);
        CHECK(leaves.size() == std::size_t{1} << depth);
        for (unsigned delta = 0; delta < leaves.size(); delta += depth > 5 ? 7 : 1) {
            Block known[8];
            for (unsigned bit = 0; bit < depth; ++bit) known[bit] = sums[2 * bit + (1 ^ (delta >> bit & 1))];
            const std::vector<Block> punctured = expand_punctured_tree(delta, depth, known);
            CHECK(punctured.size() == leaves.size());
            CHECK((punctured[0] == Block{}));
            for (unsigned y = 1; y < leaves.size(); ++y) CHECK(punctured[y] == leaves[y ^ delta]);
        }
    }
    return test_result();
}
