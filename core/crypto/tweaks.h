// Tweaks of the hash (hash.h): tau_j = j R in GF(2^128), R a public block, j < 2^64 read as a polynomial.
//
// Bit i of a block is the coefficient of x^i, the modulus is x^128 + x^7 + x^2 + x + 1. Two tweaks differ by
// tau_i xor tau_j = (i xor j) R. If R is drawn uniformly after the inputs x_i, x_j are fixed, that equals a given
// sigma(x_i xor x_j) with probability 2^-128. With tweaks that were known before, whoever influences the inputs
// makes it so. Only R travels.
//
// Neighbours differ by (2^(c+1) - 1) R, c the trailing zeros of the greater index: one look-up and one sum, no AES and no
// multiplication; and tau_(8 i + j) = tau_(8 i) + tau_j for j < 8, so that takes one look-up for eight tweaks. Nothing
// here is secret once R is out, so that look-up may depend on the index.
#pragma once

#include "block.h"

namespace sphynx::crypto {

// a x, for a in GF(2^128).
constexpr Block doubled(Block a) {
    const std::uint64_t carry = a.hi >> 63;
    return {a.lo << 1 ^ (-carry & 0x87), a.hi << 1 ^ a.lo >> 63};
}

class Tweaks {
  public:
    explicit Tweaks(Block r);

    // out[i] = tau_(first + i); first + count <= 2^64.
    void fill(std::uint64_t first, Block* out, std::size_t count) const;

  private:
    static constexpr std::size_t kGroup = 8;

    Block of(std::uint64_t index) const;

    Block multiples_[64];  // x^b R
    Block steps_[64];      // (2^(c+1) - 1) R
    Block first_[kGroup];  // tau_0 to tau_7
};

}  // namespace sphynx::crypto
