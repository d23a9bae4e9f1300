// t = q xor r delta for every parameter, with chosen and random r, over several extensions, threads and
// paths.
#include "ot/extension.h"

#include <memory>
#include <vector>

#include "bits/transpose.h"
#include "check.h"
#include "cpu.h"
#include "crypto/hash.h"
#include "crypto/prg.h"

using namespace sphynx;

namespace {

struct Pair {
    std::unique_ptr<OtReceiver> receiver;
    std::unique_ptr<OtSender> sender;
    Block delta;
};

Pair connected(unsigned k) {
    Prg prg;
    Block delta = prg.block();
    delta.lo |= 1;
    std::vector<Block> pairs(2 * base_ot_count), keys(base_ot_count), setup(setup_blocks);
    prg.fill_blocks(pairs.data(), pairs.size());
    for (std::size_t j = 0; j < base_ot_count; ++j) {
        keys[j] = pairs[2 * j + delta.bit(j)];
    }
    Pair pair{std::make_unique<OtReceiver>(k, pairs.data(), prg, setup.data()), nullptr, delta};
    pair.sender = std::make_unique<OtSender>(k, delta, keys.data(), setup.data());
    return pair;
}

// The first OT has tweak 0, the key is block 0 of stream 1 under R.
void check_tweak_of_first(Block r, Block t, Block pad) {
    Block key, plain = sigma(t), cipher;
    expand_seed(AesKey(r), 1, 0, &key, 1);
    aes_encrypt(AesKey(key), &plain, &cipher, 1);
    CHECK(pad == (cipher ^ plain));
}

void check_extension(Pair& pair, unsigned k, std::size_t count, bool random, unsigned threads) {
    Prg prg;
    std::vector<std::uint64_t> choices(plane_words(count));
    if (!random) {
        prg.fill(choices.data(), 8 * choices.size());
        if (count % 64) choices.back() &= (std::uint64_t{1} << (count % 64)) - 1;
    }
    std::vector<Block> message(extension_message_blocks(k, count, random)), t(count), q(count), ones(count);
    pair.receiver->extend(count, choices.data(), random, message.data(), t.data(), threads);
    pair.sender->extend(count, random, message.data(), q.data(), threads);
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
    hash_received(r, t.data(), count, threads);
    check_tweak_of_first(r, first, t[0]);
    pair.sender->hash(r, q.data(), count, q.data(), ones.data(), threads);
    for (std::size_t j = 0; j < count; ++j) {
        const bool bit = choices[j / 64] >> (j % 64) & 1;
        wrong += !(t[j] == (bit ? ones[j] : q[j])) || ones[j] == q[j];
    }
    CHECK(wrong == 0);
}

// No two trees, sessions or positions have a plaintext in common under their secret keys.
void check_sessions_and_trees_are_salted() {
    Prg prg = Prg::fixed_seed_for_tests({5, 6}), same = Prg::fixed_seed_for_tests({5, 6});
    const std::vector<Block> pairs(2 * base_ot_count);
    std::vector<Block> setup(setup_blocks);
    OtReceiver receiver(1, pairs.data(), prg, setup.data());
    const Block session = same.block();
    CHECK(setup.back() == session);
    std::vector<Block> streams(base_ot_count);
    for (std::size_t tree = 0; tree < base_ot_count; ++tree) {
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
    std::vector<Block> message(extension_message_blocks(1, 128, false)), t(128);
    std::vector<std::uint64_t> choices(plane_words(128));
    receiver.extend(128, choices.data(), false, message.data(), t.data(), 1);
    CHECK(message == streams);
}

}  // namespace

int main() {
    check_sessions_and_trees_are_salted();
    for (unsigned k = 1; k <= 8; ++k) {
        Pair pair = connected(k);
        check_extension(pair, k, 3000, false, 1);
        check_extension(pair, k, 1, true, 1);
        check_extension(pair, k, 1024, true, 2);
        check_extension(pair, k, 129, false, 2);
        for (const CpuFeatures& features : features_to_test()) {
            const LimitFeatures limit(features);
            check_extension(pair, k, 300, false, 1);
            check_extension(pair, k, 300, true, 2);
        }
    }
    // The traffic that DESIGN counts on: 4 bytes per OT at k = 4, 3.875 with random choices.
    CHECK(extension_message_blocks(4, 1280, false) * 16 == 4 * 1280);
    CHECK(extension_message_blocks(4, 1280, true) * 16 == 4960);
    Block blocks[setup_blocks] = {};
    Prg prg;
    CHECK_THROWS(OtReceiver(9, blocks, prg, blocks));
    CHECK_THROWS(OtReceiver(0, blocks, prg, blocks));
    CHECK_THROWS(OtSender(4, Block{2, 0}, blocks, blocks));
    return test_result();
}
