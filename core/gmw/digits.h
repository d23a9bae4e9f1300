// The leaves of the carry tree: digits of one to four bits, of which the client knows its own before the
// inference. The server sends the one-hot code of its digit s, e_v = [s = v] for v >= 1, masked; with
// e_0 = 1 + e_1 + ... and N = 2^bits, mod 2,
//   g = e_(N-c) + ... + e_(N-1)        p = e_(N-1-c)
// for the client's digit c: entries that the client picks. Products are shares of what the masks add to g of
// every digit, g of the top bit, which is a digit beyond the tree, and p of the digits that have more than one
// bit; of one bit p = s + c. src/sphynx/core/digits.py has where they come from.
#pragma once

#include <vector>

#include "gmw/carry_tree.h"

namespace sphynx::gmw {

class Digits {
  public:
    static constexpr unsigned kMostBits = 4;

    // Cuts the bits [0, f) and [f, w - 1) of a share, no digit across f; bit `top` >= w - 1 is the top one.
    Digits(unsigned w, unsigned f, unsigned top, unsigned arity);

    const CarryTree& tree() const { return tree_; }
    const std::vector<unsigned>& widths() const { return widths_; }  // of the digits, without the top one
    std::size_t bit_rows() const { return bit_count_ + 1; }
    std::size_t code_rows() const;
    std::size_t product_rows() const;
    std::size_t correction_rows() const;

    // bits[bit_rows()][plane_words(values)]: the digits' bits, the lowest first, then the top bit.
    void bits(WordView values, WordSpan bits) const;
    // The server's masks of its codes, masks[code_rows()][words], share of the products, products[product_rows()][words],
    // and corrections[correction_rows()][words], from the low words of both pads of every OT: bit_rows() rows of 64 words
    // each.
    void masks(BlockView zeros, BlockView ones, WordSpan masks, WordSpan products,
               WordSpan corrections) const;
    // The client's share of the products, from its pads and its bits.
    void products(BlockView pads, WordView bits, WordView corrections, WordSpan products) const;

    // codes[code_rows()][plane_words(values)]: e_1, e_2, ... of every digit, then the top bit.
    void codes(WordView values, WordSpan codes) const;

    // A party's shares: g and p of the leaves, the first rows of the tree's nodes; p and g xor p of the top bit, one
    // plane each.
    struct Leaves {
        WordSpan g, p, top, wrap;
    };
    void server_leaves(WordView codes, WordView products, const Leaves& out) const;
    // received: the server's masked codes.
    void client_leaves(WordView bits, WordView products, WordView received, const Leaves& out) const;

  private:
    struct Cut {
        std::vector<unsigned> widths;
        unsigned low;
    };
    static Cut cut(unsigned w, unsigned f, unsigned top);
    template <class Work>
    void for_words(std::size_t words, const Work& work) const;
    Digits(Cut cut, unsigned top, unsigned arity);

    std::vector<unsigned> widths_;
    unsigned bit_count_ = 0, top_;
    CarryTree tree_;
};

}  // namespace sphynx::gmw
