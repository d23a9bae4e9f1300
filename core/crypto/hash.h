// Tweakable circular correlation-robust hash from AES (Guo, Katz, Wang, Yu, eprint 2019/074):
//   H(x, i) = AES_K(sigma(x) xor i) xor sigma(x),   sigma(hi || lo) = (hi xor lo) || hi.
// K is public. It is fresh for each (bundle, layer, gate) in garbling and for each extension in OT, and no
// tweak i repeats under one K. In the ideal-cipher model an adversary that makes q cipher calls and sees p
// hashes under one key gains about p q / 2^128: with p near 2^14 a key, and the constants of the proof, about
// 112 bits remain; one key for a whole bundle of 2^21 ANDs would leave about 105.
#pragma once

#include "crypto/aes.h"

namespace sphynx {

// sigma is a linear orthomorphism: sigma and x -> sigma(x) xor x are both permutations.
constexpr Block sigma(Block x) {
    return {x.hi, x.hi ^ x.lo};
}

// out[j] = H(in[j], first_tweak + j); `in` and `out` may be the same array.
void hash_blocks(const AesKey& key, const Block* in, std::uint64_t first_tweak, Block* out,
                 std::size_t count);

}  // namespace sphynx
