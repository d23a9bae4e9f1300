// The leaves of the carry tree: digits of two bits, of which the client knows its own before the inference, so
//   g = s1 c1 + s1 s0 c0 + s0 c1 c0        p = s1 s0 + s1 c0 + s0 c1 + c1 c0        mod 2
// A party's terms are b1, b0 and b1 b0 of its pairs of bits, then its single bits, of which the last is the top
// one. The client gets the server's under masks; products are shares of what the masks add to g of the pairs, p
// of the pairs and g of the single bits. src/sphynx/core/digits.py has where those come from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gmw/carry_tree.h"

namespace sphynx {

class Digits {
  public:
    // Cuts the bits [0, f) and [f, w - 1) of a share, no digit across f; bit `top` >= w - 1 is the top one.
    Digits(unsigned w, unsigned f, unsigned top);

    const CarryTree& tree() const { return tree_; }
    std::size_t pair_count() const { return pairs_.size(); }
    std::size_t term_rows() const { return 3 * pairs_.size() + singles_.size(); }
    std::size_t product_rows() const { return 2 * pairs_.size() + singles_.size(); }

    // terms[term_rows()][plane_words(count)]
    void terms(const std::uint64_t* values, std::size_t count, std::uint64_t* terms) const;

    // A party's shares: g and p of the leaves, the first rows of the tree's nodes; p and g xor p of the top bit.
    struct Leaves {
        std::uint64_t *g, *p, *top, *wrap;
    };
    // received: the server's masked terms, at the client; null at the server.
    void leaves(const std::uint64_t* terms, const std::uint64_t* products, const std::uint64_t* received,
                std::size_t words, const Leaves& out) const;

  private:
    struct Digit {
        unsigned bit, leaf;  // its lowest bit
    };
    struct Cut {
        std::vector<Digit> pairs, singles;
        unsigned low = 0, leaves = 0;
    };
    static Cut cut(unsigned w, unsigned f, unsigned top);
    Digits(Cut cut);

    std::vector<Digit> pairs_, singles_;
    CarryTree tree_;
};

}  // namespace sphynx
