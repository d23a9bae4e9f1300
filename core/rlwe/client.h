// The client's half of RLWE: key generation, seeded symmetric encryption of ring vectors, decryption of
// replies.
//
// Wire, all lengths implied by the public parameters (params.h) and checked by whoever reads:
//
//   upload       | seed, 16 bytes | b at prime 1 | b at prime 2 | ..       for each ciphertext
//                  b = -a s + e + round(q m / 2^k) in NTT form, all n values bit-packed; a is uniform,
//                  expanded from the seed
//   public key   the same with m = 0
//   reply        | c1 at reply prime 1 | c1 at reply prime 2 | .. | c0 at reply prime 1 | ..
//                  c1: all n coefficients; c0: the used coefficients; bit-packed
#pragma once

#include <memory>
#include <span>

#include "crypto/prg.h"
#include "rlwe/params.h"
#include "rlwe/rns.h"
#include "rlwe/sample.h"

namespace sphynx::rlwe {

// Which coefficients of c0 travel: reply j carries the first count[j] of `index`.
struct UsedCoefficients {
    std::vector<std::uint32_t> index;
    std::vector<std::size_t> count;

    void check(
        const Params& params) const;  // throws unless every index is below n and every count within index
    std::size_t total() const;
    std::size_t reply_bytes(const Params& params) const;
};

// The public uniform half of a ciphertext, in NTT form, all primes.
void expand_uniform(const Params& params, Block seed, std::int32_t* out);

class SecretKey {
  public:
    SecretKey(std::shared_ptr<const Params> params, crypto::Prg& prg);

    const Params& params() const { return *params_; }

    // out: params().public_key_bytes().
    void public_key(crypto::Prg& prg, std::uint8_t* out) const;
    // message: count x n ring elements; out: count x params().upload_bytes().
    void encrypt(const std::uint64_t* message, std::size_t count, crypto::Prg& prg, unsigned threads,
                 std::uint8_t* out) const;
    // wire: `tiles` times all replies of `used`; out: tiles x used.total() ring elements, in wire order.
    void decrypt(std::span<const std::uint8_t> wire, const UsedCoefficients& used, std::size_t tiles,
                 unsigned threads, std::uint64_t* out) const;
    // c0 + c1 s at the reply primes, coefficient form, for c0 and c1 in coefficient form with stride n: what
    // the tests measure noise on. c1 is overwritten.
    void phase(const std::int32_t* c0, std::int32_t* c1, std::int32_t* out) const;

  private:
    void encrypt_one(const std::uint64_t* message, Block seed, SeedStream& errors, std::uint8_t* out) const;

    std::shared_ptr<const Params> params_;
    RnsCodec codec_;
    SecretVector secret_;        // s in NTT form, per prime
    SecretVector minus_secret_;  // -s, so that encryption is one multiply_add
};

}  // namespace sphynx::rlwe
