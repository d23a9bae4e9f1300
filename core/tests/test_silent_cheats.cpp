// A tree-maker that puts an error into one level sum, and then proves what the receiver has if its missing leaf is the
// one that the cheat bets on. The two leaves of the last parent cannot be told apart, all else of the missing path can:
// the cheat passes if its bet is right in all bits but the last, with probability 2^-(their number), and never else.
#include <vector>

#include "check.h"
#include "crypto/blake2b.h"
#include "crypto/field.h"
#include "crypto/prg.h"
#include "ot/correlated_tree.h"
#include "ot/silent.h"
#include "ot/silent_check.h"

using namespace sphynx;
using namespace sphynx::crypto;
using namespace sphynx::ot;

namespace {

constexpr Block kSession = {31, 32};
constexpr SilentShape kShape = {80, 150, 3};
constexpr std::size_t kSize = std::size_t{1} << kShape.depth;

AesKey tree_key() {
    Block keys[2];
    Blake2b hash(sizeof keys, "sphynx silent batch");
    hash.update(&kSession, sizeof kSession);
    hash.update(0);
    hash.finish(keys);
    return AesKey(keys[1]);
}

struct Outcome {
    bool passed;
    std::uint64_t missing;
};

// Adds `error` to the sum of `level` in tree 0, and bets on `bet`.
Outcome cheat(Prg& prg, unsigned level, Block error, std::uint64_t bet) {
    Block delta = prg.block();
    delta.lo |= 1;
    std::vector<Block> q(kShape.seeds()), t(kShape.seeds()), message(kShape.refill_blocks());
    prg.fill_blocks(q.data(), q.size());
    for (std::size_t j = 0; j < q.size(); ++j) {
        q[j].lo &= ~std::uint64_t{1};
        t[j] = q[j] ^ (mask_of(prg.block().lo) & delta);
    }
    const AesKey key = tree_key();
    std::vector<std::vector<Block>> leaves(kShape.trees, std::vector<Block>(kSize));
    for (std::size_t tree = 0; tree < kShape.trees; ++tree) {
        const BlockSpan sums = BlockSpan(message).subspan(tree * kShape.depth, kShape.depth);
        expand_correlated_tree(key, prg.block(), delta, leaves[tree], sums);
    }
    // The receiver's first tree, if the bet is right; then its sum is that of honest leaves if x* delta is taken off.
    message[level] ^= error;
    std::vector<Block> known(message.begin(), message.begin() + kShape.depth);
    for (unsigned l = 0; l < kShape.depth; ++l) known[l] ^= mask_of(~bet >> (kShape.depth - 1 - l)) & delta;
    expand_without(bet, key, known, leaves[0]);
    leaves[0][bet] ^= delta;
    for (std::size_t i = 0; i < message.size(); ++i) message[i] ^= q[kShape.secret + i];

    SilentReceiver receiver(kShape, true, kSession, t);
    const Block masked = receiver.refill(message, 1);
    const LeafPolynomial polynomial(silent_challenge(kSession, 1, message), kShape.depth);
    std::vector<Block> trees;
    for (const auto& tree : leaves) trees.push_back(polynomial.of_tree(tree));
    const Block sum = polynomial.of_batch(trees) ^
                      field_element_of(BlockView(q).last(SilentShape::kCheckOts)) ^
                      field_product(masked, delta);
    const bool passed = receiver.accept(silent_proof(kSession, 1, sum));
    CHECK(passed == (receiver.available() > 0));
    std::uint64_t missing = 0;
    for (unsigned l = 0; l < kShape.depth; ++l) missing = 2 * missing + !t[kShape.secret + l].lowest_bit();
    return {passed, missing};
}

}  // namespace

int main() {
    Prg prg;
    constexpr int times = 400;
    int passed[kShape.depth] = {};
    for (int i = 0; i < times; ++i) {
        const std::uint64_t bet = prg.block().lo % kSize;
        for (unsigned level = 0; level < kShape.depth; ++level) {
            const Outcome outcome = cheat(prg, level, {2, 0}, bet);
            CHECK(outcome.passed == (outcome.missing / 2 == bet / 2));
            passed[level] += outcome.passed;
        }
        CHECK(cheat(prg, 0, {}, bet).passed);  // without an error the bet does not matter
    }
    for (const int count : passed) CHECK(count > 56 && count < 144);  // five standard deviations around 1/4
    return test_result();
}
