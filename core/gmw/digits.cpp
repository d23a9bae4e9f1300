#include "gmw/digits.h"

#include <stdexcept>
#include <utility>

#include "bits/transpose.h"

namespace sphynx {

Digits::Digits(unsigned w, unsigned f, unsigned top) : Digits(cut(w, f, top)) {}

Digits::Digits(Cut cut)
    : pairs_(std::move(cut.pairs)), singles_(std::move(cut.singles)), tree_(cut.leaves, cut.low) {}

Digits::Cut Digits::cut(unsigned w, unsigned f, unsigned top) {
    if (w < 2 || w > 64 || f > w - 2 || top < w - 1 || top > 63)
        throw std::invalid_argument("digits: needs 2 <= w <= 64, f <= w - 2 and w - 1 <= top <= 63");
    Cut cut;
    const auto add = [&cut](unsigned begin, unsigned end) {
        unsigned bit = begin;
        if ((end - begin) % 2) cut.singles.push_back({bit++, cut.leaves++});
        for (; bit < end; bit += 2) cut.pairs.push_back({bit, cut.leaves++});
    };
    add(0, f);
    cut.low = cut.leaves;
    add(f, w - 1);
    cut.singles.push_back({top, cut.leaves});
    return cut;
}

void Digits::terms(const std::uint64_t* values, std::size_t count, std::uint64_t* terms) const {
    const std::size_t words = plane_words(count), pairs = pairs_.size();
    for (std::size_t word = 0; word < words; ++word) {
        std::uint64_t bits[64];
        bits_of_word(values, count, word, bits);
        std::uint64_t* to = terms + word;
        for (std::size_t i = 0; i < pairs; ++i) {
            const std::uint64_t low = bits[pairs_[i].bit], high = bits[pairs_[i].bit + 1];
            to[i * words] = high;
            to[(pairs + i) * words] = low;
            to[(2 * pairs + i) * words] = high & low;
        }
        for (std::size_t i = 0; i < singles_.size(); ++i) to[(3 * pairs + i) * words] = bits[singles_[i].bit];
    }
}

void Digits::leaves(const std::uint64_t* terms, const std::uint64_t* products, const std::uint64_t* received,
                    std::size_t words, const Leaves& out) const {
    const std::size_t pairs = pairs_.size(), singles = singles_.size();
    const auto row = [words](const std::uint64_t* rows, std::size_t number) { return rows + number * words; };
    for (std::size_t i = 0; i < pairs; ++i) {
        const std::uint64_t *both = row(terms, 2 * pairs + i), *of_g = row(products, i),
                            *of_p = row(products, pairs + i);
        std::uint64_t *g = out.g + pairs_[i].leaf * words, *p = out.p + pairs_[i].leaf * words;
        for (std::size_t j = 0; j < words; ++j) {
            g[j] = of_g[j];
            p[j] = of_p[j] ^ both[j];
        }
        if (!received) continue;
        const std::uint64_t *high = row(terms, i), *low = row(terms, pairs + i);
        const std::uint64_t *s_high = row(received, i), *s_low = row(received, pairs + i),
                            *s_both = row(received, 2 * pairs + i);
        for (std::size_t j = 0; j < words; ++j) {
            g[j] ^= (s_high[j] & high[j]) ^ (s_both[j] & low[j]) ^ (s_low[j] & both[j]);
            p[j] ^= (s_high[j] & low[j]) ^ (s_low[j] & high[j]);
        }
    }
    for (std::size_t i = 0; i < singles; ++i) {
        const std::uint64_t *alone = row(terms, 3 * pairs + i), *of_g = row(products, 2 * pairs + i);
        const bool is_top = i + 1 == singles;
        std::uint64_t* g = is_top ? out.wrap : out.g + singles_[i].leaf * words;
        std::uint64_t* p = is_top ? out.top : out.p + singles_[i].leaf * words;
        const std::uint64_t add = is_top ? ~std::uint64_t{0} : 0;
        for (std::size_t j = 0; j < words; ++j) {
            p[j] = alone[j];
            g[j] = of_g[j] ^ (alone[j] & add);
        }
        if (!received) continue;
        const std::uint64_t* s_alone = row(received, 3 * pairs + i);
        for (std::size_t j = 0; j < words; ++j) g[j] ^= s_alone[j] & alone[j];
    }
}

}  // namespace sphynx
