// t = q xor r delta on every result of every batch, with chosen and random r, over ends of batches, threads and paths;
// results are what the definition gives; a sender whose trees are not consistent passes as often as it guesses right.
#include "ot/silent.h"

#include <functional>
#include <memory>
#include <vector>

#include "bits/transpose.h"
#include "check.h"
#include "cpu.h"
#include "crypto/blake2b.h"
#include "crypto/prg.h"
#include "ot/correlated_tree.h"
#include "ot/silent_check.h"

using namespace sphynx;
using namespace sphynx::bits;
using namespace sphynx::crypto;
using namespace sphynx::ot;

namespace {

constexpr Block kSession = {11, 12};
constexpr SilentShape kSmall = {320, 16, 6};  // 1,024 results, 480 of which are usable

struct Pair {
    Pair(const SilentShape& of, bool is_checked, Prg own)
        : shape(of), checked(is_checked), prg(std::move(own)) {
        delta = prg.block();
        delta.lo |= 1;
        std::vector<Block> q(shape.seeds()), t(shape.seeds());
        prg.fill_blocks(q.data(), q.size());
        std::vector<std::uint64_t> choices(plane_words(q.size()));
        prg.fill(choices.data(), 8 * choices.size());
        for (std::size_t j = 0; j < q.size(); ++j) {
            t[j] = q[j] ^ (mask_of(choices[j / 64] >> (j % 64)) & delta);
        }
        sender = std::make_unique<SilentSender>(shape, kSession, delta, q);
        receiver = std::make_unique<SilentReceiver>(shape, checked, kSession, t);
    }

    bool refill(unsigned threads = 1) {
        std::vector<Block> message(shape.refill_blocks());
        sender->refill(prg, message, threads);
        const Block masked = receiver->refill(message, threads);
        if (!checked) return true;
        CHECK(receiver->available() == 0);
        return receiver->accept(sender->prove(masked, threads));
    }

