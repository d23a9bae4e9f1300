// The S-box circuit against the definition: inverse modulo x^8 + x^4 + x^3 + x + 1, then the affine map.
#include "crypto/sbox.h"

#include "check.h"

namespace {

unsigned multiply(unsigned a, unsigned b) {
    unsigned product = 0;
    for (; b; b >>= 1, a = (a << 1) ^ ((a >> 7) * 0x11b)) product ^= (b & 1) * a;
    return product;
}

unsigned defined_substitution(unsigned a) {
    unsigned inverse = 0;
    for (unsigned b = 1; b < 256; ++b) {
        if (multiply(a, b) == 1) inverse = b;
    }
    unsigned image = 0x63;
    for (int turn = 0; turn < 5; ++turn) image ^= (inverse << turn | inverse >> (8 - turn)) & 255;
    return image;
}

}  // namespace

int main() {
    for (unsigned a = 0; a < 256; ++a) {
        std::array<std::uint64_t, 8> bits;
        for (int i = 0; i < 8; ++i) bits[i] = -static_cast<std::uint64_t>(a >> i & 1);
        const auto image = sphynx::crypto::sbox::substitute<std::uint64_t>(bits);
        unsigned value = 0;
        for (int i = 0; i < 8; ++i) {
            CHECK(image[i] == 0 || image[i] == ~std::uint64_t{0});
            value |= static_cast<unsigned>(image[i] & 1) << i;
        }
        CHECK(value == defined_substitution(a));
    }
    return test_result();
}
