// Each form on ideal random OTs (pads and choices drawn together), so that only the form itself is tested.
#include "ot/forms.h"

#include <vector>

#include "bits/pack.h"
#include "bits/transpose.h"
#include "check.h"
#include "cpu.h"
#include "crypto/prg.h"

using namespace sphynx;
using namespace sphynx::bits;
using namespace sphynx::crypto;
using namespace sphynx::ot;

int main() {
    Prg prg;
    for (const std::size_t count : {1, 64, 1000}) {
        std::vector<Block> m0(count), m1(count), m_r(count), x0(count), x1(count), out(count),
            message(2 * count);
        std::vector<std::uint64_t> choices(plane_words(count)), x(count), sent(count), received(count);
        for (auto* blocks : {&m0, &m1, &x0, &x1}) prg.fill_blocks(blocks->data(), count);
        prg.fill(choices.data(), 8 * choices.size());
        prg.fill(x.data(), 8 * count);
        const auto choice = [&](std::size_t j) { return choices[j / 64] >> (j % 64) & 1; };
        for (std::size_t j = 0; j < count; ++j) m_r[j] = choice(j) ? m1[j] : m0[j];

        for (const CpuFeatures& features : features_to_test())
            for (const unsigned width : {1u, 3u, 6u, 8u, 9u, 64u}) {
                const LimitFeatures limit(features);
                std::vector<std::uint64_t> planes(width * plane_words(count));
                low_bit_planes(m0, width, planes);
                for (std::size_t j = 0; j < count; ++j) {
                    for (unsigned b = 0; b < width; ++b) {
                        CHECK((planes[b * plane_words(count) + j / 64] >> (j % 64) & 1) ==
                              (m0[j].lo >> b & 1));
                    }
                }
            }

        send_chosen(m0, m1, x0, x1, message);
        receive_chosen(m_r, choices, message, out);
        for (std::size_t j = 0; j < count; ++j) CHECK(out[j] == (choice(j) ? x1[j] : x0[j]));

        for (const unsigned width : {1u, 32u, 41u, 64u}) {
            const std::uint64_t ring = ~std::uint64_t{0} >> (64 - width);
            std::vector<std::uint8_t> packed(packed_bytes(count, width));
            send_products(m0, m1, x, width, packed, sent);
            receive_products(m_r, choices, packed, width, received);
            for (std::size_t j = 0; j < count; ++j) {
                CHECK(((sent[j] + received[j]) & ring) == (choice(j) * x[j] & ring));
            }
        }
    }
    return test_result();
}
