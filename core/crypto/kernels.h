// The hot symmetric loops, one table of functions per instruction-set path. Internal to the core: callers use
// aes.h, prg.h, hash.h and garble.h, which take the table once per batch and stay free of CPU checks.
#pragma once

#include "crypto/aes.h"
#include "views.h"

namespace sphynx::crypto {

// Rows of labels around an AND gate, so that the XOR gates of an adder cost no pass of their own. With A = a
// xor a_more and B = b xor b_more the result is A B xor added, and A xor B xor sum_more is written to `sum`
// on the way. Rows that are not needed point to zeros, `sum` then to memory that nobody reads; `sum` is none
// of the rest. Rows are as long as the result.
struct AndOperands {
    const Block* a;
    const Block* a_more;
    const Block* b;
    const Block* b_more;
    const Block* added;
    const Block* sum_more;
    Block* sum;
};

// The tweaks under which A and B are hashed, one of each for every instance. The difference of the two is the same for
// all instances.
struct AndTweaks {
    const Block* a;
    const Block* b;
};

struct SymmetricKernels {
    const char* name;

    // Substitutes the four bytes of a word: the only nonlinear step of the key schedule.
    std::uint32_t (*substitute_word)(std::uint32_t word);

    void (*encrypt)(const AesKey& key, const Block* in, Block* out, std::size_t count);
    void (*counter_stream)(const AesKey& key, Block counter, Block* out, std::size_t count);

    // Streams c0 .. c3 of four keys from one counter: bit0 ^= c1 ^ c3, bit1 ^= c2 ^ c3, total = c0 ^ c1 ^ c2
    // ^ c3. The two lowest levels of SoftSpoken's sums over leaves, without a trip of each stream through
    // memory.
    void (*sum_four_streams)(const AesKey* keys, Block counter, Block* bit0, Block* bit1, Block* total,
                             std::size_t count);

    // The same for sixteen keys: rows[b * count + j] = the sum of the streams whose key's number has bit b, for b < 4;
    // total = the sum of all. All sums of a tree of depth four, in registers.
    void (*sum_sixteen_streams)(const AesKey* keys, Block counter, Block* rows, Block* total,
                                std::size_t count);

    // out[j] = H(in[j], tweaks[j]), hash.h.
    void (*hash)(const AesKey& key, const Block* in, const Block* tweaks, Block* out, std::size_t count);

    // One AND gate for as many instances as `out` has labels.
    void (*garble_and)(const AesKey& key, Block delta, const AndTweaks& tweaks, const AndOperands& in,
                       BlockSpan garbler_rows, BlockSpan evaluator_rows, BlockSpan out);
    void (*evaluate_and)(const AesKey& key, const AndTweaks& tweaks, const AndOperands& in,
                         BlockView garbler_rows, BlockView evaluator_rows, BlockSpan out);
};

// The fastest table that usable_features() allows.
const SymmetricKernels& symmetric_kernels();

const SymmetricKernels& portable_kernels();
const SymmetricKernels& armv8_kernels();    // aarch64 only
const SymmetricKernels& aesni_kernels();    // x86-64 only
const SymmetricKernels& vaes_kernels();     // x86-64 only
const SymmetricKernels& vaes512_kernels();  // x86-64 only

}  // namespace sphynx::crypto
