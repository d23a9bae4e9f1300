#include "gmw/digits.h"

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <utility>

#include "bits/transpose.h"
#include "bits/vector.h"

namespace sphynx::gmw {

using bits::loaded;

namespace {

constexpr std::size_t kMostEntries = std::size_t{1} << Digits::kMostBits;

std::size_t entries(unsigned width) {
    return std::size_t{1} << width;
}

// The places in a pad of all the client's digits that have this bit: those for g are below those for p.
std::uint64_t places(unsigned bit, unsigned width) {
    std::uint64_t having = 0;
    for (std::size_t c = 0; c < entries(width); ++c) having |= std::uint64_t{c >> bit & 1} << c;
    return having | having << entries(width);
}

// Where a digit's rows begin: of bits, of codes, of corrections, of products.
struct Rows {
    std::size_t bit, code, correction, of_g, of_p;
};

// What a client picks for one digit of `width` bits, for as many instances as Words have bits: the entries of g and p
// at its own digit c. They are folded two by two as they are made, so that all of it stays in registers.
template <unsigned kWidth, class Words>
struct Pick {
    struct Entry {
        Words g, p;
    };

    Pick(const std::uint64_t* bits, const std::uint64_t* received, std::size_t stride)
        : masked(received), stride(stride) {
        for (unsigned i = 0; i < kWidth; ++i) own[i] = loaded<Words>(bits + i * stride);
    }

    // The entry at the low `level` bits of c, above `first`. To be asked for once, with the lowest first.
    template <unsigned kLevel = kWidth, std::size_t kFirst = 0>
    [[gnu::always_inline]] Entry picked() {
        constexpr std::size_t last = (std::size_t{1} << kWidth) - 1;
        if constexpr (kLevel > 0) {
            const Entry low = picked<kLevel - 1, kFirst>();
            const Entry high = picked<kLevel - 1, kFirst + (std::size_t{1} << (kLevel - 1))>();
            const Words chosen = own[kLevel - 1];
            return {low.g ^ ((low.g ^ high.g) & chosen), low.p ^ ((low.p ^ high.p) & chosen)};
        } else if constexpr (kFirst == last) {
            return {sum, ~sum};
        } else {
            const Entry entry{sum, loaded<Words>(masked + (last - 1 - kFirst) * stride)};  // e_(last-first)
            sum ^= entry.p;
            return entry;
        }
    }

