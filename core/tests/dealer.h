// Randomness for both parties of a GMW gadget, as the preprocessing would leave it, from a dealer who knows the client's
// share.
#pragma once

#include <vector>

#include "bits/transpose.h"
#include "crypto/prg.h"
#include "gmw/party.h"

namespace sphynx {

using Planes = std::vector<std::uint64_t>;

inline Planes random_words(Prg& prg, std::size_t size) {
    Planes words(size);
    prg.fill(words.data(), 8 * size);
    return words;
}

struct Dealt {
    Planes leaf_masks, leaf_products[2], node_masks[2], bits[2], arithmetic[2], alpha, new_mask;

    // x_c: the client's shares.
    Dealt(const GadgetShape& shape, const Planes& x_c, Prg& prg) {
        const Digits digits = shape.digits();
        const std::size_t count = shape.count, words = plane_words(count), pairs = digits.pair_count();
        leaf_masks = random_words(prg, digits.term_rows() * words);
        leaf_products[0] = leaf_products[1] = random_words(prg, digits.product_rows() * words);
        Planes terms(digits.term_rows() * words);
        digits.terms(x_c.data(), count, terms.data());
        for (std::size_t i = 0; i < pairs * words; ++i) {
            const std::size_t low = i + pairs * words, both = i + 2 * pairs * words;
            const std::uint64_t *m = leaf_masks.data(), *c = terms.data();
            leaf_products[1][i] ^= (m[i] & c[i]) ^ (m[both] & c[low]) ^ (m[low] & c[both]);
            leaf_products[1][low] ^= (m[i] & c[low]) ^ (m[low] & c[i]);
        }
        for (std::size_t i = 3 * pairs * words; i < terms.size(); ++i)
            leaf_products[1][i - pairs * words] ^= leaf_masks[i] & terms[i];

        const std::size_t rows = digits.tree().inner_count() * words;
        for (Planes& masks : node_masks) masks = random_words(prg, 5 * rows);
        const auto opened = [&](std::size_t i) { return node_masks[0][i] ^ node_masks[1][i]; };
        for (std::size_t i = 0; i < rows; ++i) {
            node_masks[1][3 * rows + i] = node_masks[0][3 * rows + i] ^ (opened(i) & opened(rows + i));
            node_masks[1][4 * rows + i] = node_masks[0][4 * rows + i] ^ (opened(i) & opened(2 * rows + i));
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

    PartyMaterial of(bool is_server) const {
        const int at = is_server ? 0 : 1;
        return {leaf_products[at].data(), node_masks[at].data(), bits[at].data(), arithmetic[at].data(),
                leaf_masks.data(),        alpha.data(),          new_mask.data()};
    }
};

}  // namespace sphynx
