// The kernels of ntt.h as plain loops, always inlined: what a file compiled for another target takes of them
// stays in that file, in that target's instructions. Internal to the ntt*.cpp files.
#pragma once

#include "rlwe/ntt.h"

namespace sphynx::rlwe::generic {

// Layers after which the forward transform reduces everything, so that lazy values stay under 2^31 (ntt.h
// bounds seven); six or seven so that it falls between two pairs of layers.
SPHYNX_INLINE int forward_lazy_layers(int n) {
    return 6 + __builtin_ctz(static_cast<unsigned>(n)) % 2;
}

// Modulus::reduce in 32 bits, for |x| < 2^31 - half: vectors have no shift of 64-bit lanes that keeps the sign.
SPHYNX_INLINE std::int32_t centre(std::int32_t x, std::int32_t half, int bits, std::int32_t p) {
    return wrap_sub(x, wrap_mul(wrap_add(x, half) >> bits, p));
}

SPHYNX_INLINE void reduce_all(std::int32_t* values, int n, std::int32_t p, int bits) {
    const std::int32_t half = std::int32_t{1} << (bits - 1);
    for (int i = 0; i < n; ++i) values[i] = centre(values[i], half, bits, p);
}

SPHYNX_INLINE void forward(std::int32_t* values, const NttTable& table) {
    const int n = table.n, bits = table.modulus.bits();
    const std::int32_t p = table.modulus.p();
    int layer = 0;
    for (int blocks = 1, length = n / 2; length >= 1; blocks *= 2, length /= 2) {
        for (int block = 0; block < blocks; ++block) {
            const std::int32_t w = table.root[static_cast<std::size_t>(blocks + block)];
            const std::int32_t wq = table.root_quotient[static_cast<std::size_t>(blocks + block)];
            std::int32_t* __restrict low = values + 2 * block * length;
            std::int32_t* __restrict high = low + length;
            for (int j = 0; j < length; ++j) {
                const std::int32_t t = multiply(high[j], w, wq, p);
                high[j] = wrap_sub(low[j], t);
                low[j] = wrap_add(low[j], t);
            }
        }
        if (++layer == forward_lazy_layers(n)) reduce_all(values, n, p, bits);
    }
    reduce_all(values, n, p, bits);
}

SPHYNX_INLINE void inverse(std::int32_t* values, const NttTable& table) {
    const int n = table.n, bits = table.modulus.bits();
    const std::int32_t p = table.modulus.p(), half = std::int32_t{1} << (bits - 1);
    bool reduce_sums = false;  // in every second layer
    for (int length = 1, blocks = n / 2; blocks > 1; length *= 2, blocks /= 2, reduce_sums = !reduce_sums) {
        for (int block = 0; block < blocks; ++block) {
            const std::int32_t w = table.inverse_root[static_cast<std::size_t>(blocks + block)];
            const std::int32_t wq = table.inverse_root_quotient[static_cast<std::size_t>(blocks + block)];
            std::int32_t* __restrict low = values + 2 * block * length;
            std::int32_t* __restrict high = low + length;
            for (int j = 0; j < length; ++j) {
                std::int32_t sum = wrap_add(low[j], high[j]);
                if (reduce_sums) sum = centre(sum, half, bits, p);
                high[j] = multiply(wrap_sub(low[j], high[j]), w, wq, p);
                low[j] = sum;
            }
        }
    }
    const Factor a = table.n_inverse, b = table.n_inverse_root;
    for (int j = 0; j < n / 2; ++j) {
        const std::int32_t low = values[j], high = values[j + n / 2];
        values[j] = multiply(wrap_add(low, high), a.value, a.quotient, p);
        values[j + n / 2] = multiply(wrap_sub(low, high), b.value, b.quotient, p);
    }
    reduce_all(values, n, p, bits);
}

SPHYNX_INLINE void multiply_add(const std::int32_t* a, const std::int32_t* b, const Modulus& modulus,
                                std::size_t count, std::int32_t* sum) {
    for (std::size_t j = 0; j < count; ++j) {
        sum[j] = modulus.reduce_wide(static_cast<std::int64_t>(a[j]) * b[j] + sum[j]);
    }
}

SPHYNX_INLINE void add(const std::int32_t* addend, const Modulus& modulus, std::size_t count,
                       std::int32_t* __restrict sum) {
    const int bits = modulus.bits();
    const std::int32_t p = modulus.p(), half = std::int32_t{1} << (bits - 1);
    for (std::size_t j = 0; j < count; ++j) sum[j] = centre(wrap_add(sum[j], addend[j]), half, bits, p);
}

SPHYNX_INLINE void subtract_multiply(const std::int32_t* y, Factor factor, const Modulus& modulus,
                                     std::size_t count, std::int32_t* __restrict x) {
    const int bits = modulus.bits();
    const std::int32_t p = modulus.p(), half = std::int32_t{1} << (bits - 1);
    for (std::size_t j = 0; j < count; ++j) {
        const std::int32_t product = multiply(wrap_sub(x[j], y[j]), factor.value, factor.quotient, p);
        x[j] = centre(product, half, bits, p);
    }
}

SPHYNX_INLINE void multiply_wide(const std::int32_t* low, const std::int32_t* high, Factor factor,
                                 const Modulus& modulus, std::size_t count, std::int32_t* __restrict out) {
    const int bits = modulus.bits();
    const std::int32_t p = modulus.p(), half = std::int32_t{1} << (bits - 1);
    const Factor one{1, std::int32_t{1} << (31 - bits)}, two32 = modulus.two32();
    for (std::size_t j = 0; j < count; ++j) {
        // r = high 2^32 + low + 2^32 [low < 0]; each term under p, their product with the factor centred.
        const std::int32_t r = wrap_add(wrap_add(multiply(high[j], two32.value, two32.quotient, p),
                                                 multiply(low[j], one.value, one.quotient, p)),
                                        two32.value & (low[j] >> 31));
        out[j] = centre(multiply(r, factor.value, factor.quotient, p), half, bits, p);
    }
}

// Sums of y_i floor(2^160 / p_i) in units of 2^-128, the last digit of each product cut: four sums of 32-bit digits, in
// 64-bit lanes, whose carries are added up at the end.
SPHYNX_INLINE void round(const std::int32_t* x, std::size_t stride, const RoundingTerm* terms,
                         std::size_t primes, int ring_bits, std::size_t count, RoundingMemory& memory,
                         std::uint64_t* __restrict out) {
    auto& [y, sum] = memory;
    for (auto& digit : sum) {
        for (std::size_t j = 0; j < count; ++j) digit[j] = 0;
    }
    for (std::size_t i = 0; i < primes; ++i) {
        const RoundingTerm& term = terms[i];
        const Factor factor = term.cofactor_inverse;
        const int bits = term.modulus.bits();
        const std::int32_t p = term.modulus.p(), half = std::int32_t{1} << (bits - 1);
        const std::int32_t* from = x + i * stride;
        for (std::size_t j = 0; j < count; ++j) {
            const std::int32_t centred =
                centre(multiply(from[j], factor.value, factor.quotient, p), half, bits, p);
            y[j] = static_cast<std::uint32_t>(centred + (p & (centred >> 31)));
        }
        const std::uint64_t lowest = term.reciprocal[0], first = term.reciprocal[1],
                            second = term.reciprocal[2], third = term.reciprocal[3],
                            fourth = term.reciprocal[4];
        for (std::size_t j = 0; j < count; ++j) {
            const std::uint64_t own = y[j];
            sum[0][j] += own * first + ((own * lowest) >> 32);
            sum[1][j] += own * second;
            sum[2][j] += own * third;
            sum[3][j] += own * fourth;
        }
    }
    // Half a unit of the result, 2^(127 - ring_bits): in the upper 64 bits, or below them where the ring has 64.
    const std::uint64_t half = ring_bits < 64 ? std::uint64_t{1} << (63 - ring_bits) : 0,
                        half_below = ring_bits < 64 ? 0 : std::uint64_t{1} << 31;
    for (std::size_t j = 0; j < count; ++j) {
        const std::uint64_t below = (sum[0][j] >> 32) + (sum[1][j] & 0xffffffffu) + half_below;
        const std::uint64_t above = sum[2][j] + (sum[3][j] << 32) + (sum[1][j] >> 32) + (below >> 32) + half;
        out[j] = above >> (64 - ring_bits);
    }
}

}  // namespace sphynx::rlwe::generic
