#include "block.h"

#include "check.h"

using namespace sphynx;

int main() {
    const Block block{0x8000000000000001, 0x4000000000000002};
    for (std::size_t i = 0; i < 128; ++i) CHECK(block.bit(i) == (i == 0 || i == 63 || i == 65 || i == 126));
    CHECK(block.lowest_bit() && !(block ^ block).lowest_bit());
    CHECK((mask_of(0) == Block{0, 0}) && (mask_of(1) == Block{~std::uint64_t{0}, ~std::uint64_t{0}}));
    CHECK((mask_of(2) == Block{0, 0}));
    CHECK(((block ^ block) == Block{}) && ((block & mask_of(1)) == block));
    Block secret = block;
    zeroise(&secret, sizeof secret);
    CHECK(secret == Block{});
    return test_result();
}
