#include "gmw/party.h"

#include <algorithm>
#include <stdexcept>

#include "bits/pack.h"
#include "bits/transpose.h"
#include "gmw/multiplex.h"

namespace sphynx {
namespace {

constexpr std::size_t kMostValues = std::size_t{1} << 40;  // so that no size in bytes wraps
constexpr std::size_t kWordBytes = sizeof(std::uint64_t);

std::uint64_t low_bits(unsigned count) {
    return ~std::uint64_t{0} >> (64 - count);
}

void refuse_unless(bool condition, const char* what) {
    if (!condition) throw std::invalid_argument(what);
}

}  // namespace

void GadgetShape::check() const {
    const bool truncates = gadget == Gadget::relu ? f + 2 <= w : f >= 1 && f < w;
    refuse_unless(w >= 2 && w <= k && k <= 64 && f < 64 && truncates && count > 0 && count <= kMostValues,
                  "a GMW gadget needs 2 <= w <= k <= 64, a count and a truncation that leaves a bit");
}

Digits GadgetShape::digits() const {
    return gadget == Gadget::relu ? Digits(w, f, w - 1, 3) : Digits(f + 1, 0, w - 1, 2);
}

Party::Party(const GadgetShape& shape, const Digits& digits, bool is_server, const PartyMaterial& material,
             const std::uint64_t* x)
    : shape_(shape),
      digits_(digits),
      tree_(digits.tree()),
      is_server_(is_server),
      material_(material),
      words_(plane_words(shape.count)),
      openings_(digits.tree().levels().size() + 1) {
    std::size_t most_rows = shape.result_rows();
    for (std::size_t level = 0; level + 1 < openings_; ++level)
        most_rows = std::max(most_rows, tree_.opened_rows(level));
    const std::size_t nodes = tree_.node_count(), own = is_server ? digits.code_rows() : digits.bit_rows(),
                      rows = own + 2 * nodes + 2 + most_rows;
    memory_words_ = rows * words_ + 2 * shape.count;
    memory_ = std::make_unique_for_overwrite<std::uint64_t[]>(memory_words_);
    std::uint64_t* free = memory_.get();
    const auto taken = [&free](std::size_t size) {
        free += size;
        return free - size;
    };
    own_ = taken(own * words_);
    g_ = taken(nodes * words_), p_ = taken(nodes * words_);
    top_ = taken(words_), wrap_ = taken(words_), sent_ = taken(most_rows * words_);
    shifted_ = taken(shape.count), z_ = taken(shape.count);

    for (std::size_t j = 0; j < shape.count; ++j) shifted_[j] = (x[j] & low_bits(shape.w)) >> shape.f;
    if (is_server) {
        digits_.codes(x, shape.count, own_);
        digits_.server_leaves(own_, material.leaf_products, words_, {g_, p_, top_, wrap_});
    } else {
        digits_.bits(x, shape.count, own_);
    }
}

Party::~Party() {
    zeroise(memory_.get(), memory_words_ * kWordBytes);
}

std::size_t Party::opening_words(std::size_t number) const {
    return words_ * (number + 1 == openings_ ? shape_.result_rows() : tree_.opened_rows(number));
}

std::size_t Party::opening_bytes(std::size_t first, std::size_t last) const {
    std::size_t words = 0;
    for (std::size_t number = first; number < last; ++number) words += opening_words(number);
    return kWordBytes * words;
}

std::size_t Party::ring_bytes() const {
    return packed_bytes(shape_.count, shape_.k);
}

std::size_t Party::head_bytes() const {
    return kWordBytes * digits_.code_rows() * words_ + (shape_.gadget == Gadget::relu ? ring_bytes() : 0);
}

std::size_t Party::awaited() const {
    return std::min<std::size_t>(openings_ - closed_, is_server_ || closed_ ? 2 : 1);
}

bool Party::is_last() const {
    return is_server_ ? openings_ - closed_ < 2 : closed_ + awaited() == openings_;
}

std::size_t Party::first_bytes() const {
    return opening_bytes(0, 1) + head_bytes();
}

std::size_t Party::received_bytes() const {
    const std::size_t openings = opening_bytes(closed_, closed_ + awaited());
    if (is_server_) return openings + (is_last() ? ring_bytes() : 0);
    return openings + (closed_ == 0 ? head_bytes() : 0);
}

std::size_t Party::answer_bytes() const {
    const std::size_t next = std::min(openings_, closed_ + awaited() + 1);
    return opening_bytes(opened_, next) + (!is_server_ && is_last() ? ring_bytes() : 0);
}

void Party::first(std::uint8_t* out) {
    refuse_unless(is_server_ && opened_ == 0, "only the server has a first message, once");
    std::uint64_t* to = open(reinterpret_cast<std::uint64_t*>(out));
    const std::size_t codes = digits_.code_rows() * words_;
    for (std::size_t i = 0; i < codes; ++i) to[i] = own_[i] ^ material_.leaf_masks[i];
    if (shape_.gadget != Gadget::relu) return;
    const std::uint64_t ring = low_bits(shape_.k);
    for (std::size_t j = 0; j < shape_.count; ++j) z_[j] = (shifted_[j] - material_.alpha[j]) & ring;
    pack_ring(z_, shape_.count, shape_.k, reinterpret_cast<std::uint8_t*>(to + codes));
}

void Party::hear_head(const std::uint8_t* head) {
    const auto* received = reinterpret_cast<const std::uint64_t*>(head);
    digits_.client_leaves(own_, material_.leaf_products, received, words_, {g_, p_, top_, wrap_});
    if (shape_.gadget == Gadget::relu)
        unpack_ring(head + kWordBytes * digits_.code_rows() * words_, shape_.count, shape_.k, z_);
}

void Party::answer(const std::uint8_t* received, std::uint8_t* out) {
    refuse_unless(!is_over_ && (!is_server_ || (opened_ > 0 && !is_last())), "this party has no answer left");
    const bool is_last_of_all = is_last();
    if (!is_server_ && closed_ == 0) hear_head(received + opening_bytes(0, 1));
    std::uint64_t* end =
        take(reinterpret_cast<const std::uint64_t*>(received), reinterpret_cast<std::uint64_t*>(out));
    if (!is_last_of_all) return;
    is_over_ = true;
    share(shifted_);
    for (std::size_t j = 0; j < shape_.count; ++j) shifted_[j] -= material_.new_mask[j];
    pack_ring(shifted_, shape_.count, shape_.k, reinterpret_cast<std::uint8_t*>(end));
}

void Party::finish(const std::uint8_t* received, std::uint64_t* y) {
    refuse_unless(is_server_ && !is_over_ && opened_ > 0 && is_last(),
                  "only the server ends, with the last message");
    is_over_ = true;
    const std::size_t bytes = opening_bytes(closed_, openings_);
    take(reinterpret_cast<const std::uint64_t*>(received), nullptr);
    share(y);
    unpack_ring(received + bytes, shape_.count, shape_.k, z_);
    const std::uint64_t ring = low_bits(shape_.k);
    for (std::size_t j = 0; j < shape_.count; ++j) y[j] = (y[j] + z_[j]) & ring;
}

std::uint64_t* Party::take(const std::uint64_t* received, std::uint64_t* out) {
    for (std::size_t left = awaited(); left > 0; --left) {
        if (opened_ == closed_) out = open(out);
        const std::size_t words = opening_words(closed_);
        close(received);
        received += words;
    }
    return opened_ < openings_ ? open(out) : out;
}

std::uint64_t* Party::open(std::uint64_t* out) {
    const std::size_t words = opening_words(opened_);
    if (opened_ + 1 < openings_) {
        open_level(tree_, opened_, words_, g_, p_, material_.node_masks, sent_);
    } else {
        results(sent_);
        for (std::size_t i = 0; i < words; ++i) sent_[i] ^= material_.bits[i];
    }
    ++opened_;
    return std::copy_n(sent_, words, out);
}

void Party::close(const std::uint64_t* received) {
    if (closed_ + 1 < openings_) {
        close_level(tree_, closed_, words_, is_server_, sent_, received, material_.node_masks, g_, p_);
    } else {
        const std::size_t words = opening_words(closed_);
        for (std::size_t i = 0; i < words; ++i) sent_[i] ^= received[i];
    }
    ++closed_;
}

void Party::results(std::uint64_t* rows) const {
    const bool is_relu = shape_.gadget == Gadget::relu;
    const std::uint64_t* into_top = g_ + tree_.sign_node() * words_;
    if (is_relu) {
        const std::uint64_t flip = is_server_ ? ~std::uint64_t{0} : 0;
        for (std::size_t j = 0; j < words_; ++j) rows[j] = top_[j] ^ into_top[j] ^ flip;
        rows += words_;
    }
    if (is_relu && shape_.f == 0)
        std::fill_n(rows, words_, 0);
    else
        std::copy_n(is_relu ? g_ + tree_.truncation_node() * words_ : into_top, words_, rows);
    std::copy_n(wrap_, words_, rows + words_);
}

void Party::share(std::uint64_t* y) const {
    const std::size_t count = shape_.count;
    const std::uint64_t *s = material_.arithmetic, *bits = sent_;
    const unsigned wrap_shift = shape_.w - shape_.f;
    if (shape_.gadget == Gadget::truncation)
        return truncated_sum(bits, bits + words_, s, s + count, shifted_, count, shape_.k, wrap_shift,
                             is_server_, y);
    multiplex({bits, bits + words_, bits + 2 * words_, z_},
              {s, s + count, s + 2 * count, s + 3 * count, s + 4 * count, s + 5 * count},
              is_server_ ? material_.alpha : shifted_, count, shape_.k, wrap_shift, is_server_, y);
}

}  // namespace sphynx
