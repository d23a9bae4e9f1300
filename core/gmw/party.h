// The parties of a GMW gadget over a batch of shared values, from message to message: all that one computes between
// two messages is one call. The gadgets are a ReLU with truncation, max(x, 0) >> f, and a truncation, x >> f of
// 0 <= x < 2^(w-1); both from the carries of x_s + x_c (carry_tree.h) and modulo 2^k.
//
//   server -> client   opening 0; masked codes of the digits (digits.h); a ReLU's z = (x_s >> f) - alpha, packed
//   both, by turns     the opening that the peer waits for and the next: 0 1 | 1 2 | 2 3 | 3 4 ...
//   client -> server   after the last opening: y_c - new_mask, packed
//
// Openings are those of the tree's levels, then of the results: d xor delta (a ReLU's), c_f xor b1, wrap xor b2. To
// close one takes both parties'. A party serves once: its material must not be used again. Messages begin with whole
// words, and are aligned to words.
#pragma once

#include <memory>

#include "gmw/digits.h"

namespace sphynx::gmw {

enum class Gadget : std::uint8_t { relu, truncation };

// Public. The digits are of w and f for a ReLU, in a tree of threes; of f + 1 and 0 with the top bit w - 1 for a
// truncation, in a tree of pairs, whose masks are preprocessed in fewer messages.
struct GadgetShape {
    Gadget gadget;
    unsigned w, k, f;
    std::size_t count;

    // Throws unless 2 <= w <= k <= 64, count > 0, and f <= w - 2 or, truncating, 1 <= f < w.
    void check() const;
    Digits digits() const;
    std::size_t result_rows() const { return gadget == Gadget::relu ? 3 : 2; }
    std::size_t arithmetic_rows() const { return gadget == Gadget::relu ? 6 : 2; }
};

// What either party has of the preprocessing; see sphynx.core.gmw.Material. Views that outlive the party.
struct PartyMaterial {
    WordView leaf_products;
    NodeMasks node_masks;
    WordView bits, arithmetic;
};

struct ServerMaterial : PartyMaterial {
    WordView leaf_masks, alpha;  // alpha: a ReLU's
};

struct ClientMaterial : PartyMaterial {
    WordView new_mask;
};

// What both parties do: their own leaves, and the openings.
class Party {
  public:
    Party(const Party&) = delete;
    Party& operator=(const Party&) = delete;

    bool is_over() const { return is_over_; }

  protected:
    // `own_rows` planes are for the party's own leaves. Exactly one party adds what is public.
    Party(const GadgetShape& shape, const Digits& digits, const PartyMaterial& material, std::size_t own_rows,
          bool adds_public, WordView x);
    ~Party();  // zeroises its memory, in which are shares and what unmasks them

    std::size_t opening_bytes(std::size_t first, std::size_t last) const;
    std::size_t head_bytes() const;  // codes, and z
    std::size_t ring_bytes() const;
    Digits::Leaves leaves() const { return {g_, p_, top_, wrap_}; }
    // Writes this party's next opening and returns what is left of `out`.
    WordSpan open(WordSpan out);
    // Closes so many openings with the peer's and opens what can be opened then.
    void take(std::size_t openings, WordView received, WordSpan out);
    // The share of the results; own: alpha at a ReLU's server, else x >> f.
    void share(WordView own, WordSpan y) const;

    GadgetShape shape_;
    const Digits& digits_;
    PartyMaterial material_;
    bool is_over_ = false;
    std::size_t words_, openings_;
    std::size_t opened_ = 0, closed_ = 0;

  private:
    std::size_t opening_words(std::size_t number) const;
    void close(WordView received);
    void write_results(WordSpan rows) const;

    const CarryTree& tree_;
    bool adds_public_;
    std::size_t memory_words_;
    std::unique_ptr<std::uint64_t[]> memory_;  // of all below
    WordSpan g_, p_, top_, wrap_;
    WordSpan sent_;  // this party's latest opening; of the last one, at the end, both parties' sum

  protected:
    WordSpan own_;          // the server's codes, the client's bits
    WordSpan shifted_, z_;  // x >> f; a ReLU's z
};

class ServerParty : public Party {
  public:
    // `digits` are the shape's, and outlive the party; x: this party's shares, of which w bits count.
    ServerParty(const GadgetShape& shape, const Digits& digits, const ServerMaterial& material, WordView x);

    std::size_t first_bytes() const;
    void first(ByteSpan out);

    // The client's next message, and the answer to it.
    std::size_t received_bytes() const;
    std::size_t answer_bytes() const;
    bool is_last() const {
        return openings_ - closed_ < 2;
    }  // the next message is the last, without an answer
    void answer(ByteView received, ByteSpan out);
    // With the last message: the server's shares y - new_mask.
    void finish(ByteView received, WordSpan y);

  private:
    std::size_t awaited() const;  // openings in the client's next message

    WordView leaf_masks_, alpha_;
};

class ClientParty : public Party {
  public:
    ClientParty(const GadgetShape& shape, const Digits& digits, const ClientMaterial& material, WordView x);

    // The server's next message, and the answer to it.
    std::size_t received_bytes() const;
    std::size_t answer_bytes() const;
    bool is_last() const { return closed_ + awaited() == openings_; }  // the next answer is the last
    void answer(ByteView received, ByteSpan out);

  private:
    std::size_t awaited() const;
    void hear_head(ByteView head);

    WordView new_mask_;
};

}  // namespace sphynx::gmw