    const std::uint64_t* masked;  // the server's codes of the digit
    std::size_t stride;
    Words own[kWidth], sum{};
};

// The products of the masks are added to what is picked.
struct DigitPlanes {
    const std::uint64_t *bits, *received, *of_g, *of_p;
    std::uint64_t *g, *p;
};

template <unsigned kWidth, class Words>
[[gnu::always_inline]] inline void client_words(const DigitPlanes& digit, std::size_t j, std::size_t words) {
    Pick<kWidth, Words> pick(digit.bits + j, digit.received + j, words);
    const auto entry = pick.picked();
    bits::store(digit.g + j, loaded<Words>(digit.of_g + j) ^ entry.g);
    if constexpr (kWidth == 1)
        bits::store(digit.p + j, pick.own[0]);
    else
        bits::store(digit.p + j, loaded<Words>(digit.of_p + j) ^ entry.p);
}

template <unsigned kWidth>
void client_digit(const DigitPlanes& digit, std::size_t words) {
    std::size_t j = 0;
    for (; j + 2 <= words; j += 2) client_words<kWidth, bits::Vector>(digit, j, words);
    if (j < words) client_words<kWidth, std::uint64_t>(digit, j, words);
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

std::size_t Digits::correction_rows() const {
    return code_rows() - 1 - static_cast<std::size_t>(std::ranges::count(widths_, 1u));
}

// Hands a word of every digit, the top one included, to work: how wide the digit is, its first rows, the word.
template <class Work>
void Digits::for_words(std::size_t words, const Work& work) const {
    Rows at{0, 0, 0, 0, widths_.size() + 1};
    for (std::size_t digit = 0; digit <= widths_.size(); ++digit) {
        const unsigned width = digit < widths_.size() ? widths_[digit] : 1;
        for (std::size_t word = 0; word < words; ++word) work(width, at, word);
        at.bit += width;
        at.code += entries(width) - 1;
        at.of_g += 1;
        if (width == 1) continue;
        at.of_p += 1;
        at.correction += entries(width) - 1;
    }
}

void Digits::masks(BlockView zeros, BlockView ones, WordSpan masks, WordSpan products,
                   WordSpan corrections) const {
    const std::size_t words = masks.size() / code_rows();
    std::uint64_t pads[64], planes[64];
    for_words(words, [&](unsigned width, const Rows& at, std::size_t word) {
        std::fill_n(pads, 64, 0);
        for (unsigned bit = 0; bit < width; ++bit) {
            const std::uint64_t chosen = places(bit, width);
            const std::size_t first = 64 * ((at.bit + bit) * words + word);
            for (std::size_t i = 0; i < 64; ++i)
                pads[i] ^= (zeros[first + i].lo & ~chosen) ^ (ones[first + i].lo & chosen);
        }
        const std::size_t count = entries(width);
        bits::bits_of_word(pads, 64, 0, static_cast<unsigned>(2 * count), planes);
        const std::uint64_t *g = planes, *p = planes + count;
        for (std::size_t v = 1; v < count; ++v)
            masks[(at.code + count - 1 - v) * words + word] = g[v] ^ g[v - 1];
        products[at.of_g * words + word] = g[0];
        if (width == 1) return;
        const std::uint64_t own = p[0] ^ g[0] ^ g[1];
        products[at.of_p * words + word] = own;
        for (std::size_t c = 1; c < count; ++c)
            corrections[(at.correction + c - 1) * words + word] = p[c] ^ g[c] ^ g[(c + 1) % count] ^ own;
    });
    zeroise(pads, sizeof pads);
    zeroise(planes, sizeof planes);
}

void Digits::products(BlockView pads, WordView bits, WordView corrections, WordSpan products) const {
    const std::size_t words = bits.size() / bit_rows();
    std::uint64_t sums[64], planes[64];
    for_words(words, [&](unsigned width, const Rows& at, std::size_t word) {
        std::fill_n(sums, 64, 0);
        for (unsigned bit = 0; bit < width; ++bit) {
            const std::size_t first = 64 * ((at.bit + bit) * words + word);
            for (std::size_t i = 0; i < 64; ++i) sums[i] ^= pads[first + i].lo;
        }
        const std::size_t count = entries(width);
        bits::bits_of_word(sums, 64, 0, static_cast<unsigned>(2 * count), planes);
        std::uint64_t *g = planes, *p = planes + count;
        if (width > 1) {
            for (std::size_t c = 1; c < count; ++c)
                p[c] ^= corrections[(at.correction + c - 1) * words + word];
        }
        // The entries whose number is in the bits; no address depends on them.
        for (unsigned bit = width; bit-- > 0;) {
            const std::uint64_t chosen = bits[(at.bit + bit) * words + word];
            const std::size_t half = entries(bit);
            for (std::size_t c = 0; c < half; ++c) {
                g[c] ^= (g[c] ^ g[c + half]) & chosen;
                p[c] ^= (p[c] ^ p[c + half]) & chosen;
            }
        }
        products[at.of_g * words + word] = g[0];
        if (width > 1) products[at.of_p * words + word] = p[0];
    });
    zeroise(sums, sizeof sums);
    zeroise(planes, sizeof planes);
}

void Digits::bits(WordView values, WordSpan bits) const {
    const std::size_t words = bits::plane_words(values.size());
    std::uint64_t of_word[64];
    for (std::size_t word = 0; word < words; ++word) {
        bits::bits_of_word(values.data(), values.size(), word, top_ + 1, of_word);
        for (unsigned bit = 0; bit < bit_count_; ++bit) bits[bit * words + word] = of_word[bit];
        bits[bit_count_ * words + word] = of_word[top_];
    }
    zeroise(of_word, sizeof of_word);
}

void Digits::codes(WordView values, WordSpan codes) const {
    const std::size_t words = bits::plane_words(values.size());
    std::uint64_t of_word[64], hot[kMostEntries];
    for (std::size_t word = 0; word < words; ++word) {
        bits::bits_of_word(values.data(), values.size(), word, top_ + 1, of_word);
        const std::uint64_t* bit = of_word;
        std::uint64_t* to = codes.data() + word;
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

void Digits::server_leaves(WordView codes, WordView products, const Leaves& out) const {
    const std::size_t digits = widths_.size(), words = out.top.size();
    const std::uint64_t *code = codes.data(), *of_p = products.data() + (digits + 1) * words;
    for (std::size_t digit = 0; digit < digits; ++digit) {
        const bool is_bit = widths_[digit] == 1;
        const std::uint64_t *of_g = products.data() + digit * words, *p = is_bit ? code : of_p;
        for (std::size_t j = 0; j < words; ++j) {
            out.g[digit * words + j] = of_g[j];
            out.p[digit * words + j] = p[j];
        }
        code += (entries(widths_[digit]) - 1) * words;
        if (!is_bit) of_p += words;
    }
    for (std::size_t j = 0; j < words; ++j) {
        out.top[j] = code[j];
        out.wrap[j] = products[digits * words + j] ^ code[j];
    }
}

void Digits::client_leaves(WordView bits, WordView products, WordView received, const Leaves& out) const {
    const std::size_t digits = widths_.size(), words = out.top.size();
    const std::uint64_t *bit = bits.data(), *masked = received.data(),
                        *of_p = products.data() + (digits + 1) * words;
    for (std::size_t digit = 0; digit < digits; ++digit) {
        static constexpr decltype(&client_digit<1>) of_width[] = {client_digit<1>, client_digit<2>,
                                                                  client_digit<3>, client_digit<4>};
        static_assert(std::size(of_width) == kMostBits);
        const unsigned width = widths_[digit];
        const std::size_t at = digit * words;
        of_width[width - 1]({bit, masked, &products[at], of_p, &out.g[at], &out.p[at]}, words);
        bit += width * words;
        masked += (entries(width) - 1) * words;
        if (width > 1) of_p += words;
    }
    for (std::size_t j = 0; j < words; ++j) {
        out.top[j] = bit[j];
        out.wrap[j] = products[digits * words + j] ^ (masked[j] & bit[j]) ^ bit[j];
    }
}

}  // namespace sphynx::gmw
