#include "gmw/party.h"

#include <algorithm>
#include <stdexcept>

#include "bits/pack.h"
#include "bits/transpose.h"
#include "gmw/multiplex.h"

namespace sphynx::gmw {
namespace {

constexpr std::size_t kMostValues = std::size_t{1} << 40;  // so that no size in bytes wraps
constexpr std::size_t kWordBytes = sizeof(std::uint64_t);

std::uint64_t low_bits(unsigned count) {
    return ~std::uint64_t{0} >> (64 - count);
}

WordView words_of(ByteView bytes) {
    return {reinterpret_cast<const std::uint64_t*>(bytes.data()), bytes.size() / kWordBytes};
}

WordSpan words_of(ByteSpan bytes) {
    return {reinterpret_cast<std::uint64_t*>(bytes.data()), bytes.size() / kWordBytes};
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

// --- both parties ---------------------------------------------------------------------------------------------

Party::Party(const GadgetShape& shape, const Digits& digits, const PartyMaterial& material,
             std::size_t own_rows, bool adds_public, WordView x)
    : shape_(shape),
      digits_(digits),
      material_(material),
      words_(bits::plane_words(shape.count)),
      openings_(digits.tree().levels().size() + 1),
      tree_(digits.tree()),
      adds_public_(adds_public) {
    std::size_t most_rows = shape.result_rows();
    for (std::size_t level = 0; level + 1 < openings_; ++level)
        most_rows = std::max(most_rows, tree_.opened_rows(level));
    const std::size_t nodes = tree_.node_count(), rows = own_rows + 2 * nodes + 2 + most_rows;
    memory_words_ = rows * words_ + 2 * shape.count;
    memory_ = std::make_unique_for_overwrite<std::uint64_t[]>(memory_words_);
    std::uint64_t* free = memory_.get();
    const auto taken = [&free](std::size_t size) -> WordSpan {
        free += size;
        return {free - size, size};
    };
    own_ = taken(own_rows * words_);
    g_ = taken(nodes * words_), p_ = taken(nodes * words_);
    top_ = taken(words_), wrap_ = taken(words_), sent_ = taken(most_rows * words_);
    shifted_ = taken(shape.count), z_ = taken(shape.count);

    for (std::size_t j = 0; j < shape.count; ++j) shifted_[j] = (x[j] & low_bits(shape.w)) >> shape.f;
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
    return bits::packed_bytes(shape_.count, shape_.k);
}

std::size_t Party::head_bytes() const {
    return kWordBytes * digits_.code_rows() * words_ + (shape_.gadget == Gadget::relu ? ring_bytes() : 0);
}

void Party::take(std::size_t openings, WordView received, WordSpan out) {
    for (; openings > 0; --openings) {
        if (opened_ == closed_) out = open(out);
        const std::size_t words = opening_words(closed_);
        close(received.first(words));
        received = received.subspan(words);
    }
    if (opened_ < openings_) open(out);
}

WordSpan Party::open(WordSpan out) {
    const WordSpan opening = sent_.first(opening_words(opened_));
    if (opened_ + 1 < openings_) {
        open_level(tree_, opened_, g_, p_, material_.node_masks, opening);
    } else {
        write_results(opening);
        for (std::size_t i = 0; i < opening.size(); ++i) opening[i] ^= material_.bits[i];
    }
    ++opened_;
    std::copy(opening.begin(), opening.end(), out.begin());
    return out.subspan(opening.size());
}

void Party::close(WordView received) {
    if (closed_ + 1 < openings_) {
        close_level(tree_, closed_, adds_public_, sent_, received, material_.node_masks, g_, p_);
    } else {
        for (std::size_t i = 0; i < received.size(); ++i) sent_[i] ^= received[i];
    }
    ++closed_;
}

void Party::write_results(WordSpan rows) const {
    const auto node = [&](std::size_t number) { return g_.subspan(number * words_, words_); };
    const bool is_relu = shape_.gadget == Gadget::relu;
    const WordView into_top = node(tree_.sign_node());
    if (is_relu) {
        const std::uint64_t flip = adds_public_ ? ~std::uint64_t{0} : 0;
        for (std::size_t j = 0; j < words_; ++j) rows[j] = top_[j] ^ into_top[j] ^ flip;
        rows = rows.subspan(words_);
    }
    const auto write = [&rows](WordView plane) {
        std::copy(plane.begin(), plane.end(), rows.begin());
        rows = rows.subspan(plane.size());
    };
    if (is_relu && shape_.f == 0) {
        std::fill_n(rows.begin(), words_, 0);
        rows = rows.subspan(words_);
    } else {
        write(is_relu ? node(tree_.truncation_node()) : into_top);
    }
    write(wrap_);
}

void Party::share(WordView own, WordSpan y) const {
    const auto plane = [&](std::size_t row) { return sent_.subspan(row * words_, words_); };
    const auto shares = [&](std::size_t row) {
        return material_.arithmetic.subspan(row * shape_.count, shape_.count);
    };
    const unsigned wrap_shift = shape_.w - shape_.f;
    if (shape_.gadget == Gadget::truncation) {
        truncated_sum(plane(0), plane(1), shares(0), shares(1), own, shape_.k, wrap_shift, adds_public_, y);
    } else {
        multiplex({plane(0), plane(1), plane(2), z_},
                  {shares(0), shares(1), shares(2), shares(3), shares(4), shares(5)}, own, shape_.k,
                  wrap_shift, adds_public_, y);
    }
}

// --- server ---------------------------------------------------------------------------------------------------

ServerParty::ServerParty(const GadgetShape& shape, const Digits& digits, const ServerMaterial& material,
                         WordView x)
    : Party(shape, digits, material, digits.code_rows(), true, x),
      leaf_masks_(material.leaf_masks),
      alpha_(material.alpha) {
    digits_.codes(x, own_);
    digits_.server_leaves(own_, material.leaf_products, leaves());
}

std::size_t ServerParty::awaited() const {
    return std::min<std::size_t>(openings_ - closed_, 2);
}

std::size_t ServerParty::first_bytes() const {
    return opening_bytes(0, 1) + head_bytes();
}

std::size_t ServerParty::received_bytes() const {
    return opening_bytes(closed_, closed_ + awaited()) + (is_last() ? ring_bytes() : 0);
}

std::size_t ServerParty::answer_bytes() const {
    return opening_bytes(opened_, std::min(openings_, closed_ + awaited() + 1));
}

void ServerParty::first(ByteSpan out) {
    refuse_unless(opened_ == 0, "the server has a first message once");
    const WordSpan codes = open(words_of(out));
    for (std::size_t i = 0; i < own_.size(); ++i) codes[i] = own_[i] ^ leaf_masks_[i];
    if (shape_.gadget != Gadget::relu) return;
    const std::uint64_t ring = low_bits(shape_.k);
    for (std::size_t j = 0; j < shape_.count; ++j) z_[j] = (shifted_[j] - alpha_[j]) & ring;
    bits::pack_ring(z_.data(), shape_.count, shape_.k, out.last(ring_bytes()).data());
}

void ServerParty::answer(ByteView received, ByteSpan out) {
    refuse_unless(opened_ > 0 && !is_last(), "this party has no answer left");
    take(awaited(), words_of(received), words_of(out));
}

void ServerParty::finish(ByteView received, WordSpan y) {
    refuse_unless(!is_over_ && opened_ > 0 && is_last(), "the server ends once, with the last message");
    is_over_ = true;
    take(awaited(), words_of(received), {});
    share(shape_.gadget == Gadget::relu ? alpha_ : shifted_, y);
    bits::unpack_ring(received.last(ring_bytes()).data(), shape_.count, shape_.k, z_.data());
    const std::uint64_t ring = low_bits(shape_.k);
    for (std::size_t j = 0; j < shape_.count; ++j) y[j] = (y[j] + z_[j]) & ring;
}

// --- client ---------------------------------------------------------------------------------------------------

ClientParty::ClientParty(const GadgetShape& shape, const Digits& digits, const ClientMaterial& material,
                         WordView x)
    : Party(shape, digits, material, digits.bit_rows(), false, x), new_mask_(material.new_mask) {
    digits_.bits(x, own_);
}

std::size_t ClientParty::awaited() const {
    return std::min<std::size_t>(openings_ - closed_, closed_ ? 2 : 1);
}

std::size_t ClientParty::received_bytes() const {
    return opening_bytes(closed_, closed_ + awaited()) + (closed_ == 0 ? head_bytes() : 0);
}

std::size_t ClientParty::answer_bytes() const {
    const std::size_t next = std::min(openings_, closed_ + awaited() + 1);
    return opening_bytes(opened_, next) + (is_last() ? ring_bytes() : 0);
}

void ClientParty::hear_head(ByteView head) {
    const WordView codes = words_of(head).first(digits_.code_rows() * words_);
    digits_.client_leaves(own_, material_.leaf_products, codes, leaves());
    if (shape_.gadget == Gadget::relu)
        bits::unpack_ring(head.last(ring_bytes()).data(), shape_.count, shape_.k, z_.data());
}

void ClientParty::answer(ByteView received, ByteSpan out) {
    refuse_unless(!is_over_, "this party has no answer left");
    const bool is_last_of_all = is_last();
    if (closed_ == 0) hear_head(received.last(head_bytes()));
    take(awaited(), words_of(received), words_of(out));
    if (!is_last_of_all) return;
    is_over_ = true;
    share(shifted_, shifted_);
    for (std::size_t j = 0; j < shape_.count; ++j) shifted_[j] -= new_mask_[j];
    bits::pack_ring(shifted_.data(), shape_.count, shape_.k, out.last(ring_bytes()).data());
}

}  // namespace sphynx::gmw
