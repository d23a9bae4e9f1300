// Two parties hand each other their messages: the shares of the results add up, for both gadgets, many widths and a count
// that does not fill its words; and a message out of turn is refused.
#include "gmw/party.h"

#include <memory>

#include "check.h"
#include "dealer.h"

using namespace sphynx;
using namespace sphynx::bits;
using namespace sphynx::crypto;
using namespace sphynx::gmw;

namespace {

// Exactly as large as the message, so that a sanitizer sees what is read or written beyond it.
struct Message {
    explicit Message(std::size_t size) : memory(new std::uint64_t[(size + 7) / 8]), bytes(size) {}
    ByteSpan span() { return {reinterpret_cast<std::uint8_t*>(memory.get()), bytes}; }
    std::unique_ptr<std::uint64_t[]> memory;
    std::size_t bytes;
};

Message answered(auto& party, Message received) {
    CHECK(party.received_bytes() == received.bytes);
    Message sent(party.answer_bytes());
    party.answer(received.span(), sent.span());
    return sent;
}

void check_gadget(const GadgetShape& shape, Prg& prg) {
    const std::size_t count = shape.count;
    const std::uint64_t width = ~std::uint64_t{0} >> (64 - shape.w),
                        ring = ~std::uint64_t{0} >> (64 - shape.k);
    const bool is_relu = shape.gadget == Gadget::relu;
    Planes x = random_words(prg, count), x_c = random_words(prg, count), x_s(count), y(count);
    for (std::size_t j = 0; j < count; ++j) {
        x[j] &= is_relu ? width : width >> 1;
        x_s[j] = x[j] - x_c[j];  // of which w bits count
    }
    const Dealt dealt(shape, x_c, prg);
    const Digits digits = shape.digits();
    ServerParty server(shape, digits, dealt.of_server(), x_s);
    ClientParty client(shape, digits, dealt.of_client(), x_c);
    CHECK_THROWS(server.answer({}, {}));
    CHECK_THROWS(server.finish({}, {}));
    Message message(server.first_bytes());
    server.first(message.span());
    CHECK_THROWS(server.first({}));
    std::size_t messages = 1;
    for (; !client.is_over(); ++messages) {
        message = answered(client, std::move(message));
        if (!client.is_over()) message = answered(server, std::move(message)), ++messages;
    }
    CHECK(messages == 2 * ((digits.tree().levels().size() + 1) / 2 + 1));
    CHECK(server.is_last() && server.received_bytes() == message.bytes);
    CHECK_THROWS(server.answer(message.span(), {}));
    CHECK_THROWS(client.answer(message.span(), {}));
    server.finish(message.span(), y);
    CHECK_THROWS(server.finish(message.span(), y));
    for (std::size_t j = 0; j < count; ++j) {
        const bool is_zero = is_relu && x[j] >> (shape.w - 1);
        CHECK(((y[j] + dealt.new_mask[j]) & ring) == (is_zero ? 0 : x[j] >> shape.f));
    }
}

}  // namespace

int main() {
    Prg prg;
    for (unsigned w = 2; w <= 64; w += w < 34 ? 1 : 6) {
        for (unsigned f = 0; f < w; ++f) {
            for (const unsigned k : {w, 64u}) {
                if (f <= w - 2) check_gadget({Gadget::relu, w, k, f, 65}, prg);
                if (f >= 1) check_gadget({Gadget::truncation, w, k, f, 65}, prg);
            }
        }
    }
    check_gadget({Gadget::relu, 26, 31, 11, 3584}, prg);
    for (const GadgetShape& shape : {GadgetShape{Gadget::relu, 8, 7, 0, 1},
                                     {Gadget::relu, 8, 8, 7, 1},
                                     {Gadget::relu, 8, 65, 0, 1},
                                     {Gadget::relu, 8, 8, 0, 0},
                                     {Gadget::truncation, 8, 8, 0, 1},
                                     {Gadget::truncation, 8, 8, 8, 1}}) {
        CHECK_THROWS(shape.check());
    }
    return test_result();
}
