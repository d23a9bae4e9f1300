// Garbling, OT, GMW, sampling and both halves of RLWE on secrets that memcheck holds to be undefined: it reports every
// branch and every address that depends on one. Run by `make test-constant-time`, on the portable paths and on those of
// the CPU that valgrind emulates.
//   constant_time portable | fastest     must end without an error
//   constant_time leak                   must not: memcheck sees a branch where there is one
#include <cstdio>
#include <cstring>
#include <string_view>
#include <vector>

#include "bits/pack.h"
#include "bits/transpose.h"
#include "circuit/library.h"
#include "cpu.h"
#include "crypto/hash.h"
#include "crypto/prg.h"
#include "crypto/tweaks.h"
#include "garble/garble.h"
#include "gmw/party.h"
#include "ot/extension.h"
#include "ot/forms.h"
#include "ot/silent.h"
#include "rlwe/client.h"
#include "rlwe/sample.h"
#include "rlwe/server.h"
#include "secret.h"

using namespace sphynx;
using namespace sphynx::bits;
using namespace sphynx::circuit;
using namespace sphynx::crypto;
using namespace sphynx::garble;
using namespace sphynx::gmw;
using namespace sphynx::ot;

namespace {

template <class T>
std::vector<T> secrets(std::size_t count) {
    std::vector<T> made(count);
    Prg prg = Prg::fixed_seed_for_tests({count, sizeof(T)});
    prg.fill(made.data(), count * sizeof(T));
    mark_secret(made.data(), count * sizeof(T));
    return made;
}

Block secret_block() {
    return secrets<Block>(1)[0];
}

void run_hash_and_prg() {
    Prg prg = Prg::fixed_seed_for_tests(secret_block());
    std::vector<Block> blocks(37), hashed(37), tweaks(37);
    Tweaks({7, 8}).fill(5, tweaks.data(), tweaks.size());
    prg.fill_blocks(blocks.data(), blocks.size());
    hash_blocks(AesKey({1, 2}), blocks.data(), tweaks.data(), hashed.data(), blocks.size());
}

void run_garbling() {
    const Circuit circuit = relu_circuit(12, 14, 3);
    const Plan plan(circuit);
    constexpr std::size_t instances = 70;
    const GarbleBatch batch{{3, 4}, 0, instances, 1};
    const std::size_t inputs = 12 + 12 + 14, words = plane_words(instances);
    Block delta = secret_block();
    delta.lo |= 1;
    const std::vector<Block> zeros = secrets<Block>(inputs * instances);
    const std::vector<std::uint64_t> planes = secrets<std::uint64_t>(inputs * words);
    std::vector<Block> labels(zeros.size()), tables(2 * circuit.and_count() * instances);
    std::vector<std::uint64_t> colours(14 * words);
    garble::garble(plan, batch, delta, zeros, tables, {colours});
    encode_labels(delta, zeros, planes, instances, labels, 1);
    evaluate(plan, batch, labels, tables, {colours});
}

void run_ot(bool random_choices, bool checked) {
    constexpr std::size_t count = 300;
    constexpr unsigned k = 4, width = 20;
    Prg prg = Prg::fixed_seed_for_tests(secret_block());
    Block delta = secret_block();
    delta.lo |= 1;
    const std::vector<Block> pairs = secrets<Block>(2 * kBaseOtCount), keys = secrets<Block>(kBaseOtCount);
    std::vector<Block> setup(setup_blocks(k, checked)),
        message(extension_message_blocks(k, count, random_choices, checked));
    std::vector<Block> t(count), q(count), ones(count);
    std::vector<std::uint64_t> choices = secrets<std::uint64_t>(plane_words(count));
    OtReceiver receiver(k, checked, pairs, prg, setup);
    OtSender sender(k, checked, delta, keys, setup);
    receiver.extend(choices, random_choices, message, t, 1);
    (void)sender.extend(random_choices, message, q, 1);
    hash_received({5, 6}, t, 1);
    sender.hash({5, 6}, q, q, ones, 1);

    std::vector<std::uint64_t> bits(width * plane_words(count)), shares(count);
    low_bit_planes(t, width, bits);
    const std::vector<std::uint64_t> x = secrets<std::uint64_t>(count);
    std::vector<std::uint8_t> packed(packed_bytes(count, width));
    send_products(q, ones, x, width, packed, shares);
    receive_products(t, choices, packed, width, shares);
    std::vector<Block> strings(3 * count);
    expand_pads(t, 3, strings, 1);
    std::vector<Block> chosen(2 * count), out(count);
    send_chosen(q, ones, q, t, chosen);
    receive_chosen(t, choices, chosen, out);
}

void run_silent_ot(bool random_choices, bool checked) {
    constexpr SilentShape shape = {320, 16, 6};
    constexpr std::size_t count = 400;
    const Block session = {1, 2};
    Prg prg = Prg::fixed_seed_for_tests(secret_block());
    Block delta = secret_block();
    delta.lo |= 1;
    const std::vector<Block> seeds = secrets<Block>(shape.seeds());
    SilentSender sender(shape, session, delta, seeds);
    SilentReceiver receiver(shape, checked, session, seeds);
    std::vector<Block> message(shape.refill_blocks()),
        corrections(silent_message_blocks(count, random_choices));
    sender.refill(prg, message, 1);
    for (Block& block : message) block = public_value(block);
    Block masked = receiver.refill(message, 1);
    if (checked) (void)receiver.accept(sender.prove(masked, 1));
    if (receiver.available() == 0) return;
    std::vector<std::uint64_t> choices = secrets<std::uint64_t>(plane_words(count));
    std::vector<Block> t(count), q(count);
    receiver.extend(choices, random_choices, corrections, t, 1);
    sender.extend(corrections, q, 1);
    std::vector<Block> again(shape.refill_blocks());
    sender.refill(prg, again, 1);
    receiver.refill(again, 1);
}

void run_gmw(Gadget gadget) {
    constexpr std::size_t count = 130, words = plane_words(count);
    const GadgetShape shape{gadget, 17, 20, 5, count};
    const Digits digits = shape.digits();
    const std::vector<std::uint64_t> values = secrets<std::uint64_t>(count);
    const auto planes = [](std::size_t rows) { return secrets<std::uint64_t>(rows * words); };
    const auto products = planes(digits.product_rows()),
               pairs = planes(NodeMasks::pair_rows * digits.tree().pair_count()),
               threes = planes(NodeMasks::three_rows * digits.tree().three_count()),
               bits = planes(shape.result_rows()), masks = planes(digits.code_rows()),
               arithmetic = secrets<std::uint64_t>(shape.arithmetic_rows() * count);
    const PartyMaterial material{products, {pairs, threes}, bits, arithmetic};
    const auto message = [](std::size_t bytes) { return secrets<std::uint8_t>(bytes); };
    const auto answer = [&](auto& party) {
        const auto received = message(party.received_bytes());
        auto sent = message(party.answer_bytes());
        party.answer(received, sent);
    };
    ServerParty server(shape, digits, {material, masks, values}, values);
    auto sent = message(server.first_bytes());
    server.first(sent);
    while (!server.is_last()) answer(server);
    std::vector<std::uint64_t> y(count);
    server.finish(message(server.received_bytes()), y);

    ClientParty client(shape, digits, {material, values}, values);
    while (!client.is_over()) answer(client);
}

// What OTs give both parties before there is an image: masks of the server's codes, and products of both.
void run_digits(Gadget gadget) {
    constexpr std::size_t count = 130, words = plane_words(count);
    const Digits digits = GadgetShape{gadget, 17, 20, 5, count}.digits();
    const std::vector<std::uint64_t> values = secrets<std::uint64_t>(count);
    const std::vector<Block> zeros = secrets<Block>(64 * words * digits.bit_rows()),
                             ones = secrets<Block>(zeros.size());
    std::vector<std::uint64_t> bits(digits.bit_rows() * words), codes(digits.code_rows() * words),
        masks(codes), products(digits.product_rows() * words), corrections(digits.correction_rows() * words);
    digits.bits(values, bits);
    digits.codes(values, codes);
    digits.masks(zeros, ones, masks, products, corrections);
    digits.products(zeros, bits, corrections, products);
}

void run_bits() {
    constexpr std::size_t count = 130;
    const std::vector<std::uint64_t> values = secrets<std::uint64_t>(count);
    std::vector<std::uint64_t> back(count);
    for (const unsigned width : {17u, 41u, 61u}) {  // of each way to slice and to pack
        std::vector<std::uint64_t> planes(width * plane_words(count));
        slice_bits(values.data(), count, width, planes.data());
        unslice_bits(planes.data(), count, width, back.data());
        std::vector<std::uint8_t> packed(packed_bytes(count, width));
        pack_ring(values.data(), count, width, packed.data());
        unpack_ring(packed.data(), count, width, back.data());
    }
}

void run_sampling_and_encryption() {
    const auto params = rlwe::Params::for_ring(32);
    const auto n = static_cast<std::size_t>(params->n());
    const AesKey key(secret_block());
    rlwe::SeedStream stream(key, 0);
    std::vector<std::int32_t> out(n);
    rlwe::sample_ternary(stream, n, out.data());
    rlwe::sample_error(stream, n, out.data());
    rlwe::sample_uniform(stream, params->modulus(0), n, out.data());

    Prg prg = Prg::fixed_seed_for_tests(secret_block());
    const rlwe::SecretKey secret(params, prg);
    const std::vector<std::uint64_t> message = secrets<std::uint64_t>(n);
    std::vector<std::uint8_t> wire(params->upload_bytes());
    secret.encrypt(message.data(), 1, prg, 1, wire.data());

    const rlwe::UsedCoefficients used{{0, 1, 4095}, {3}};
    std::vector<std::uint8_t> reply(
        used.reply_bytes(*params));  // zeros are residues, and public as any wire is
    std::vector<std::uint64_t> share(used.total());
    secret.decrypt(reply, used, 1, 1, share.data());
}

// What blinds a reply is secret; key and upload are the client's, and weights are checked for their size.
void run_reply() {
    const auto params = rlwe::Params::for_ring(32);
    const rlwe::PublicKey key(params, std::vector<std::uint8_t>(params->public_key_bytes()));
    const rlwe::Ciphertexts upload(params, std::vector<std::uint8_t>(params->upload_bytes()), 1, 1);
    const rlwe::Weights weights(params, 1, 1, params->n());
    const rlwe::UsedCoefficients used{{0, 1, 4095}, {3}};
    Prg prg = Prg::fixed_seed_for_tests(secret_block());
    std::vector<std::uint8_t> wire(used.reply_bytes(*params));
    std::vector<std::uint64_t> share(used.total());
    rlwe::respond(key, weights, {upload.data(0)}, 1, used, prg, 1, wire.data(), share.data());
}

[[gnu::noinline]] int leak() {
    return secret_block().lo & 2 ? std::puts("set") : std::puts("not set");
}

}  // namespace

int main(int count, char** words) {
    const std::string_view path = count > 1 ? words[1] : "";
    if (path == "leak") return leak() < 0;
    if (path != "portable" && path != "fastest") return 2;
    const LimitFeatures limit(path == "portable" ? CpuFeatures{} : hardware_features());
    run_hash_and_prg();
    run_garbling();
    for (const bool random_choices : {false, true}) {
        for (const bool checked : {false, true}) {
            run_ot(random_choices, checked);
            run_silent_ot(random_choices, checked);
        }
    }
    for (const Gadget gadget : {Gadget::relu, Gadget::truncation}) {
        run_gmw(gadget);
        run_digits(gadget);
    }
    run_bits();
    run_sampling_and_encryption();
    run_reply();
    std::printf("no error on the path %s\n", aes_path_name());
}
