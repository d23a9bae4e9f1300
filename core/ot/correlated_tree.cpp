#include "ot/correlated_tree.h"

#include <algorithm>
#include <vector>

#include "bits/vector.h"
#include "crypto/hash.h"

namespace sphynx::ot {

using bits::loaded;
using bits::store;
using bits::Vector;

namespace {

void hash_nodes(const crypto::AesKey& key, BlockView nodes, Block* hashes) {
    constexpr std::size_t most = 256;
    static constexpr Block no_tweaks[most] = {};
    for (std::size_t i = 0; i < nodes.size(); i += most) {
        crypto::hash_blocks(key, &nodes[i], no_tweaks, hashes + i, std::min(most, nodes.size() - i));
    }
}

// All ones where the two are equal, below 2^63.
Vector equal_mask(std::uint64_t a, std::uint64_t b) {
    const std::uint64_t mask = -(((a ^ b) - 1) >> 63);
    return Vector{mask, mask};
}

constexpr Vector kAllButLowest = {~std::uint64_t{1}, ~std::uint64_t{0}};

}  // namespace

// Levels grow in place from the back: the children of node i take the places 2 i and 2 i + 1.
void expand_correlated_tree(const crypto::AesKey& key, Block s, Block delta, BlockSpan leaves,
                            BlockSpan left_sums) {
    const std::size_t depth = left_sums.size();
    std::vector<Block> hashes(leaves.size() / 2);
    leaves[0] = left_sums[0] = s;
    leaves[1] = s ^ delta;
    for (std::size_t level = 1; level < depth; ++level) {
        const std::size_t nodes = std::size_t{1} << level;
        hash_nodes(key, leaves.first(nodes), hashes.data());
        Vector left_sum = {};
        const Vector kept = level + 1 == depth ? kAllButLowest : ~Vector{};
        for (std::size_t i = nodes; i-- > 0;) {
            const auto left = loaded<Vector>(&hashes[i]), right = loaded<Vector>(&leaves[i]) ^ left;
            store(&leaves[2 * i + 1], right & kept);
            store(&leaves[2 * i], left & kept);
            left_sum ^= left;
        }
        store(&left_sums[level], left_sum);
    }
    if (depth == 1) {
        for (Block& leaf : leaves) leaf.lo &= ~std::uint64_t{1};
    }
    zeroise(hashes.data(), hashes.size() * sizeof(Block));
}

void expand_without(std::uint64_t missing, const crypto::AesKey& key, BlockView known_sums,
                    BlockSpan leaves) {
    const std::size_t depth = known_sums.size();
    std::vector<Block> hashes(leaves.size() / 2);
    const Block zero = {};
    Block of_zero;  // both children of the zero at the missing path
    hash_nodes(key, {&zero, 1}, &of_zero);
    const Block is_right = mask_of(missing >> (depth - 1));
    leaves[0] = is_right & known_sums[0];
    leaves[1] = leaves[0] ^ known_sums[0];
    Block others = known_sums[0];  // of the last level: their sum is the missing leaf xor delta
    for (std::size_t level = 1; level < depth; ++level) {
        const std::size_t nodes = std::size_t{1} << level;
        hash_nodes(key, leaves.first(nodes), hashes.data());
        auto left_sums = loaded<Vector>(&of_zero), node_sums = Vector{};
        for (std::size_t i = 0; i < nodes; ++i) {
            left_sums ^= loaded<Vector>(&hashes[i]);
            node_sums ^= loaded<Vector>(&leaves[i]);
        }
        Block left_sum, node_sum;
        store(&left_sum, left_sums);
        store(&node_sum, node_sums);
        const std::uint64_t path = missing >> (depth - level);
        const Block goes_right = mask_of(missing >> (depth - level - 1));
        const Block sibling = known_sums[level] ^ left_sum ^ (mask_of(~goes_right.lo) & node_sum);
        others = node_sum ^ sibling;
        // The zero's children are replaced by the sibling, and by the zero of the next level.
        const Block at_left = of_zero ^ (goes_right & sibling),
                    at_right = of_zero ^ (mask_of(~goes_right.lo) & sibling);
        const auto to_left = loaded<Vector>(&at_left), to_right = loaded<Vector>(&at_right);
        for (std::size_t i = nodes; i-- > 0;) {
            const auto left = loaded<Vector>(&hashes[i]), right = loaded<Vector>(&leaves[i]) ^ left,
                       here = equal_mask(i, path);
            store(&leaves[2 * i + 1], right ^ (here & to_right));
            store(&leaves[2 * i], left ^ (here & to_left));
        }
    }
    others.lo |= 1;
    const auto last = loaded<Vector>(&others);
    for (std::size_t x = 0; x < leaves.size(); ++x) {
        const auto leaf = loaded<Vector>(&leaves[x]) & kAllButLowest;
        store(&leaves[x], leaf ^ (equal_mask(x, missing) & last));
    }
    zeroise(hashes.data(), hashes.size() * sizeof(Block));
}

}  // namespace sphynx::ot
