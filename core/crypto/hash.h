// Tweakable circular correlation-robust hash from AES (Guo, Katz, Wang, Yu, eprint 2019/074):
//   H(x, tau) = AES_K(sigma(x) xor tau) xor sigma(x),   sigma(hi || lo) = (hi xor lo) || hi.
//
// What it takes: under one K no two hashes of secrets x may have the same AES input. If sigma(x xor x') = tau xor tau',
// two hashes of inputs that differ by the secret offset share it, and their sum gives that offset away. Where the
// inputs are uniform, distinct tweaks are enough. Where the adversary influences them (a receiver of OTs chooses its
// seeds, and so the differences of labels), distinct tweaks that it knows beforehand are not: it makes the inputs fit.
// Fresh keys do not help either, for tau xor tau' does not depend on K. So tweaks are j R (tweaks.h) with R drawn by
// the other party after the inputs are fixed: each pair then collides with probability 2^-128, p hashes under one key
// with less than p^2 / 2^128, and nobody can try again without the other party.
//
// K is public, fresh for each gate of a layer in garbling and for each extension in OT, derived from R. In the
// ideal-cipher model an adversary that makes q cipher calls and sees p hashes under one key gains about p q / 2^128
// beyond that: with p near 2^14 a key, and the constants of the proof, about 112 bits remain; one key for a whole
// bundle of 2^21 ANDs would leave about 105.
#pragma once

#include "crypto/aes.h"

namespace sphynx::crypto {

// sigma is a linear orthomorphism: sigma and x -> sigma(x) xor x are both permutations.
constexpr Block sigma(Block x) {
    return {x.hi, x.hi ^ x.lo};
}

// out[j] = H(in[j], tweaks[j]); `in` and `out` may be the same array.
void hash_blocks(const AesKey& key, const Block* in, const Block* tweaks, Block* out, std::size_t count);

}  // namespace sphynx::crypto
