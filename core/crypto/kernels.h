// The hot symmetric loops, one table of functions per instruction-set path. Internal to the core: callers use
// aes.h, prg.h, hash.h and garble.h, which take the table once per batch and stay free of CPU checks.
#pragma once

#include "crypto/aes.h"

namespace sphynx {

struct SymmetricKernels {
    const char* name;

    // Substitutes the four bytes of a word: the only nonlinear step of the key schedule.
    std::uint32_t (*substitute_word)(std::uint32_t word);

    void (*encrypt)(const AesKey& key, const Block* in, Block* out, std::size_t count);
    void (*counter_stream)(const AesKey& key, Block counter, Block* out, std::size_t count);

    // out[j] = H(in[j], first_tweak + j), hash.h.
    void (*hash)(const AesKey& key, const Block* in, std::uint64_t first_tweak, Block* out, std::size_t count);

    // One AND gate for `count` instances, garble.h. Instance j uses tweaks first_tweak + 2 j and + 2 j + 1.
    void (*garble_and)(const AesKey& key, Block delta, std::uint64_t first_tweak, const Block* a0,
                       const Block* b0, Block* garbler_rows, Block* evaluator_rows, Block* c0,
                       std::size_t count);
    void (*evaluate_and)(const AesKey& key, std::uint64_t first_tweak, const Block* a, const Block* b,
                         const Block* garbler_rows, const Block* evaluator_rows, Block* c, std::size_t count);
};

// The fastest table that usable_features() allows.
const SymmetricKernels& symmetric_kernels();

const SymmetricKernels& portable_kernels();
const SymmetricKernels& armv8_kernels();  // aarch64 only
const SymmetricKernels& aesni_kernels();  // x86-64 only
const SymmetricKernels& vaes_kernels();   // x86-64 only

}  // namespace sphynx
