// Negacyclic number-theoretic transform in Z_p[X]/(X^n + 1), the lazily reduced product sum and the loops over the
// residues of one prime, with one implementation per instruction set behind one table of function pointers.
//
// Contract: forward takes |x| <= p in natural order and gives centred values in bit-reversed order; inverse
// takes |x| <= 1.1 p in bit-reversed order and gives centred values in natural order, scaled by 1/n.
// Cooley-Tukey butterflies forward, Gentleman-Sande back (Longa, Naehrig: eprint 2016/504), signed lazy
// residues (modulus.h). Growth: a forward layer maps a bound x to x (1 + p/2^32) + p/2, so from p seven
// layers stay under 5.8 p < 2^31; the second half starts again at 0.54 p. An inverse layer doubles its sums,
// so they are reduced every second layer: never above 4 p.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "rlwe/modulus.h"

namespace sphynx::rlwe {

struct NttTable {
    NttTable(std::int32_t prime, int n);

    Modulus modulus;
    int n;
    // Powers of the 2n-th root in bit-reversed order (index 0 unused), split by component for vector loads.
    std::vector<std::int32_t> root, root_quotient;
    std::vector<std::int32_t> inverse_root, inverse_root_quotient;
    // The same of the layers at distances 4, 2 and 1, in the order in which butterflies on eight blocks of eight
    // values read them: [layer][eight blocks][which root of a block][block].
    std::vector<std::int32_t> short_root, short_root_quotient;
    std::vector<std::int32_t> short_inverse_root, short_inverse_root_quotient;
    Factor n_inverse;       // 1/n, applied to the sums of the last inverse layer
    Factor n_inverse_root;  // 1/n times that layer's root
};

// Coefficients of NTT-form ciphertexts and weights are stored in blocks of this many, so that the sum over
// inputs runs in registers and memory is read once, in order.
inline constexpr int kBlock = 16;
// The smallest degree that has a transform.
inline constexpr int kMinDegree = 64;
// Products of centred values that fit a signed 64-bit lane: (0.54 * 2^28)^2 * 256 < 2^63.
inline constexpr int kLazyProducts = 256;

// Products of some ciphertexts with the weights of some replies, in one block; all values are centred.
struct BlockProducts {
    const std::int32_t* weights;  // [reply][input][distinct], replies weight_stride apart
    std::size_t weight_stride;
    int distinct;                // 1, 2, 4, 8 or kBlock: each value stands for a run of kBlock / distinct
    const std::int32_t* values;  // [half][input][kBlock]
    std::size_t inputs;          // at most kLazyProducts
    std::size_t replies;
    bool adds;          // to what `out` holds
    std::int32_t* out;  // [reply][half][kBlock], halves out_stride apart
    std::size_t out_stride;
};

// One prime's part of rounding to the ring (rns.h).
struct RoundingTerm {
    Modulus modulus;
    Factor cofactor_inverse;      // (q'/p)^-1 mod p
    std::uint32_t reciprocal[5];  // floor(2^160 / p), its lowest 32 bits first
};

// What rounding some values takes; it holds secrets, and whoever owns it wipes it.
struct RoundingMemory {
    static constexpr std::size_t kMost = 256;  // values
    std::uint32_t y[kMost];
    std::uint64_t sum[4][kMost];
};

struct Kernels {
    const char* name;
    void (*forward)(std::int32_t* values, const NttTable& table);
    void (*inverse)(std::int32_t* values, const NttTable& table);
    // sum[j] += a[j] b[j] for centred a, b and |sum| <= p; the result is centred.
    void (*multiply_add)(const std::int32_t* a, const std::int32_t* b, const Modulus& modulus,
                         std::size_t count, std::int32_t* sum);
    // out[reply] = sum over inputs of weights[reply][input] * values[input], centred.
    void (*product_sums)(const BlockProducts& block, const Modulus& modulus);
    // sum[j] += addend[j], centred, for |sum + addend| <= 4 p.
    void (*add)(const std::int32_t* addend, const Modulus& modulus, std::size_t count, std::int32_t* sum);
    // x[j] = (x[j] - y[j]) factor, centred, for differences that fit an int32.
    void (*subtract_multiply)(const std::int32_t* y, Factor factor, const Modulus& modulus, std::size_t count,
                              std::int32_t* x);
    // out[j] = r[j] factor, centred, for any signed 64-bit r in two words, r = 2^32 high + (low mod 2^32).
    void (*multiply_wide)(const std::int32_t* low, const std::int32_t* high, Factor factor,
                          const Modulus& modulus, std::size_t count, std::int32_t* out);
    // RnsCodec::round for at most RoundingMemory::kMost values and 15 primes; x is prime-major with this stride.
    void (*round)(const std::int32_t* x, std::size_t stride, const RoundingTerm* terms, std::size_t primes,
                  int ring_bits, std::size_t count, RoundingMemory& memory, std::uint64_t* out);
};

const Kernels& portable_kernels();
const Kernels& best_kernels();  // the fastest that usable_features() allow

}  // namespace sphynx::rlwe
