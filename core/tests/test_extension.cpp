// t = q xor r delta for every parameter, checked and not, with chosen and random r, over several extensions, threads
// and paths; what a receiver sends that is not consistent passes as often as its guess of delta is right.
#include "ot/extension.h"

#include <functional>
#include <memory>
#include <vector>

#include "bits/transpose.h"
#include "check.h"
#include "cpu.h"
#include "crypto/hash.h"
#include "crypto/prg.h"

using namespace sphynx;
using namespace sphynx::bits;
using namespace sphynx::crypto;
using namespace sphynx::ot;

namespace {

struct Pair {
    std::unique_ptr<OtReceiver> receiver;
    std::unique_ptr<OtSender> sender;
    Block delta;
};

using Change = std::function<void(std::vector<Block>& setup)>;

Pair connected(unsigned k, bool checked, const Change& change = [](std::vector<Block>&) {}) {
    Prg prg;
    Block delta = prg.block();
    delta.lo |= 1;
    std::vector<Block> pairs(2 * kBaseOtCount), keys(kBaseOtCount), setup(setup_blocks(k, checked));
    prg.fill_blocks(pairs.data(), pairs.size());
    for (std::size_t j = 0; j < kBaseOtCount; ++j) {
        keys[j] = pairs[2 * j + delta.bit(j)];
    }
    Pair pair{std::make_unique<OtReceiver>(k, checked, pairs, prg, setup), nullptr, delta};
    change(setup);
    pair.sender = std::make_unique<OtSender>(k, checked, delta, keys, setup);
    return pair;
}

// The first OT has tweak 0, the key is block 0 of stream 1 under R.
void check_tweak_of_first(Block r, Block t, Block pad) {
    Block key, plain = sigma(t), cipher;
    expand_seed(AesKey(r), 1, 0, &key, 1);
    aes_encrypt(AesKey(key), &plain, &cipher, 1);
    CHECK(pad == (cipher ^ plain));
}

void check_extension(Pair& pair, unsigned k, bool checked, std::size_t count, bool random, unsigned threads) {
    Prg prg;
    std::vector<std::uint64_t> choices(plane_words(count));
    if (!random) {
        prg.fill(choices.data(), 8 * choices.size());
        if (count % 64) choices.back() &= (std::uint64_t{1} << (count % 64)) - 1;
    }
    std::vector<Block> message(extension_message_blocks(k, count, random, checked)), t(count), q(count),
        ones(count);
    pair.receiver->extend(choices, random, message, t, threads);
    CHECK(pair.sender->extend(random, message, q, threads));
    std::size_t wrong = 0, set = 0;
    for (std::size_t j = 0; j < count; ++j) {
        const std::uint64_t bit = choices[j / 64] >> (j % 64) & 1;
        wrong += !(t[j] == (q[j] ^ (mask_of(bit) & pair.delta)));
        set += bit;
    }
    CHECK(wrong == 0);
    if (count > 1000) CHECK(set > count * 2 / 5 && set < count * 3 / 5);
    if (count % 64) CHECK(choices.back() >> (count % 64) == 0);

    CHECK(pair.receiver->early_tweak() == pair.sender->early_tweak());
    const Block r = prg.block();
    const Block first = t[0];
    hash_received(r, t, threads);
    check_tweak_of_first(r, first, t[0]);
    pair.sender->hash(r, q, q, ones, threads);
    for (std::size_t j = 0; j < count; ++j) {
        const bool bit = choices[j / 64] >> (j % 64) & 1;
        wrong += !(t[j] == (bit ? ones[j] : q[j])) || ones[j] == q[j];
    }
    CHECK(wrong == 0);
}

// No two trees, sessions or positions have a plaintext in common under their secret keys.
void check_sessions_and_trees_are_salted() {
    Prg prg = Prg::fixed_seed_for_tests({5, 6}), same = Prg::fixed_seed_for_tests({5, 6});
    const std::vector<Block> pairs(2 * kBaseOtCount);
    std::vector<Block> setup(setup_blocks(1, false));
    OtReceiver receiver(1, false, pairs, prg, setup);
    const Block session = same.block();
    CHECK(setup.back() == session);
    std::vector<Block> streams(kBaseOtCount);
    for (std::size_t tree = 0; tree < kBaseOtCount; ++tree) {
        const Block salt = session ^ Block { tree << 8, 0 }, plain[2] = {salt, salt ^ Block{1, 0}};
        Block leaves[2];
        aes_encrypt(AesKey(same.block()), plain, leaves, 2);
        CHECK(setup[2 * tree] == leaves[1] && setup[2 * tree + 1] == leaves[0]);
        for (const Block& leaf : leaves) {
            Block stream;
            aes_counter_stream(AesKey(leaf), {salt.lo, 0}, &stream, 1);
            streams[tree] ^= stream;
        }
    }
    std::vector<Block> message(extension_message_blocks(1, 128, false, false)), t(128);
    std::vector<std::uint64_t> choices(plane_words(128));
    receiver.extend(choices, false, message, t, 1);
    CHECK(message == streams);
}

bool passes(Pair& pair, unsigned k, std::size_t count, bool random,
            const std::function<void(std::vector<Block>&)>& change) {
    std::vector<std::uint64_t> choices(plane_words(count));
    std::vector<Block> message(extension_message_blocks(k, count, random, true)), t(count), q(count);
    pair.receiver->extend(choices, random, message, t, 1);
    change(message);
    const bool passed = pair.sender->extend(random, message, q, 1);
    CHECK(passed != pair.sender->has_refused());
    if (!passed) CHECK(q == std::vector<Block>(count));
    return passed;
}

// Any bit of any message, of OTs, of padding or of the check itself.
void check_refusals() {
    constexpr unsigned k = 4;
    constexpr std::size_t count = 200;
    for (const bool random : {false, true}) {
        const std::size_t blocks = extension_message_blocks(k, count, random, true);
        for (std::size_t at = 0; at<blocks; at += blocks> at + 8 ? 7 : 1) {
            Pair pair = connected(k, true);
            CHECK(passes(pair, k, count, random, [](std::vector<Block>&) {}));
            CHECK(!passes(pair, k, count, random,
                          [&](std::vector<Block>& m) { m[at].hi ^= std::uint64_t{1} << 63; }));
            CHECK(!passes(pair, k, count, random, [](std::vector<Block>&) {}));  // no more with this delta
        }
    }
    // Sums of tags, and their hash.
    for (std::size_t at = 2 * kBaseOtCount + 1; at < setup_blocks(k, true); at += 5) {
        CHECK(
            connected(k, true, [&](std::vector<Block>& setup) { setup[at].lo ^= 4; }).sender->has_refused());
    }
    // One of the two masked sums of a level: the sender reads it for one value of the bit of delta.
    std::size_t refused = 0;
    for (std::size_t row = 1; row < kBaseOtCount; ++row) {  // bit 0 of delta is 1
        Pair pair = connected(k, true, [&](std::vector<Block>& setup) { setup[2 * row].lo ^= 1; });
        CHECK(pair.sender->has_refused() == !pair.delta.bit(row));
        refused += pair.sender->has_refused();
    }
    CHECK(refused > 35 && refused < 92);  // five standard deviations around half of 127
    // Bound to other words, to another number of OTs or another kind of choices, alpha is another.
    Pair pair = connected(k, true);
    constexpr std::uint8_t said[] = {1, 2, 3};
    pair.sender->bind(said);
    CHECK(!passes(pair, k, count, false, [](std::vector<Block>&) {}));
}

}  // namespace

