// Random polynomials: uniform residues, ternary secrets, centred-binomial errors.
//
// Contract: no branch or memory address depends on a value that is kept. Uniform and ternary sampling reject;
// which draws are rejected is independent of the values that stay. The error is the difference of two sums of
// 21 bits (standard deviation 3.24, |e| <= 21), the distribution SEAL uses in constant time in place of the
// table's discrete Gaussian (3.2).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "crypto/prg.h"
#include "rlwe/modulus.h"

namespace sphynx::rlwe {

inline constexpr std::size_t kSeedBytes = sizeof(Block);
inline constexpr int kErrorBound = 21;
inline constexpr double kErrorVariance = 10.5;
inline constexpr double kTernaryVariance = 2.0 / 3.0;

// Residues that are zeroised when freed.
class SecretVector : public std::vector<std::int32_t> {
  public:
    using std::vector<std::int32_t>::vector;
    SecretVector(const SecretVector&) = default;
    SecretVector(SecretVector&&) = default;
    SecretVector& operator=(const SecretVector&) = delete;
    SecretVector& operator=(SecretVector&&) = delete;
    ~SecretVector() { zeroise(data(), size() * sizeof(std::int32_t)); }
};

// One stream of a seed, read in order.
class SeedStream {
  public:
    SeedStream(const crypto::AesKey& key, std::uint64_t stream) : key_(key), stream_(stream) {}
    ~SeedStream() { zeroise(buffer_, sizeof buffer_); }
    SeedStream(const SeedStream&) = delete;
    SeedStream& operator=(const SeedStream&) = delete;

    // The next `count` 64-bit words, at most kWords; valid until the next call.
    static constexpr std::size_t kWords = 512;
    const std::uint64_t* words(std::size_t count);

  private:
    const crypto::AesKey key_;
    std::uint64_t stream_;
    std::uint64_t next_block_ = 0;
    Block buffer_[kWords / 2];
};

void sample_uniform(SeedStream& stream, const Modulus& modulus, std::size_t count,
                    std::int32_t* out);  // centred
// For CPUs with avx512: how many of the draws were taken, whole vectors as far as `out` has room for them, and how many kept.
struct Taken {
    std::size_t draws = 0, kept = 0;
};
Taken take_uniform_avx512(const std::uint64_t* words, std::size_t draws, const Modulus& modulus,
                          std::size_t room, std::int32_t* out);
void sample_ternary(SeedStream& stream, std::size_t count, std::int32_t* out);
void sample_error(SeedStream& stream, std::size_t count, std::int32_t* out);

}  // namespace sphynx::rlwe
