// The last step of a GMW ReLU: y = d ((x_s >> f) + (x_c >> f) + c_f - wrap 2^(w-f)) mod 2^k from opened bits
// D = d xor delta, E1 = c_f xor b1, E2 = wrap xor b2, the opened Z = (x_s >> f) - alpha, and preprocessed
// additive shares of delta, b1, b2, delta b1, delta b2 and delta (alpha + (x_c >> f)). With s(D) = 1 - 2 D:
//   d = D + s(D) delta,   d (Z + v) = D (Z + v) + s(D) (Z delta + delta v)      for v = alpha + (x_c >> f)
//   d b = (D + s(D) delta)(E + s(E) beta)                                       for b = c_f, wrap
// All local; constant time.
#pragma once

#include "views.h"

namespace sphynx::gmw {

struct MultiplexShares {
    WordView delta, b1, b2, delta_b1, delta_b2, delta_v;
};

struct OpenedBits {
    WordView d, e1, e2;  // planes
    WordView z;          // values
};

// own: alpha at the server, x_c >> f at the client. wrap_shift = w - f. Exactly one party adds the public
// terms. y may be own.
void multiplex(const OpenedBits& opened, const MultiplexShares& shares, WordView own, unsigned k,
               unsigned wrap_shift, bool adds_public, WordSpan y);

// The last step of a truncation: x >> f = (x_s >> f) + (x_c >> f) + c_f - wrap 2^(w-f) from the opened planes E1 and
// E2 and additive shares of b1, b2; own: x >> f of this party's share. wrap_shift = w - f < 64. y may be own.
void truncated_sum(WordView e1, WordView e2, WordView b1, WordView b2, WordView own, unsigned k,
                   unsigned wrap_shift, bool adds_public, WordSpan y);

}  // namespace sphynx::gmw