    SilentShape shape;
    bool checked;
    Prg prg;
    Block delta;
    std::unique_ptr<SilentSender> sender;
    std::unique_ptr<SilentReceiver> receiver;
};

// Returns t, for the recorded vectors.
std::vector<Block> check_extension(Pair& pair, std::size_t count, bool random, unsigned threads) {
    std::vector<std::uint64_t> choices(plane_words(count));
    if (!random) pair.prg.fill(choices.data(), 8 * choices.size());
    std::vector<Block> message(silent_message_blocks(count, random)), t(count), q(count);
    pair.receiver->extend(choices, random, message, t, threads);
    pair.sender->extend(message, q, threads);
    std::size_t wrong = 0, set = 0;
    for (std::size_t j = 0; j < count; ++j) {
        const std::uint64_t bit = choices[j / 64] >> (j % 64) & 1;
        wrong += !(t[j] == (q[j] ^ (mask_of(bit) & pair.delta)));
        set += bit;
    }
    CHECK(wrong == 0);
    if (count > 1000) CHECK(set > count * 2 / 5 && set < count * 3 / 5);
    if (random && count % 64) CHECK(choices.back() >> (count % 64) == 0);
    CHECK(pair.receiver->available() == pair.sender->available());
    return t;
}

void check_batches(const SilentShape& shape, bool checked, unsigned threads) {
    Pair pair(shape, checked, Prg());
    CHECK(pair.sender->available() == 0 && pair.receiver->available() == 0);
    CHECK_THROWS(check_extension(pair, 1, true, 1));
    CHECK(pair.refill(threads));
    CHECK(pair.sender->available() == shape.usable());
    check_extension(pair, 1, true, threads);
    check_extension(pair, 100, false, threads);
    CHECK(pair.refill(threads));  // while the first is in use
    check_extension(pair, shape.usable(), true, threads);
    check_extension(pair, shape.usable() - 101, false, threads);
    CHECK(pair.sender->available() == 0);
    CHECK(pair.refill(threads));
    CHECK(pair.refill(threads));
    check_extension(pair, 2 * shape.usable(), false, threads);
    CHECK_THROWS(check_extension(pair, 1, true, 1));
    CHECK(pair.refill(threads));
    check_extension(pair, shape.usable(), true, threads);
}

// The choices of a batch are x A + e: with seeds that are known, the receiver's first results by the definition alone.
void check_definition() {
    Prg prg = Prg::fixed_seed_for_tests({7, 8});
    std::vector<Block> t(kSmall.seeds()), message(kSmall.refill_blocks()), results(kSmall.usable());
    prg.fill_blocks(t.data(), t.size());
    prg.fill_blocks(message.data(), message.size());
    SilentReceiver receiver(kSmall, false, kSession, t);
    receiver.refill(message, 1);
    std::vector<std::uint64_t> choices(plane_words(results.size()));
    receiver.extend(choices, true, {}, results, 1);
    Block keys[2];
    Blake2b hash(sizeof keys, "sphynx silent batch");
    hash.update(&kSession, sizeof kSession);
    hash.update(0);
    hash.finish(keys);
    const LpnCode code(keys[0], kSmall.secret / kLpnRowWeight);
    const std::size_t size = std::size_t{1} << kSmall.depth;
    for (std::size_t tree = 0; tree < kSmall.usable() / size; ++tree) {
        std::uint64_t missing = 0;
        std::vector<Block> sums, expected(size);
        for (unsigned level = 0; level < kSmall.depth; ++level) {
            const std::size_t at = tree * kSmall.depth + level;
            const Block mask = t[kSmall.secret + at];
            missing = 2 * missing + !mask.lowest_bit();
            sums.push_back(message[at] ^ mask);
        }
        expand_without(missing, AesKey(keys[1]), sums, expected);
        code.add_rows(BlockView(t).first(kSmall.secret), tree * size, expected);
        CHECK(std::equal(expected.begin(), expected.end(), results.begin() + tree * size));
    }
}

// The same bytes on every machine and path.
void check_recorded() {
    Pair pair(kSmall, true, Prg::fixed_seed_for_tests({21, 22}));
    std::uint64_t digest = 0;
    CHECK(pair.refill());
    CHECK(pair.refill());
    const std::vector<Block> t = check_extension(pair, 2 * kSmall.usable(), false, 1);
    Blake2b hash(sizeof digest);
    hash.update(t.data(), t.size() * sizeof(Block));
    hash.finish(&digest);
    CHECK(digest == 0x7193c9e7a66dbd9e);
}

// Changes the trees on the way to the receiver; the sender proves those that it made.
using Change = std::function<void(std::vector<Block>&)>;

bool passes(Pair& pair, const Change& change) {
    std::vector<Block> message(pair.shape.refill_blocks());
    pair.sender->refill(pair.prg, message, 1);
    change(message);
    const Block masked = pair.receiver->refill(message, 1);
    const bool passed = pair.receiver->accept(pair.sender->prove(masked, 1));
    if (!passed) {
        CHECK(pair.receiver->available() == 0);
        CHECK_THROWS(pair.receiver->refill(message, 1));
    }
    return passed;
}

void check_refusals() {
    for (std::size_t at = 0; at < kSmall.refill_blocks(); at += 5) {
        Pair pair(kSmall, true, Prg());
        CHECK(passes(pair, [](std::vector<Block>&) {}));
        CHECK(!passes(pair, [&](std::vector<Block>& message) { message[at].hi ^= 4; }));
    }
    // A proof for another answer, or another proof.
    Pair pair(kSmall, true, Prg());
    std::vector<Block> message(kSmall.refill_blocks());
    pair.sender->refill(pair.prg, message, 1);
    const Block masked = pair.receiver->refill(message, 1);
    CHECK_THROWS(pair.receiver->refill(message, 1));
    CHECK(!pair.receiver->accept(pair.sender->prove(masked ^ Block{1, 0}, 1)));
    CHECK_THROWS((void)pair.receiver->accept({}));
}

}  // namespace

int main() {
    check_definition();
    for (const bool checked : {false, true}) {
        for (const unsigned threads : {1u, 2u}) check_batches(kSmall, checked, threads);
        check_batches({80, 200, 2}, checked, 1);
        check_batches({160, 3, 9}, checked, 1);
    }
    for (const CpuFeatures& features : features_to_test()) {
        const LimitFeatures limit(features);
        check_batches(kSmall, true, 1);
        check_recorded();
    }
    check_refusals();
    static_assert(kSilentShape.seeds() == 118'912 && kSilentShape.usable() == 1'978'240);
    static_assert(silent_message_blocks(1280, false) == 10 && silent_message_blocks(1280, true) == 0);
    Block blocks[1] = {};
    CHECK_THROWS(SilentSender({320, 4, 6}, kSession, {1, 0}, blocks));
    CHECK_THROWS(SilentSender({325, 16, 6}, kSession, {1, 0}, blocks));
    CHECK_THROWS(SilentReceiver({0, 16, 6}, true, kSession, blocks));
    std::vector<Block> seeds(kSmall.seeds());
    CHECK_THROWS(SilentSender(kSmall, kSession, {2, 0}, seeds));
    return test_result();
}
