// RLWE parameter sets: degree, RNS primes, ring width, and what a reply is switched down to.
//
// Contract: only sets inside the 128-bit classical security table for ternary secrets of "Security Guidelines
// for Implementing Homomorphic Encryption" (eprint 2024/463, Table 5.2) exist: at most 106 bits of modulus at
// n = 4096, 214 at n = 8192; anything else throws. That is stricter than the Homomorphic Encryption Standard
// of 2018, whose table SEAL has (109 and 218). Messages live in Z_2^ring_bits, encoded as
// round(q m / 2^ring_bits).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "rlwe/ntt.h"

namespace sphynx::rlwe {

inline constexpr int kMinRingBits = 8;
inline constexpr int kMaxRingBits = 64;

// Bits of modulus allowed at 128-bit security, 0 when the degree is not offered.
int max_modulus_bits(int n);

class Params {
  public:
    // The project's choice for a ring width: 8..48 -> n = 4096, primes of 28+28+27+23 bits, reply at three
    // primes up to 39 bits and at four above; 49..64 -> n = 8192, five primes of 28 bits, reply at four. It
    // is part of the wire format: both parties derive it, neither sends it.
    static std::shared_ptr<const Params> for_ring(int ring_bits);
    // Any set inside the security table; the last primes are the first to be dropped from a reply.
    static std::shared_ptr<const Params> make(int n, int ring_bits, const std::vector<int>& prime_bits,
                                              int reply_primes);

    int n() const { return n_; }
    int ring_bits() const { return ring_bits_; }
    int primes() const { return static_cast<int>(tables_.size()); }
    int reply_primes() const { return reply_primes_; }
    const NttTable& table(int i) const { return tables_[static_cast<std::size_t>(i)]; }
    // The transform of Z[X^(n/degree)], a ring of its own: its values are those of the whole ring's transform, each of
    // which that one repeats n/degree times. kMinDegree <= degree <= n, a power of two.
    const NttTable& subring_table(int i, int degree) const;
    const Modulus& modulus(int i) const { return table(i).modulus; }
    std::uint64_t ring_mask() const { return ~std::uint64_t{0} >> (64 - ring_bits_); }
    std::size_t blocks() const { return static_cast<std::size_t>(n_ / kBlock); }
    std::size_t poly_size() const {
        return static_cast<std::size_t>(n_) * tables_.size();
    }  // residues of one polynomial

    int modulus_bits() const { return bits_of_first(primes()); }
    int reply_modulus_bits() const { return bits_of_first(reply_primes_); }
    double log2_reply_modulus() const;

    // Wire sizes: c1 travels as a seed upwards; a reply carries all of c1 and `used` coefficients of c0.
    std::size_t upload_bytes() const;      // one ciphertext
    std::size_t public_key_bytes() const;  // one pair
    std::size_t reply_bytes(std::size_t used) const;

  private:
    Params(int n, int ring_bits, const std::vector<int>& prime_bits, int reply_primes);
    int bits_of_first(int count) const;

    int n_;
    int ring_bits_;
    int reply_primes_;
    std::vector<NttTable> tables_;
    std::vector<std::vector<NttTable>> subring_tables_;  // of degrees n/2, n/4, ... kMinDegree
};

}  // namespace sphynx::rlwe
