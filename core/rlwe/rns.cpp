#include "rlwe/rns.h"

#include <algorithm>

#include "block.h"

namespace sphynx::rlwe {

RnsCodec::RnsCodec(const Params& params) : params_(params), q_mod_ring_(1) {
    const int primes = params.primes(), kept = params.reply_primes();
    for (int i = 0; i < primes; ++i) {
        const Modulus& modulus = params.modulus(i);
        q_mod_ring_ *= static_cast<std::uint64_t>(modulus.p());
        const std::int32_t ring = modulus.power(2, static_cast<std::uint64_t>(params.ring_bits()));
        minus_ring_inverse_.push_back(modulus.factor(-static_cast<std::int64_t>(modulus.inverse(ring))));
    }
    for (int i = 0; i < kept; ++i) {
        const Modulus& modulus = params.modulus(i);
        std::int64_t cofactor = 1;
        for (int j = 0; j < kept; ++j) {
            if (j != i) cofactor = cofactor * params.modulus(j).p() % modulus.p();
        }
        // Long division of 2^160 by p, 32 bits at a time.
        RoundingTerm term{modulus, modulus.factor(modulus.inverse(cofactor)), {}};
        std::uint64_t remainder = 1;
        for (int d = 4; d >= 0; --d) {
            const std::uint64_t current = remainder << 32;
            term.reciprocal[d] =
                static_cast<std::uint32_t>(current / static_cast<std::uint64_t>(modulus.p()));
            remainder = current % static_cast<std::uint64_t>(modulus.p());
        }
        terms_.push_back(term);
    }
    dropped_inverse_.resize(static_cast<std::size_t>(primes * primes));
    for (int dropped = kept; dropped < primes; ++dropped) {
        for (int i = 0; i < dropped; ++i) {
            const Modulus& modulus = params.modulus(i);
            dropped_inverse_[static_cast<std::size_t>(dropped * primes + i)] =
                modulus.factor(modulus.inverse(params.modulus(dropped).p()));
        }
    }
}

void RnsCodec::encode(const std::uint64_t* message, std::size_t count, std::int32_t* out) const {
    const Kernels& kernels = best_kernels();
    const int shift = 64 - params_.ring_bits();
    constexpr std::size_t chunk = 512;
    std::int32_t low[chunk], high[chunk];
    for (std::size_t start = 0; start < count; start += chunk) {
        const std::size_t size = count - start < chunk ? count - start : chunk;
        for (std::size_t j = 0; j < size; ++j) {
            // The remainder r, sign-extended from k to 64 bits.
            const auto r = static_cast<std::int64_t>((message[start + j] * q_mod_ring_) << shift) >> shift;
            low[j] = static_cast<std::int32_t>(static_cast<std::uint32_t>(r));
            high[j] = static_cast<std::int32_t>(r >> 32);
        }
        for (int i = 0; i < params_.primes(); ++i) {
            kernels.multiply_wide(low, high, minus_ring_inverse_[static_cast<std::size_t>(i)],
                                  params_.modulus(i), size,
                                  out + static_cast<std::size_t>(i) * count + start);
        }
    }
    zeroise(low, sizeof low);
    zeroise(high, sizeof high);
}

void RnsCodec::round(const std::int32_t* x, std::size_t count, std::uint64_t* out) const {
    RoundingMemory memory;
    for (std::size_t start = 0; start < count; start += RoundingMemory::kMost) {
        const std::size_t size = std::min(count - start, RoundingMemory::kMost);
        best_kernels().round(x + start, count, terms_.data(), terms_.size(), params_.ring_bits(), size,
                             memory, out + start);
    }
    zeroise(&memory, sizeof memory);
}

void RnsCodec::switch_down(std::int32_t* x, std::size_t count) const {
    const Kernels& kernels = best_kernels();
    for (int dropped = params_.primes() - 1; dropped >= params_.reply_primes(); --dropped) {
        const std::int32_t* remainder = x + static_cast<std::size_t>(dropped) * count;
        for (int i = 0; i < dropped; ++i) {
            const Factor inverse = dropped_inverse_[static_cast<std::size_t>(dropped * params_.primes() + i)];
            kernels.subtract_multiply(remainder, inverse, params_.modulus(i), count,
                                      x + static_cast<std::size_t>(i) * count);
        }
    }
}

}  // namespace sphynx::rlwe
