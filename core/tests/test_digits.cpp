// The leaves of both parties add up to the carries of their bits, by hand, with dealt masks; for all widths and
// truncations.
#include "gmw/digits.h"

#include "check.h"
#include "dealer.h"

using namespace sphynx;
using namespace sphynx::bits;
using namespace sphynx::crypto;
using namespace sphynx::gmw;

namespace {

void check_digits(unsigned w, unsigned f, Prg& prg) {
    constexpr std::size_t count = 192, words = 3;  // two at a time and one
    const Digits digits(w, f, w - 1, 3);
    const std::size_t nodes = digits.tree().node_count();
    const Planes s = random_words(prg, count), c = random_words(prg, count);
    const Dealt dealt({Gadget::relu, w, 64, f, count}, c, prg);
    Planes codes(digits.code_rows() * words), own(digits.bit_rows() * words), g[2], p[2], top[2], wrap[2];
    digits.codes(s, codes);
    digits.bits(c, own);
    Planes masked = codes;
    for (std::size_t i = 0; i < masked.size(); ++i) masked[i] ^= dealt.leaf_masks[i];
    const auto shares = [&](int party) -> Digits::Leaves {
        g[party].resize(nodes * words), p[party].resize(nodes * words);
        top[party].resize(words), wrap[party].resize(words);
        return {g[party], p[party], top[party], wrap[party]};
    };
    digits.server_leaves(codes, dealt.leaf_products[0], shares(0));
    digits.client_leaves(own, dealt.leaf_products[1], masked, shares(1));
    Planes bits[2] = {Planes(w * words), Planes(w * words)};
    slice_bits(s.data(), count, w, bits[0].data());
    slice_bits(c.data(), count, w, bits[1].data());
    for (std::size_t j = 0; j < words; ++j) {
        const auto bit = [&](int party, unsigned number) { return bits[party][number * words + j]; };
        unsigned leaf = 0, at = 0;
        bool is_cut_at_f = f == 0;
        for (const unsigned width : digits.widths()) {
            CHECK(width >= 1 && width <= Digits::kMostBits);
            std::uint64_t generated = 0, passed = ~std::uint64_t{0};
            for (const unsigned next = at + width; at < next; ++at) {
                const std::uint64_t x = bit(0, at), y = bit(1, at);
                generated = (x & y) | (generated & (x ^ y));
                passed = (x & y) | (passed & (x ^ y));
            }
            is_cut_at_f |= at == f;
            const std::size_t i = leaf++ * words + j;
            CHECK((g[0][i] ^ g[1][i]) == generated);
            CHECK((p[0][i] ^ p[1][i]) == (generated ^ passed));
        }
        CHECK(at == w - 1 && is_cut_at_f && leaf == digits.tree().leaf_count());
        CHECK((top[0][j] ^ top[1][j]) == (bit(0, w - 1) ^ bit(1, w - 1)));
        CHECK((wrap[0][j] ^ wrap[1][j]) == (bit(0, w - 1) | bit(1, w - 1)));
    }
}

}  // namespace

int main() {
    Prg prg;
    for (unsigned w = 2; w <= 64; ++w) {
        for (unsigned f = 0; f <= w - 2; ++f) check_digits(w, f, prg);
    }
    CHECK_THROWS(Digits(1, 0, 0, 3));
    CHECK_THROWS(Digits(65, 0, 64, 3));
    CHECK_THROWS(Digits(8, 7, 7, 3));
    CHECK_THROWS(Digits(8, 2, 6, 3));
    CHECK_THROWS(Digits(8, 2, 64, 3));
    return test_result();
}
