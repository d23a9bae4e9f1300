// One party of a GMW gadget over a batch of shared values, from message to message: all that it computes between
// two messages is one call. The gadgets are a ReLU with truncation, max(x, 0) >> f, and a truncation, x >> f of
// 0 <= x < 2^(w-1); both from the carries of x_s + x_c (carry_tree.h) and modulo 2^k.
//
//   server -> client   opening 0; masked codes of the digits (digits.h); a ReLU's z = (x_s >> f) - alpha, packed
//   both, by turns     the opening that the peer waits for and the next: 0 1 | 1 2 | 2 3 | 3 4 ...
//   client -> server   after the last opening: y_c - new_mask, packed
//
// Openings are those of the tree's levels, then of the results: d xor delta (a ReLU's), c_f xor b1, wrap xor b2. To
// close one takes both parties'. A party serves once: its material must not be used again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "gmw/digits.h"

namespace sphynx {

enum class Gadget : std::uint8_t { relu, truncation };

// Public. The digits are of w and f for a ReLU, in a tree of threes; of f + 1 and 0 with the top bit w - 1 for a
// truncation, in a tree of pairs, whose masks are preprocessed in fewer messages.
struct GadgetShape {
    Gadget gadget;
    unsigned w, k, f;
    std::size_t count;

    void check()
        const;  // throws unless 2 <= w <= k <= 64, count > 0, and f <= w - 2 or, truncating, 1 <= f < w
    Digits digits() const;
    std::size_t result_rows() const { return gadget == Gadget::relu ? 3 : 2; }
    std::size_t arithmetic_rows() const { return gadget == Gadget::relu ? 6 : 2; }
};

// Views that outlive the party, words each; see sphynx.core.gmw.Material.
struct PartyMaterial {
    const std::uint64_t* leaf_products;
    NodeMasks node_masks;
    const std::uint64_t *bits, *arithmetic;
    const std::uint64_t *leaf_masks, *alpha;  // the server's; alpha a ReLU's
    const std::uint64_t* new_mask;            // the client's
};

class Party {
  public:
    // `digits` are the shape's, and outlive the party; x: this party's shares, of which w bits count.
    Party(const GadgetShape& shape, const Digits& digits, bool is_server, const PartyMaterial& material,
          const std::uint64_t* x);
    ~Party();  // zeroises its memory, in which are shares and what unmasks them

    // The server's first message.
    std::size_t first_bytes() const;
    void first(std::uint8_t* out);

    // The peer's next message, and the answer to it.
    std::size_t received_bytes() const;
    std::size_t answer_bytes() const;
    bool is_last() const;  // the server answers no more, the client for the last time
    bool is_over() const { return is_over_; }
    void answer(const std::uint8_t* received, std::uint8_t* out);
    // The server's, with the last message: its shares y - new_mask.
    void finish(const std::uint8_t* received, std::uint64_t* y);

  private:
    std::size_t opening_words(std::size_t number) const;
    std::size_t opening_bytes(std::size_t first, std::size_t last) const;
    std::size_t awaited() const;  // openings in the peer's next message
    std::size_t head_bytes() const;
    std::size_t ring_bytes() const;
    void hear_head(const std::uint8_t* head);
    std::uint64_t* open(std::uint64_t* out);
    void close(const std::uint64_t* received);
    std::uint64_t* take(const std::uint64_t* received, std::uint64_t* out);
    void results(std::uint64_t* rows) const;
    void share(std::uint64_t* y) const;

    GadgetShape shape_;
    const Digits& digits_;
    const CarryTree& tree_;
    bool is_server_, is_over_ = false;
    PartyMaterial material_;
    std::size_t words_, openings_;
    std::size_t opened_ = 0, closed_ = 0;
    std::size_t memory_words_;
    std::unique_ptr<std::uint64_t[]> memory_;  // of all below
    std::uint64_t* own_;                       // the server's codes, the client's bits
    std::uint64_t *g_, *p_, *top_, *wrap_;
    std::uint64_t* sent_;  // this party's latest opening; of the last one, at the end, both parties' sum
    std::uint64_t *shifted_, *z_;  // x >> f; a ReLU's z
};

}  // namespace sphynx
