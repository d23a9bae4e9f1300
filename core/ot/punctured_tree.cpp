#include "ot/punctured_tree.h"

#include "crypto/aes.h"

namespace sphynx::ot {
namespace {

struct Children {
    Block zero, one;
};

Children children_of(Block node, Block salt, std::size_t bit) {
    const crypto::AesKey key(node);
    const Block plain[2] = {salt ^ Block{2 * bit, 0}, salt ^ Block{2 * bit + 1, 0}};
    Block cipher[2];
    crypto::aes_encrypt(key, plain, cipher, 2);
    return {cipher[0], cipher[1]};
}

}  // namespace

std::vector<Block> expand_tree(Block root, Block salt, BlockSpan level_sums) {
    std::vector<Block> nodes = {root};
    for (std::size_t bit = level_sums.size() / 2; bit-- > 0;) {
        std::vector<Block> next(2 * nodes.size());
        const BlockSpan sums = level_sums.subspan(2 * bit, 2);
        sums[0] = sums[1] = {};
        for (std::size_t i = 0; i < nodes.size(); ++i) {
            const Children children = children_of(nodes[i], salt, bit);
            next[2 * i] = children.zero;
            next[2 * i + 1] = children.one;
            sums[0] ^= children.zero;
            sums[1] ^= children.one;
        }
        zeroise(nodes.data(), nodes.size() * sizeof(Block));
        nodes = std::move(next);
    }
    return nodes;
}

std::vector<Block> expand_punctured_tree(unsigned delta, Block salt, BlockView known_sums) {
    std::vector<Block> nodes = {Block{}};  // the root lies on the missing path
    for (std::size_t bit = known_sums.size(); bit-- > 0;) {
        const Block swap = mask_of(delta >> bit);
        std::vector<Block> next(2 * nodes.size());
        Block sibling = known_sums[bit];
        for (std::size_t i = 1; i < nodes.size(); ++i) {
            const Children children = children_of(nodes[i], salt, bit);
            const Block difference = swap & (children.zero ^ children.one);
            next[2 * i] = children.zero ^ difference;
            next[2 * i + 1] = children.one ^ difference;
            sibling ^= next[2 * i + 1];
        }
        next[1] = sibling;
        zeroise(nodes.data(), nodes.size() * sizeof(Block));
        nodes = std::move(next);
    }
    return nodes;
}

}  // namespace sphynx::ot
