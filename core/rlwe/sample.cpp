#include "rlwe/sample.h"

#include <algorithm>

#include "cpu.h"
#include "secret.h"

namespace sphynx::rlwe {

const std::uint64_t* SeedStream::words(std::size_t count) {
    const std::size_t blocks = (std::min(count, kWords) + 1) / 2;
    crypto::expand_seed(key_, stream_, next_block_, buffer_, blocks);
    next_block_ += blocks;
    return &buffer_[0].lo;
}

void sample_uniform(SeedStream& stream, const Modulus& modulus, std::size_t count, std::int32_t* out) {
    const std::int32_t p = modulus.p(), half = p / 2;
    const std::uint32_t mask = (std::uint32_t{1} << modulus.bits()) - 1;
    // Primes are close below 2^bits, so nearly every draw is kept; each turn of the outer loop asks for what
    // is missing.
    for (std::size_t kept = 0; kept < count;) {
        const std::size_t draws = std::min(count - kept, 2 * SeedStream::kWords);
        const std::uint64_t* words = stream.words((draws + 1) / 2);
        Taken taken;
#if defined(__x86_64__)
        if (usable_features().avx512)
            taken = take_uniform_avx512(words, draws, modulus, count - kept, out + kept);
#endif
        kept += taken.kept;
        for (std::size_t i = taken.draws; i < draws; ++i) {
            const auto draw =
                static_cast<std::int32_t>(static_cast<std::uint32_t>(words[i / 2] >> (32 * (i % 2))) & mask);
            out[kept] = draw - (p & ((half - draw) >> 31));
            kept += public_value(draw < p);
        }
    }
}

void sample_ternary(SeedStream& stream, std::size_t count, std::int32_t* out) {
    for (std::size_t kept = 0; kept < count;) {
        const std::size_t draws = std::min(count - kept, 8 * SeedStream::kWords);
        const std::uint64_t* words = stream.words((draws + 7) / 8);
        for (std::size_t i = 0; i < draws; ++i) {
            const auto byte = static_cast<std::int32_t>((words[i / 8] >> (8 * (i % 8))) & 0xff);
            // byte mod 3 by multiplication (exact below 256); 255 is rejected so that the three are equally
            // likely.
            out[kept] = byte - 3 * ((byte * 171) >> 9) - 1;
            kept += public_value(byte != 255);
        }
    }
}

namespace {
// Ones among the bits of a word by adding in parallel: no table, no instruction that a baseline CPU lacks.
SPHYNX_INLINE std::uint64_t ones(std::uint64_t x) {
    x -= (x >> 1) & 0x5555555555555555u;
    x = (x & 0x3333333333333333u) + ((x >> 2) & 0x3333333333333333u);
    x = (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0fu;
    x += x >> 8;
    x += x >> 16;
    x += x >> 32;
    return x & 0x7f;
}
}  // namespace

void sample_error(SeedStream& stream, std::size_t count, std::int32_t* out) {
    constexpr std::uint64_t mask = (std::uint64_t{1} << kErrorBound) - 1;
    for (std::size_t done = 0; done < count;) {
        const std::size_t draws = std::min(count - done, SeedStream::kWords);
        const std::uint64_t* words = stream.words(draws);
        for (std::size_t i = 0; i < draws; ++i) {
            // ones(a) - ones(b) = ones of (a, not b) - 21: one count instead of two.
            const std::uint64_t both = (words[i] ^ (mask << kErrorBound)) & (mask | (mask << kErrorBound));
            out[done + i] = static_cast<std::int32_t>(ones(both)) - kErrorBound;
        }
        done += draws;
    }
}

}  // namespace sphynx::rlwe
