// Arithmetic modulo one RNS prime in signed 32-bit lanes, by Barrett multiplication with a precomputed
// quotient (Becker, Hwang, Kannwischer, Yang, Yang: "Neon NTT", eprint 2021/986).
//
// Contract: a residue is any int32 congruent to the value; "centred" means |x| <= 0.54 p. A product with a
// prepared Factor needs no bound on its other operand and returns |z| <= p (0.5 + |a| / 2^32) + 1. Primes lie
// within 2^(bits-8) below 2^bits, so that a rounded shift is a good enough quotient for reduce(). Every path
// (portable, AVX2, NEON) computes the same int32 bit for bit.
#pragma once

#include <cstdint>

namespace sphynx::rlwe {

// Always inlined: these are also compiled into files for other instruction sets, and an out-of-line copy from
// such a file must not be the one the linker keeps.
#define SPHYNX_INLINE static inline __attribute__((always_inline))
#define SPHYNX_MEMBER __attribute__((always_inline))

// A constant multiplier: value centred in (-p/2, p/2], quotient = round(value * 2^31 / p).
struct Factor {
    std::int32_t value = 0;
    std::int32_t quotient = 0;
};

// Wrapping 32-bit operations: overflow is intended, signed overflow in C++ is not.
SPHYNX_INLINE std::int32_t wrap_mul(std::int32_t a, std::int32_t b) {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) * static_cast<std::uint32_t>(b));
}
SPHYNX_INLINE std::int32_t wrap_add(std::int32_t a, std::int32_t b) {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) + static_cast<std::uint32_t>(b));
}
SPHYNX_INLINE std::int32_t wrap_sub(std::int32_t a, std::int32_t b) {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) - static_cast<std::uint32_t>(b));
}

// (2ab + 2^31) >> 32, what NEON calls sqrdmulh; the operands here never saturate.
SPHYNX_INLINE std::int32_t rounded_high(std::int32_t a, std::int32_t b) {
    const std::int64_t product = static_cast<std::int64_t>(a) * b;
    return static_cast<std::int32_t>((static_cast<std::uint64_t>(product) + (std::uint64_t{1} << 30)) >> 31);
}

SPHYNX_INLINE std::int32_t multiply(std::int32_t a, std::int32_t value, std::int32_t quotient,
                                    std::int32_t p) {
    return wrap_sub(wrap_mul(a, value), wrap_mul(rounded_high(a, quotient), p));
}

class Modulus {
  public:
    static constexpr int kLeastBits = 20, kMostBits = 28;

    Modulus() = default;
    explicit Modulus(std::int32_t prime);

    SPHYNX_MEMBER std::int32_t p() const { return p_; }
    SPHYNX_MEMBER int bits() const { return bits_; }
    SPHYNX_MEMBER Factor two32() const { return two32_; }

    Factor factor(std::int64_t value) const;
    std::int32_t power(std::int64_t base, std::uint64_t exponent) const;  // canonical
    std::int32_t inverse(std::int64_t value) const {
        return power(value, static_cast<std::uint64_t>(p_) - 2);
    }

    SPHYNX_MEMBER std::int32_t mul(std::int32_t a, Factor f) const {
        return multiply(a, f.value, f.quotient, p_);
    }

    // |a| <= 2^(bits + 3) to centred; any int32 to |z| <= p/2 + 2^23.
    SPHYNX_MEMBER std::int32_t reduce(std::int32_t a) const {
        const std::int32_t quotient = static_cast<std::int32_t>(
            (static_cast<std::int64_t>(a) + (std::int64_t{1} << (bits_ - 1))) >> bits_);
        return wrap_sub(a, wrap_mul(quotient, p_));
    }
    // |a| < 2^63 - 2^31 to centred: the high word times 2^32 plus the low word.
    SPHYNX_MEMBER std::int32_t reduce_wide(std::int64_t a) const {
        const std::int32_t low = static_cast<std::int32_t>(static_cast<std::uint32_t>(a));
        const std::int32_t high = static_cast<std::int32_t>((a + (std::int64_t{1} << 31)) >> 32);
        return reduce(wrap_add(mul(high, two32_), reduce(low)));
    }
    // centred to [0, p), without a branch.
    SPHYNX_MEMBER std::int32_t canonical(std::int32_t a) const { return a + (p_ & (a >> 31)); }

  private:
    std::int32_t p_ = 0;
    int bits_ = 0;
    Factor two32_;
};

// The largest `count` primes below 2^bits that are 1 modulo 2n, descending: NTT-friendly for degree n.
void largest_ntt_primes(int bits, int n, int count, std::int32_t* primes);

}  // namespace sphynx::rlwe
