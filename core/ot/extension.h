// OT extension: SoftSpoken (Roy, eprint 2022/192) over the repetition code; k = 1 is IKNP. With its checks against a
// malicious receiver (tree_check.h, row_check.h), or without, for a receiver that the sender trusts.
//
//                   receiver (choice bits r)                                sender (offset delta)
//
//   base OTs, 128   holds both keys of each                                 holds the key chosen by delta_j
//   set-up, once    masked level sums, session   ---- setup_blocks ----->   all leaves of each tree but one
//     checked       + sums and hash of tags                                 compares
//   extension       u_i xor r for each tree i    ---- one message ---->
//     checked       + h(r), hash of h(v_b)                                  compares, before q is used
//   correlated      r_j, t_j = q_j xor r_j delta                            q_j
//   tweak           R                            <---- 16 bytes -----       R, drawn now
//   random          H(t_j, j R)                                             H(q_j, j R), H(q_j xor delta, j R)
//
//   traffic         ceil(128 / k) bits for each OT with chosen r, one bit less with random r; checked, as much as for 128
//                   OTs more, and 48 bytes
//   work            about 2^k / k AES blocks for each OT, at both parties
//
// Each small tree i gives the receiver u_i and v_b (b < k), the sender w_b = v_b xor delta_b u_i, all long
// bit vectors; u_i xor r travels. The receiver chooses its seeds, and so what the q_j differ by. R is therefore drawn
// after its message is fixed (hash.h), and hashing takes R as an argument: extend, then R, then pads, or labels of a
// garbled circuit, which are q and t themselves. Where the receiver is trusted to draw its seeds at random, both
// may take the early tweak, which is known beforehand. Checked, a receiver that deviates learns c bits of delta with
// probability 2^-c at most, and else the sender refuses it and all that comes after. One call at a time per
// object; a stream position moves on with every extension, so no pad is used twice.
#pragma once

#include <cstdint>
#include <vector>

#include "crypto/aes.h"
#include "crypto/prg.h"
#include "ot/tree_check.h"

namespace sphynx::ot {

constexpr std::size_t kBaseOtCount = 128;

// Masked level sums and the public session block; checked, two blocks more for each tree, and two.
std::size_t setup_blocks(unsigned k, bool checked);
std::size_t extension_message_blocks(unsigned k, std::size_t count, bool random_choices, bool checked);

// What both sides hold: for each small tree its leaf keys, and where the streams stand.
struct LeafStreams {
    LeafStreams(unsigned k, bool checked);

    unsigned k;
    bool checked;
    std::vector<unsigned> depths;        // of each tree; all k but possibly the last
    std::vector<crypto::AesKey> leaves;  // tree after tree
    std::uint64_t next_column_block = 0;
    std::uint64_t extensions = 0;

    std::size_t trees() const { return depths.size(); }
    // The public block that the receiver draws for a session: the key of early tweaks, and the salt of every tree
    // and stream, so that no two sessions or trees encrypt the same under their secret keys.
    void begin_session(Block drawn);
    Block salt(std::size_t tree) const {
        return session_ ^ Block { tree << 8, 0 };
    }
    // Binds later checks to what was said: `said`, and all that was bound before.
    void bind(ByteView said);
    // alpha of row_check.h for the next extension, whose trees say `sent`.
    Block challenge(std::size_t count, bool random_choices, BlockView sent) const;
    // A tweak R of the last extension that both sides know before its message: AES_session(how many there were).
    Block early_tweak() const;

  private:
    Block session_ = {};
    crypto::AesKey early_tweaks_;
    Digest context_;
};

class OtReceiver {
  public:
    // base_pairs[2 j], [2 j + 1]: both keys of base OT j. `setup` receives setup_blocks blocks to send. All
    // secrets are drawn here.
    OtReceiver(unsigned k, bool checked, BlockView base_pairs, crypto::Prg& prg, BlockSpan setup);

    void bind(ByteView said) { streams_.bind(said); }

    // As many OTs as `t` has blocks. choices: their plane, read, or written where random_choices; message:
    // extension_message_blocks.
    void extend(WordSpan choices, bool random_choices, BlockSpan message, BlockSpan t, unsigned threads);

    Block early_tweak() const { return streams_.early_tweak(); }

  private:
    LeafStreams streams_;
    crypto::AesKey mask_choices_;  // choices of the block that hides h(r): AES of the extension's number
};

// Hashes the t of an extension, r its tweak, into the random-OT outputs, in place.
void hash_received(Block r, BlockSpan t, unsigned threads);

class OtSender {
  public:
    // base_keys[j]: the key of base OT j for choice delta_j. delta's lowest bit must be 1 (it can then serve
    // as a garbling offset).
    OtSender(unsigned k, bool checked, Block delta, BlockView base_keys, BlockView setup);
    ~OtSender() { zeroise(&delta_, sizeof delta_); }
    OtSender(const OtSender&) = delete;
    OtSender& operator=(const OtSender&) = delete;

    void bind(ByteView said) { streams_.bind(said); }

    // Whether the receiver failed a check, of its set-up or of an extension. It may have learnt something of delta, which
    // must then serve nothing else: extend refuses from here on.
    bool has_refused() const { return has_refused_; }

    // As many OTs as `q` has blocks. False, and no q, if the receiver is or was refused.
    [[nodiscard]] bool extend(bool random_choices, BlockView message, BlockSpan q, unsigned threads);

    Block early_tweak() const { return streams_.early_tweak(); }

    // From the q of an extension, r its tweak: zeros[j] = H(q_j, j R), ones[j] = H(q_j xor delta, j R). q may be
    // `zeros`.
    void hash(Block r, BlockView q, BlockSpan zeros, BlockSpan ones, unsigned threads) const;

  private:
    LeafStreams streams_;
    Block delta_;
    bool has_refused_ = false;
};

}  // namespace sphynx::ot
