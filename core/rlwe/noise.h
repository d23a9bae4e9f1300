// What a reply's noise can be, and what it costs: a bound that always holds, the root mean square, and the
// chance that the two shares of a coefficient are off by one.
//
// noise = [sum_i w_i (e_i + d_i) + u e + e1 s] / (dropped primes) + rounding of the switch, with |e| <= 21
// (variance 10.5), encoding error |d| <= 1/2, u and s ternary, e the public key's error. Shares differ from
// the truth only when rounding (x + noise + rho) and rounding rho fall on different sides: probability 2^k
// E|noise| / q' for uniform rho.
#pragma once

#include "rlwe/params.h"

namespace sphynx::rlwe {

struct NoiseBound {
    double worst;            // |noise| never exceeds it
    double rms;              // root mean square over the keys' and errors' randomness
    double log2_off_by_one;  // log2 of the probability per coefficient that the shares' sum is off by one
};

// l1, l2_squared: sums of |w| and w^2 over all plaintext coefficients that enter one reply.
NoiseBound reply_noise(const Params& params, double l1, double l2_squared);

}  // namespace sphynx::rlwe
