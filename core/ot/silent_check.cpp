#include "ot/silent_check.h"

#include <algorithm>

#include "crypto/blake2b.h"
#include "crypto/field.h"
#include "crypto/tweaks.h"

namespace sphynx::ot {

using crypto::field_product;

LeafPolynomial::LeafPolynomial(Block alpha, unsigned depth) : depth_(depth) {
    for (Block power = alpha; squares_.size() <= depth; power = field_product(power, power)) {
        squares_.push_back(power);
    }
    Block power = {1, 0};
    const std::size_t leaves = std::min(kStep, std::size_t{1} << depth);
    for (std::size_t i = leaves; i-- > 0; power = field_product(power, alpha)) factors_[i] = power;
    next_step_ = power;
}

Block LeafPolynomial::of_tree(BlockView leaves) const {
    const std::size_t columns = std::min(kStep, leaves.size());
    Block sum = {};
    for (std::size_t x = 0; x < leaves.size(); x += columns) {
        crypto::OpenSum next;
        crypto::fold_rows(&sum, 1, 1, &next_step_, &next);
        crypto::fold_rows(&leaves[x], 1, columns, factors_, &next);
        sum = next.reduced();
    }
    return sum;
}

Block LeafPolynomial::of_leaf(std::uint64_t x) const {
    const Block one = {1, 0};
    Block power = one;
    for (unsigned bit = 0; bit < depth_; ++bit) {
        power = field_product(power, one ^ (mask_of(~x >> bit) & (one ^ squares_[bit])));
    }
    return power;
}

Block LeafPolynomial::of_batch(BlockView trees) const {
    Block sum = {};
    for (const Block& tree : trees) sum = field_product(sum, squares_[depth_]) ^ tree;
    return sum;
}

Block silent_challenge(Block session, std::uint64_t batch, BlockView message) {
    crypto::Blake2b hash(sizeof(Block), "sphynx silent trees");
    hash.update(&session, sizeof session);
    hash.update(batch);
    hash.update(message.data(), message.size_bytes());
    Block alpha;
    hash.finish(&alpha);
    return alpha;
}

Block field_element_of(BlockView blocks) {
    Block sum = {};
    for (std::size_t i = blocks.size(); i-- > 0;) sum = crypto::doubled(sum) ^ blocks[i];
    return sum;
}

Digest silent_proof(Block session, std::uint64_t batch, Block sum) {
    crypto::Blake2b hash(sizeof(Digest), "sphynx silent proof");
    hash.update(&session, sizeof session);
    hash.update(batch);
    hash.update(&sum, sizeof sum);
    Digest proof;
    hash.finish(&proof);
    return proof;
}

}  // namespace sphynx::ot
