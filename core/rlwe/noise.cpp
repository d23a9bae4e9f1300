#include "rlwe/noise.h"

#include <cmath>

#include "rlwe/sample.h"

namespace sphynx::rlwe {

NoiseBound reply_noise(const Params& params, double l1, double l2_squared) {
    const double n = params.n();
    // Rounding leaves a centred remainder that exceeds p/2 by at most 2^-7 p (modulus.h), here counted as
    // 0.51.
    constexpr double rounding = 0.51;
    double worst = l1 * (kErrorBound + 0.5) + 2 * n * kErrorBound;
    double variance = l2_squared * (kErrorVariance + 1.0 / 12) + 2 * n * kTernaryVariance * kErrorVariance;
    for (int dropped = params.primes() - 1; dropped >= params.reply_primes(); --dropped) {
        const double p = params.modulus(dropped).p();
        worst = worst / p + rounding * (1 + n);
        variance = variance / (p * p) + (1 + n * kTernaryVariance) / 12;
    }
    const double rms = std::sqrt(variance);
    // E|x| of a normal variable is sqrt(2/pi) of its deviation; rounding rho itself contributes 1/4 of a unit
    // at most.
    const double mean_size = 0.7979 * rms + 0.25;
    return {worst, rms, params.ring_bits() + std::log2(mean_size) - params.log2_reply_modulus()};
}

}  // namespace sphynx::rlwe