int main() {
    check_sessions_and_trees_are_salted();
    for (unsigned variant = 2; variant <= 17; ++variant) {
        const unsigned k = variant / 2;
        const bool checked = variant % 2;
        Pair pair = connected(k, checked);
        CHECK(!pair.sender->has_refused());
        check_extension(pair, k, checked, 3000, false, 1);
        check_extension(pair, k, checked, 1, true, 1);
        check_extension(pair, k, checked, 1024, true, 2);
        check_extension(pair, k, checked, 129, false, 2);
        for (const CpuFeatures& features : features_to_test()) {
            const LimitFeatures limit(features);
            check_extension(pair, k, checked, 300, false, 1);
            check_extension(pair, k, checked, 300, true, 2);
        }
    }
    // The traffic that DESIGN counts on: 4 bytes per OT at k = 4, 3.875 with random choices.
    CHECK(extension_message_blocks(4, 1280, false, false) * 16 == 4 * 1280);
    CHECK(extension_message_blocks(4, 1280, true, false) * 16 == 4960);
    CHECK(extension_message_blocks(4, 1280, false, true) * 16 == 4 * (1280 + 128) + 48);
    CHECK(extension_message_blocks(4, 1280, true, true) * 16 == 4960 + 496 + 48);
    CHECK(setup_blocks(4, true) * 16 == 4112 + 32 * 32 + 32);
    check_refusals();
    Block blocks[1024] = {};
    Prg prg;
    CHECK_THROWS(OtReceiver(9, true, blocks, prg, blocks));
    CHECK_THROWS(OtReceiver(0, false, blocks, prg, blocks));
    CHECK_THROWS(OtSender(4, false, Block{2, 0}, blocks, blocks));
    return test_result();
}
