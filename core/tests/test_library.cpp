// AND counts of the ReLU circuit at several widths, the ReLU itself at the corners, AES-128 by FIPS 197 C.1.
#include "circuit/library.h"

#include <vector>

#include "bits/transpose.h"
#include "check.h"

using namespace sphynx;
using namespace sphynx::bits;
using namespace sphynx::circuit;

namespace {

std::uint64_t low_bits(unsigned width) {
    return ~std::uint64_t{0} >> (64 - width);
}

std::uint64_t relu(std::uint64_t x, unsigned w, unsigned f) {
    return x >> (w - 1) & 1 ? 0 : x >> f;
}

void check_relu(unsigned w, unsigned k, unsigned f) {
    const Circuit circuit = relu_circuit(w, k, f);
    CHECK(circuit.and_count() == (w - 1) + (w - 1 - f) + (k - 1));
    const std::uint64_t top = std::uint64_t{1} << (w - 1);
    const std::vector<std::uint64_t> corners = {0,       1,       low_bits(w),      top,
                                                top - 1, top + 1, low_bits(w) >> 2, 1ull << f};
    std::vector<std::uint64_t> x_server, x_client, mask;
    for (const std::uint64_t x : corners) {
        for (const std::uint64_t share : corners) {
            x_server.push_back((x - share) & low_bits(w));
            x_client.push_back(share);
            mask.push_back((x * 0x9e3779b97f4a7c15 + share) & low_bits(k));
        }
    }
    std::vector<std::uint64_t> planes(2 * w + k), out(k), y(64);
    slice_bits(x_server.data(), 64, w, planes.data());
    slice_bits(x_client.data(), 64, w, planes.data() + w);
    slice_bits(mask.data(), 64, k, planes.data() + 2 * w);
    evaluate_in_clear(circuit, planes.data(), 1, out.data());
    unslice_bits(out.data(), 64, k, y.data());
    for (std::size_t j = 0; j < 64; ++j) {
        CHECK(((y[j] + mask[j]) & low_bits(k)) == relu(corners[j / 8] & low_bits(w), w, f));
    }
}

// Scores of 64 images, small ones so that many are equal, against the largest by plain comparisons.
void check_label(unsigned classes, unsigned w, std::uint64_t margin) {
    const Circuit circuit = label_circuit(classes, w, margin);
    std::vector<std::int64_t> scores(classes * 64);
    std::vector<std::uint64_t> planes(2 * classes * w);
    std::uint64_t state = 1;
    for (unsigned number = 0; number < classes; ++number) {
        std::uint64_t server[64], client[64];
        for (unsigned j = 0; j < 64; ++j) {
            state = state * 0x5851f42d4c957f2d + 0x14057b7ef767814f;
            std::int64_t& score = scores[number * 64 + j];
            score = static_cast<std::int64_t>(state) >> (j % 2 ? 64 - w : 62);
            client[j] = state * 0x9e3779b97f4a7c15 & low_bits(w);
            server[j] = (static_cast<std::uint64_t>(score) - client[j]) & low_bits(w);
        }
        slice_bits(server, 64, w, &planes[number * w]);
        slice_bits(client, 64, w, &planes[(classes + number) * w]);
    }
    std::vector<std::uint64_t> out(circuit.outputs.size());
    evaluate_in_clear(circuit, planes.data(), 1, out.data());
    const std::size_t label_bits = circuit.output_widths[0];
    for (unsigned j = 0; j < 64; ++j) {
        unsigned best = 0, label = 0;
        for (unsigned number = 1; number < classes; ++number) {
            if (scores[number * 64 + j] > scores[best * 64 + j]) best = number;
        }
        for (std::size_t bit = 0; bit < label_bits; ++bit) label |= (out[bit] >> j & 1) << bit;
        CHECK(label == best);
        if (margin == 0) continue;
        bool leads = true;
        for (unsigned number = 0; number < classes; ++number) {
            const auto lead = static_cast<std::uint64_t>(scores[best * 64 + j] - scores[number * 64 + j]);
            if (number != best && lead < margin) leads = false;
        }
        CHECK((out[label_bits] >> j & 1) == leads);
    }
}

}  // namespace

int main() {
    CHECK(relu_circuit(32, 32, 8).and_count() == 85);
    check_relu(32, 32, 8);
    check_relu(34, 40, 8);
    check_relu(64, 64, 16);
    check_relu(20, 41, 0);
    check_relu(8, 8, 6);
    CHECK_THROWS(relu_circuit(33, 32, 8));
    CHECK_THROWS(relu_circuit(32, 65, 8));
    CHECK_THROWS(relu_circuit(32, 32, 31));
    CHECK(label_circuit(10, 28, 0).and_count() == 767 && label_circuit(10, 28, 1024).and_count() == 1287);
    check_label(2, 4, 0);
    check_label(2, 4, 2);
    check_label(3, 20, 1000);
    check_label(11, 31, 0);
    check_label(11, 31, 3);
    check_label(5, 63, std::uint64_t{1} << 61);
    CHECK_THROWS(label_circuit(1, 28, 0));
    CHECK_THROWS(label_circuit(4097, 28, 0));
    CHECK_THROWS(label_circuit(10, 64, 0));
    CHECK_THROWS(label_circuit(10, 28, 1u << 28));
    CHECK(floor_circuit(20, 36, 5).and_count() == 19 + 35);
    CHECK_THROWS(floor_circuit(33, 32, 8));
    CHECK_THROWS(floor_circuit(32, 32, 32));

    const Circuit aes = aes128_circuit();
    CHECK(aes.and_count() == 200 * 36);
    std::vector<std::uint64_t> in(256), out(128);
    const unsigned char expected[16] = {0x69, 0xc4, 0xe0, 0xd8, 0x6a, 0x7b, 0x04, 0x30,
                                        0xd8, 0xcd, 0xb7, 0x80, 0x70, 0xb4, 0xc5, 0x5a};
    for (int i = 0; i < 128; ++i) {
        in[i] = (i / 8) >> (i % 8) & 1;
        in[128 + i] = (0x11 * (i / 8)) >> (i % 8) & 1;
    }
    evaluate_in_clear(aes, in.data(), 1, out.data());
    for (int i = 0; i < 128; ++i) CHECK((out[i] & 1) == (expected[i / 8] >> (i % 8) & 1u));
    return test_result();
}
