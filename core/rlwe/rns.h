// Between Z_2^k and the RNS form of Z_q: encoding, rounding back, and the switch to fewer primes.
//
//   encode   x = round(q m / 2^k). With r = q m mod 2^k taken in [-2^(k-1), 2^(k-1)), 2^k x = q m - r and p_i
//            divides q, so x = -r 2^-k mod p_i: exact, no long integers.
//   round    round(2^k x / q) mod 2^k = round(sum_i y_i 2^k / p_i) with y_i = x (q/p_i)^-1 mod p_i. The sum
//            is taken in units of 2^-128 of the circle with 160-bit reciprocals, so its own error is below
//            2^-124, far under the 2^-104 between phases.
//   switch   x' = (x - [x]_p) / p for the last prime p, [x]_p centred: rounding to within 0.51.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "rlwe/params.h"

namespace sphynx::rlwe {

// Polynomials in RNS form are prime-major: residue j of prime i at [i * stride + j].
class RnsCodec {
  public:
    explicit RnsCodec(const Params& params);

    // out[i * count + j] = round(q message[j] / 2^k) mod p_i, centred, for all primes.
    void encode(const std::uint64_t* message, std::size_t count, std::int32_t* out) const;
    // round(2^k x / q') mod 2^k, q' the product of the reply primes; x centred, prime-major with stride
    // count.
    void round(const std::int32_t* x, std::size_t count, std::uint64_t* out) const;
    // Drops all but the reply primes, in place; x has all primes with stride count.
    void switch_down(std::int32_t* x, std::size_t count) const;

  private:
    const Params& params_;
    std::uint64_t q_mod_ring_;                // q mod 2^64
    std::vector<Factor> minus_ring_inverse_;  // -2^-k mod p_i
    std::vector<RoundingTerm> terms_;         // per reply prime
    std::vector<Factor> dropped_inverse_;     // [dropped * primes + i] = p_dropped^-1 mod p_i
};

}  // namespace sphynx::rlwe
