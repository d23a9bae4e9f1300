#include "rlwe/modulus.h"

#include <stdexcept>

namespace sphynx::rlwe {

Modulus::Modulus(std::int32_t prime) : p_(prime) {
    while ((std::int64_t{1} << bits_) < prime) ++bits_;
    if (bits_ < kLeastBits || bits_ > kMostBits ||
        (std::int64_t{1} << bits_) - prime > (std::int64_t{1} << (bits_ - 8))) {
        throw std::invalid_argument("an RNS prime has 20 to 28 bits and lies close below a power of two");
    }
    two32_ = factor(std::int64_t{1} << 32);
}

Factor Modulus::factor(std::int64_t value) const {
    std::int64_t centred = value % p_;
    if (centred > p_ / 2) centred -= p_;
    if (centred < -(p_ / 2)) centred += p_;
    // round(centred * 2^31 / p) to nearest; the sum stays below 2^59.
    const std::int64_t scaled = centred * (std::int64_t{1} << 31);
    const std::int64_t half = centred < 0 ? -(p_ / 2) : p_ / 2;
    return {static_cast<std::int32_t>(centred), static_cast<std::int32_t>((scaled + half) / p_)};
}

std::int32_t Modulus::power(std::int64_t base, std::uint64_t exponent) const {
    std::int64_t square = base % p_;
    if (square < 0) square += p_;
    std::int64_t result = 1;
    for (; exponent != 0; exponent >>= 1) {
        if (exponent & 1) result = result * square % p_;
        square = square * square % p_;
    }
    return static_cast<std::int32_t>(result);
}

namespace {
bool is_prime(std::int64_t candidate) {
    if (candidate % 2 == 0) return candidate == 2;
    for (std::int64_t divisor = 3; divisor * divisor <= candidate; divisor += 2) {
        if (candidate % divisor == 0) return false;
    }
    return candidate > 1;
}
}  // namespace

void largest_ntt_primes(int bits, int n, int count, std::int32_t* primes) {
    const std::int64_t step = 2 * static_cast<std::int64_t>(n);
    std::int64_t candidate = (std::int64_t{1} << bits) + 1 - step;
    const std::int64_t floor = (std::int64_t{1} << bits) - (std::int64_t{1} << (bits - 8));
    for (int found = 0; found < count; candidate -= step) {
        if (candidate < floor) throw std::invalid_argument("too few NTT primes of this size");
        if (is_prime(candidate)) primes[found++] = static_cast<std::int32_t>(candidate);
    }
}

}  // namespace sphynx::rlwe
