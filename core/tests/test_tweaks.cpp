// Tweaks against multiplication bit by bit, from any start; differences of neighbours as the hash needs them.
#include "crypto/tweaks.h"

#include <vector>

#include "check.h"
#include "crypto/prg.h"

using namespace sphynx;
using namespace sphynx::crypto;

namespace {

Block multiplied(std::uint64_t index, Block r) {
    Block product = {};
    for (int bit = 63; bit >= 0; --bit) product = doubled(product) ^ (mask_of(index >> bit) & r);
    return product;
}

}  // namespace

int main() {
    // x^127 x = x^128 = x^7 + x^2 + x + 1, and no other bit is lost.
    CHECK((doubled({0, std::uint64_t{1} << 63}) == Block{0x87, 0}));
    CHECK((doubled({std::uint64_t{1} << 63, 3}) == Block{0, 7}));

    Prg prg = Prg::fixed_seed_for_tests({8, 9});
    const Block r = prg.block();
    const Tweaks tweaks(r);
    for (const std::uint64_t first : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1000},
                                      std::uint64_t{1} << 36, ~std::uint64_t{0} - 299}) {
        std::vector<Block> filled(300);
        tweaks.fill(first, filled.data(), filled.size());
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < filled.size(); ++i) wrong += !(filled[i] == multiplied(first + i, r));
        CHECK(wrong == 0);
    }
    std::vector<Block> filled(64);
    tweaks.fill(0, filled.data(), filled.size());
    CHECK(filled[0] == Block{});
    for (std::size_t i = 0; i < filled.size(); i += 2) CHECK((filled[i] ^ filled[i + 1]) == r);
    return test_result();
}
