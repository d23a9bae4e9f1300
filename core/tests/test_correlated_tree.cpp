// At every depth and missing leaf the receiver's leaves are the sender's, but for that one, which is xor delta; nodes are
// those of the definition; on every path of this CPU.
#include "ot/correlated_tree.h"

#include <vector>

#include "check.h"
#include "cpu.h"
#include "crypto/hash.h"
#include "crypto/prg.h"

using namespace sphynx;
using namespace sphynx::crypto;
using namespace sphynx::ot;

namespace {

// The tree as it is defined, node by node from the root.
std::vector<Block> defined_leaves(const AesKey& key, Block s, Block delta, unsigned depth,
                                  std::vector<Block>& left_sums) {
    std::vector<Block> nodes = {s, s ^ delta};
    left_sums = {s};
    for (unsigned level = 1; level < depth; ++level) {
        std::vector<Block> next;
        Block sum = {};
        for (const Block& node : nodes) {
            const Block plain = sigma(node);
            Block left;
            aes_encrypt(key, &plain, &left, 1);
            left ^= plain;
            next.push_back(left);
            next.push_back(node ^ left);
            sum ^= left;
        }
        left_sums.push_back(sum);
        nodes = next;
    }
    for (Block& leaf : nodes) leaf.lo &= ~std::uint64_t{1};
    return nodes;
}

void check_depth(unsigned depth) {
    Prg prg = Prg::fixed_seed_for_tests({1, depth});
    const AesKey key(prg.block());
    const Block s = prg.block(), delta = prg.block();
    const Block offset = {delta.lo | 1, delta.hi};
    std::vector<Block> sums(depth), expected_sums, leaves(std::size_t{1} << depth);
    expand_correlated_tree(key, s, offset, leaves, sums);
    CHECK(leaves == defined_leaves(key, s, offset, depth, expected_sums));
    CHECK(sums == expected_sums);
    for (std::uint64_t missing = 0; missing < leaves.size(); missing += depth > 6 ? 37 : 1) {
        std::vector<Block> known, punctured(leaves.size());
        for (unsigned level = 0; level < depth; ++level) {
            const bool missing_side = missing >> (depth - 1 - level) & 1;
            known.push_back(sums[level] ^ (mask_of(!missing_side) & offset));
        }
        expand_without(missing, key, known, punctured);
        std::vector<Block> expected = leaves;
        expected[missing] ^= offset;
        CHECK(punctured == expected);
    }
}

}  // namespace

int main() {
    for (const CpuFeatures& features : features_to_test()) {
        const LimitFeatures limit(features);
        for (unsigned depth = 1; depth <= 11; ++depth) check_depth(depth);
    }
    return test_result();
}
