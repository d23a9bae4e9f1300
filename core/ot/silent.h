// Silent OT: many correlated OTs from few, by learning parity with noise (LPN). Ferret (Yang, Weng, Lan, Zhang and Wang,
// eprint 2020/924) with regular noise, on the trees of correlated_tree.h and the code of lpn_code.h.
//
//                    receiver                                                sender (offset delta)
//
//   seeds, once      t_j, from another extension (extension.h), random r     q_j
//   refill           the sums of `trees` trees   <--- trees * depth blocks   makes the trees
//     checked        x* + x~                     ---- 16 bytes ------->
//                    compares, before t is used  <--- 32 bytes --------      hash of what the trees must sum up to
//   extension        r_j + (choices of OT j)     ---- 1 bit an OT ---->      nothing with random choices
//   correlated       r_j, t_j = q_j xor r_j delta                            q_j
//
// and then tweaks and pads as in extension.h. A batch has n = trees * 2^depth entries. Its seeds are
//
//   `secret` OTs     the LPN secret x, its shares multiplied by the public matrix
//   trees * depth    one for each level of each tree: the receiver's choices say which leaf of the tree it lacks, the
//                    noise; masked by them the level sums travel, one block a level
//   128              mask the receiver's answer in the check
//
// and the last `seeds()` of its n results are the next batch's. In OTs whose lowest bit is 0 at the sender the lowest bit
// of t is the choice. All results are of this form: a choice is never stored or multiplied apart.
//
// A choice is x A + e: pseudorandom to a sender if LPN is hard for this code and noise with these parameters. Which
// attacks were considered, and what each costs: docs/security/silent-ot.md.
//
// A receiver that cheats: sends nothing but the seeds' extension, which has its own check, and bits that are its choices.
// It influences no input of the trees' hash. R is drawn after its bits have come. A sender that cheats: its trees may be
// inconsistent, and whether the receiver notices later would tell where noise is. A receiver that does not trust it
// checks each refill (Ferret's check): with alpha = BLAKE2b(all the sender's blocks), in GF(2^128),
//
//   sender V = sum of v_j alpha^(n-1-j)    receiver W, the same of w_j, and x* = sum of alpha^(n-1-j) over missing leaves
//   128 OTs as one: T = Q + x~ delta       V + Q + (x* + x~) delta = W + T if W = V + x* delta
//
// A sender that puts e into a level sum passes only if it knows which of the possible sums the receiver has: it has to
// guess bits of one missing index, and passes with probability 2^-(bits that it guessed). Trees are made again when
// they are needed: a batch takes 16 bytes for each seed, not for each OT. One call at a time per object.
#pragma once

#include <deque>
#include <vector>

#include "crypto/prg.h"
#include "ot/lpn_code.h"
#include "ot/tree_check.h"

namespace sphynx::ot {

struct SilentShape {
    std::size_t secret, trees;
    unsigned depth;

    static constexpr std::size_t kCheckOts = 128;

    constexpr std::size_t samples() const { return trees << depth; }
    constexpr std::size_t seeds() const { return secret + trees * depth + kCheckOts; }
    constexpr std::size_t usable() const { return samples() - seeds(); }
    constexpr std::size_t refill_blocks() const { return trees * depth; }
    void require_valid() const;
};

// 128 bits and more against the attacks of docs/security/silent-ot.md. Others are for tests.
constexpr SilentShape kSilentShape = {81'920, 4'096, 9};

constexpr std::size_t silent_message_blocks(std::size_t count, bool random_choices) {
    return random_choices ? 0 : (count + 127) / 128;
}

// One batch: where its results stand, and what they are made of.
struct SilentBatch {
    SilentBatch(const SilentShape& shape, Block session, std::uint64_t number, std::vector<Block> seeds);
    ~SilentBatch() { zeroise(seeds.data(), seeds.size() * sizeof(Block)); }
    SilentBatch(const SilentBatch&) = delete;
    SilentBatch& operator=(const SilentBatch&) = delete;

    std::vector<Block> seeds;
    LpnCode code;
    crypto::AesKey tree_key;  // public, as the code is
    std::size_t used = 0;
};

class SilentSender {
  public:
    // q: shape.seeds() blocks of an extension with random choices. `session` is public, the same at both parties.
    SilentSender(const SilentShape& shape, Block session, Block delta, BlockView q);
    ~SilentSender();
    SilentSender(const SilentSender&) = delete;
    SilentSender& operator=(const SilentSender&) = delete;

    // Begins another batch; `message`: refill_blocks() blocks to send. Secrets are drawn from `prg`.
    void refill(crypto::Prg& prg, BlockSpan message, unsigned threads);

    // What a receiver that checks expects for the trees of the last refill.
    Digest prove(Block masked, unsigned threads) const;

    std::size_t available() const { return available_; }

    // As many OTs as `q` has blocks, at most available(). corrections: silent_message_blocks, none for random choices.
    void extend(BlockView corrections, BlockSpan q, unsigned threads);

  private:
    struct Batch : SilentBatch {
        using SilentBatch::SilentBatch;
        crypto::AesKey roots;
    };
    void leaves_of(const Batch& batch, std::size_t tree, BlockSpan leaves, BlockSpan left_sums) const;
    void results(const Batch& batch, std::size_t first, BlockSpan out, unsigned threads) const;

    SilentShape shape_;
    Block session_, delta_, alpha_ = {};
    std::uint64_t batch_count_ = 0;
    std::size_t available_ = 0;
    std::vector<Block> first_seeds_;
    std::deque<Batch> batches_;
};

class SilentReceiver {
  public:
    // t: shape.seeds() blocks of an extension with random choices, whose choices it makes anew.
    SilentReceiver(const SilentShape& shape, bool checked, Block session, BlockView t);
    ~SilentReceiver();
    SilentReceiver(const SilentReceiver&) = delete;
    SilentReceiver& operator=(const SilentReceiver&) = delete;

    // Begins another batch. Where `checked`, returns what the sender shall prove it for, and nothing is available
    // until accept() has seen the proof; else zero.
    Block refill(BlockView message, unsigned threads);

    // Whether the sender made its trees as it must; if not, everything is refused from here on.
    [[nodiscard]] bool accept(const Digest& proof);

    std::size_t available() const { return is_waiting_ || has_refused_ ? 0 : available_; }

    // As many OTs as `t` has blocks, at most available(). choices: their plane, read, or written where random_choices;
    // message: silent_message_blocks.
    void extend(WordSpan choices, bool random_choices, BlockSpan message, BlockSpan t, unsigned threads);

  private:
    struct Batch : SilentBatch {
        using SilentBatch::SilentBatch;
        ~Batch();
        std::vector<Block> known_sums;       // of each tree, level by level
        std::vector<std::uint64_t> missing;  // leaf of each tree
    };
    void leaves_of(const Batch& batch, std::size_t tree, BlockSpan leaves) const;
    void results(const Batch& batch, std::size_t first, BlockSpan out, unsigned threads) const;
    Block begin_check(const Batch& batch, Block alpha, unsigned threads);

    SilentShape shape_;
    bool checked_, is_waiting_ = false, has_refused_ = false;
    Block session_;
    std::uint64_t batch_count_ = 0;
    std::size_t available_ = 0;
    Digest expected_;
    std::vector<Block> first_seeds_;
    std::deque<Batch> batches_;
};

}  // namespace sphynx::ot
