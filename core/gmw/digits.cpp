#include "gmw/digits.h"

#include <stdexcept>
#include <utility>

#include "bits/transpose.h"

namespace sphynx {
namespace {

constexpr std::size_t kMostEntries = std::size_t{1} << Digits::kMostBits;

std::size_t entries(unsigned width) {
    return std::size_t{1} << width;
}

// table[c], c in bit-sliced form: bit i of it is `bits[i * stride]`. Overwrites the table.
std::uint64_t picked(std::uint64_t* table, unsigned width, const std::uint64_t* bits, std::size_t stride) {
    for (unsigned bit = width; bit-- > 0;) {
        const std::uint64_t chosen = bits[bit * stride];
        for (std::size_t v = 0; v < entries(bit); ++v)
            table[v] ^= (table[v] ^ table[v + entries(bit)]) & chosen;
    }
    return table[0];
}

}  // namespace

Digits::Digits(unsigned w, unsigned f, unsigned top, unsigned arity) : Digits(cut(w, f, top), top, arity) {}

Digits::Digits(Cut cut, unsigned top, unsigned arity)
    : widths_(std::move(cut.widths)),
      top_(top),
      tree_(static_cast<unsigned>(widths_.size()), cut.low, arity) {
    for (const unsigned width : widths_) bit_count_ += width;
}

Digits::Cut Digits::cut(unsigned w, unsigned f, unsigned top) {
    if (w < 2 || w > 64 || f > w - 2 || top < w - 1 || top > 63)
        throw std::invalid_argument("digits: needs 2 <= w <= 64, f <= w - 2 and w - 1 <= top <= 63");
    Cut cut{};
    const auto add = [&cut](unsigned bits) {  // as few digits as possible, of about equal width
        const unsigned count = (bits + kMostBits - 1) / kMostBits;
        for (unsigned i = 0; i < count; ++i) cut.widths.push_back(bits / count + (i < bits % count ? 1 : 0));
    };
    add(f);
    cut.low = static_cast<unsigned>(cut.widths.size());
    add(w - 1 - f);
    return cut;
}

std::size_t Digits::code_rows() const {
    std::size_t rows = 1;
    for (const unsigned width : widths_) rows += entries(width) - 1;
    return rows;
}

std::size_t Digits::product_rows() const {
    std::size_t rows = widths_.size() + 1;
    for (const unsigned width : widths_) rows += width > 1;
    return rows;
}

void Digits::bits(const std::uint64_t* values, std::size_t count, std::uint64_t* bits) const {
    const std::size_t words = plane_words(count);
    std::uint64_t of_word[64];
    for (std::size_t word = 0; word < words; ++word) {
        bits_of_word(values, count, word, of_word);
        for (unsigned bit = 0; bit < bit_count_; ++bit) bits[bit * words + word] = of_word[bit];
        bits[bit_count_ * words + word] = of_word[top_];
    }
    zeroise(of_word, sizeof of_word);
}

void Digits::codes(const std::uint64_t* values, std::size_t count, std::uint64_t* codes) const {
    const std::size_t words = plane_words(count);
    std::uint64_t of_word[64], hot[kMostEntries];
    for (std::size_t word = 0; word < words; ++word) {
        bits_of_word(values, count, word, of_word);
        const std::uint64_t* bit = of_word;
        std::uint64_t* to = codes + word;
        for (const unsigned width : widths_) {
            hot[0] = ~std::uint64_t{0};
            for (unsigned i = 0; i < width; ++i) {
                for (std::size_t v = 0; v < entries(i); ++v) {
                    hot[v + entries(i)] = hot[v] & bit[i];
                    hot[v] &= ~bit[i];
                }
            }
            for (std::size_t v = 1; v < entries(width); ++v, to += words) *to = hot[v];
            bit += width;
        }
        *to = of_word[top_];
    }
    zeroise(of_word, sizeof of_word);
    zeroise(hot, sizeof hot);
}

void Digits::server_leaves(const std::uint64_t* codes, const std::uint64_t* products, std::size_t words,
                           const Leaves& out) const {
    const std::size_t digits = widths_.size();
    const std::uint64_t* of_p = products + (digits + 1) * words;
    for (std::size_t digit = 0; digit < digits; ++digit) {
        const bool is_bit = widths_[digit] == 1;
        const std::uint64_t *of_g = products + digit * words, *p = is_bit ? codes : of_p;
        for (std::size_t j = 0; j < words; ++j) {
            out.g[digit * words + j] = of_g[j];
            out.p[digit * words + j] = p[j];
        }
        codes += (entries(widths_[digit]) - 1) * words;
        if (!is_bit) of_p += words;
    }
    for (std::size_t j = 0; j < words; ++j) {
        out.top[j] = codes[j];
        out.wrap[j] = products[digits * words + j] ^ codes[j];
    }
}

void Digits::client_leaves(const std::uint64_t* bits, const std::uint64_t* products,
                           const std::uint64_t* received, std::size_t words, const Leaves& out) const {
    const std::size_t digits = widths_.size();
    const std::uint64_t* of_p = products + (digits + 1) * words;
    for (std::size_t digit = 0; digit < digits; ++digit) {
        const unsigned width = widths_[digit];
        const std::size_t last = entries(width) - 1;
        for (std::size_t j = 0; j < words; ++j) {
            std::uint64_t g[kMostEntries], p[kMostEntries];  // for every digit of the client's
            std::uint64_t sum = 0;
            for (std::size_t c = 0; c < last; ++c) {
                g[c] = sum;
                p[c] = received[(last - 1 - c) * words + j];  // the masked e_(last-c)
                sum ^= p[c];
            }
            g[last] = sum, p[last] = ~sum;
            const std::size_t at = digit * words + j;
            out.g[at] = products[at] ^ picked(g, width, bits + j, words);
            out.p[at] = width == 1 ? bits[j] : of_p[j] ^ picked(p, width, bits + j, words);
        }
        bits += width * words;
        received += last * words;
        if (width > 1) of_p += words;
    }
    for (std::size_t j = 0; j < words; ++j) {
        out.top[j] = bits[j];
        out.wrap[j] = products[digits * words + j] ^ (received[j] & bits[j]) ^ bits[j];
    }
}

}  // namespace sphynx
