// Randomness for both parties of a GMW gadget, as the preprocessing would leave it, from a dealer who knows the client's
// share.
#pragma once

#include <vector>

#include "bits/transpose.h"
#include "crypto/prg.h"
#include "gmw/party.h"

namespace sphynx::gmw {

using Planes = std::vector<std::uint64_t>;

inline Planes random_words(crypto::Prg& prg, std::size_t size) {
    Planes words(size);
    prg.fill(words.data(), 8 * size);
    return words;
}

class DealtNodes {
  public:
    DealtNodes(const CarryTree& tree, std::size_t words, crypto::Prg& prg) {
        using M = NodeMasks;
        deal(pairs_, M::pair_rows, tree.pair_count() * words, prg,
             {{M::pair_ab, M::pair_a, M::pair_b}, {M::pair_ac, M::pair_a, M::pair_c}});
        deal(threes_, M::three_rows, tree.three_count() * words, prg,
             {{M::ab, M::a, M::b},
              {M::ac, M::a, M::c},
              {M::ad, M::a, M::d},
              {M::ae, M::a, M::e},
              {M::cd, M::c, M::d},
              {M::ce, M::c, M::e},
              {M::acd, M::a, M::cd},
              {M::ace, M::a, M::ce}});
    }

    NodeMasks of(int party) const { return {pairs_[party], threes_[party]}; }

  private:
    struct Product {
        int row, x, y;
    };
    // Both parties' rows of `size` words, random but for products of rows that come before them.
    static void deal(Planes (&masks)[2], int rows, std::size_t size, crypto::Prg& prg,
                     const std::vector<Product>& products) {
        for (Planes& own : masks) own = random_words(prg, static_cast<std::size_t>(rows) * size);
        for (const auto& [row, x, y] : products) {
            for (std::size_t i = 0; i < size; ++i) {
                const auto sum = [&](int number) {
                    const std::size_t at = static_cast<std::size_t>(number) * size + i;
                    return masks[0][at] ^ masks[1][at];
                };
                const std::size_t at = static_cast<std::size_t>(row) * size + i;
                masks[1][at] = masks[0][at] ^ (sum(x) & sum(y));
            }
        }
    }

    Planes pairs_[2], threes_[2];
};

struct Dealt {
    Planes leaf_masks, leaf_products[2], bits[2], arithmetic[2], alpha, new_mask;

    DealtNodes nodes;

    // x_c: the client's shares.
    Dealt(const GadgetShape& shape, const Planes& x_c, crypto::Prg& prg)
        : nodes(shape.digits().tree(), bits::plane_words(shape.count), prg) {
        const Digits digits = shape.digits();
        const std::size_t count = shape.count, words = bits::plane_words(count);
        leaf_masks = random_words(prg, digits.code_rows() * words);
        leaf_products[0] = leaf_products[1] = random_words(prg, digits.product_rows() * words);
        Planes bits_c(digits.bit_rows() * words);
        digits.bits(x_c, bits_c);
        const std::size_t leaves = digits.widths().size();
        for (std::size_t j = 0; j < count; ++j) {
            const auto bit = [&](const Planes& rows, std::size_t row) {
                return rows[row * words + j / 64] >> (j % 64) & 1;
            };
            const auto add = [&](std::size_t row, std::uint64_t value) {
                leaf_products[1][row * words + j / 64] ^= value << (j % 64);
            };
            std::size_t first_bit = 0, first_code = 0, of_p = leaves + 1;
            for (std::size_t digit = 0; digit < leaves; ++digit) {
                const unsigned width = digits.widths()[digit];
                const std::size_t entries = std::size_t{1} << width;
                std::size_t c = 0;
                for (unsigned i = 0; i < width; ++i) c |= bit(bits_c, first_bit + i) << i;
                std::uint64_t mask[16] = {};
                for (std::size_t v = 1; v < entries; ++v) {
                    mask[v] = bit(leaf_masks, first_code + v - 1);
                    mask[0] ^= mask[v];
                    if (v >= entries - c) add(digit, mask[v]);
                }
                if (width > 1) add(of_p++, mask[entries - 1 - c]);
                first_bit += width, first_code += entries - 1;
            }
            add(leaves, bit(leaf_masks, first_code) & bit(bits_c, first_bit));
        }

        for (Planes& masks : bits) masks = random_words(prg, shape.result_rows() * words);
        alpha = random_words(prg, count), new_mask = random_words(prg, count);
        arithmetic[0] = arithmetic[1] = random_words(prg, shape.arithmetic_rows() * count);
        for (std::size_t j = 0; j < count; ++j) {
            const auto bit = [&](std::size_t row) {
                const std::size_t at = row * words + j / 64;
                return (bits[0][at] ^ bits[1][at]) >> (j % 64) & 1;
            };
            Planes secrets;
            if (shape.gadget == Gadget::relu) {
                const std::uint64_t shifted = (x_c[j] & ~std::uint64_t{0} >> (64 - shape.w)) >> shape.f;
                const std::uint64_t d = bit(0), b1 = bit(1), b2 = bit(2);
                secrets = {d, b1, b2, d & b1, d & b2, d * (alpha[j] + shifted)};
            } else {
                secrets = {bit(0), bit(1)};
            }
            for (std::size_t row = 0; row < secrets.size(); ++row)
                arithmetic[1][row * count + j] = secrets[row] - arithmetic[0][row * count + j];
        }
    }

    ServerMaterial of_server() const { return {of(0), leaf_masks, alpha}; }
    ClientMaterial of_client() const { return {of(1), new_mask}; }

  private:
    PartyMaterial of(int party) const {
        return {leaf_products[party], nodes.of(party), bits[party], arithmetic[party]};
    }
};

}  // namespace sphynx::gmw
