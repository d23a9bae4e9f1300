// OT extension and what is made of it. Messages are block or byte arrays; the protocol layer moves them.
#include <mutex>

#include "bindings/arrays.h"
#include "bits/pack.h"
#include "bits/transpose.h"
#include "ot/extension.h"
#include "ot/forms.h"

namespace {

using namespace sphynx;
using namespace sphynx::bindings;

constexpr std::size_t most_ots = std::size_t{1} << 36;

void require_parameter(unsigned k) {
    require(k >= 1 && k <= 8, "the SoftSpoken parameter is 1 to 8");
}
void require_width(unsigned width) {
    require(width >= 1 && width <= 64, "width must be 1 to 64");
}

// The objects remember their parameter so that message sizes can be checked here, and take one call at a
// time: two Python threads on one object wait for each other instead of drawing the same pads.
struct Receiver {
    Receiver(unsigned parameter, bool is_checked, Words base_pairs, Prg& prg, WordsOut setup)
        : k((require_parameter(parameter), parameter)),
          checked(is_checked),
          ots(k, checked, blocks(base_pairs, 2 * base_ot_count, "base_pairs"), prg,
              blocks(setup, setup_blocks(k, checked), "setup")) {}

    void bind(nb::bytes said) {
        const std::lock_guard alone(mutex);
        ots.bind(said.c_str(), said.size());
    }

    void extend(std::size_t count, WordsOut choices, bool random_choices, WordsOut message, WordsOut t,
                unsigned threads) {
        require(count <= most_ots, "too many OTs");
        std::uint64_t* bits = sized(choices, plane_words(count), "choices");
        Block* out = blocks(message, extension_message_blocks(k, count, random_choices, checked), "message");
        Block* labels = blocks(t, count, "t");
        nb::gil_scoped_release unlocked;
        const std::lock_guard alone(mutex);
        ots.extend(count, bits, random_choices, out, labels, threads);
    }

    nb::bytes early_tweak() {
        const std::lock_guard alone(mutex);
        return bytes_of(ots.early_tweak());
    }

    unsigned k;
    bool checked;
    OtReceiver ots;
    std::mutex mutex;
};

struct Sender {
    Sender(unsigned parameter, bool is_checked, Words delta, Words base_keys, Words setup)
        : k((require_parameter(parameter), parameter)),
          checked(is_checked),
          ots(k, checked, *blocks(delta, 1, "delta"), blocks(base_keys, base_ot_count, "base_keys"),
              blocks(setup, setup_blocks(k, checked), "setup")) {}

    void bind(nb::bytes said) {
        const std::lock_guard alone(mutex);
        ots.bind(said.c_str(), said.size());
    }

    bool has_refused() {
        const std::lock_guard alone(mutex);
        return ots.has_refused();
    }

    bool extend(std::size_t count, bool random_choices, Words message, WordsOut q, unsigned threads) {
        require(count <= most_ots, "too many OTs");
        const Block* in =
            blocks(message, extension_message_blocks(k, count, random_choices, checked), "message");
        Block* labels = blocks(q, count, "q");
        nb::gil_scoped_release unlocked;
        const std::lock_guard alone(mutex);
        return ots.extend(count, random_choices, in, labels, threads);
    }

    nb::bytes early_tweak() {
        const std::lock_guard alone(mutex);
        return bytes_of(ots.early_tweak());
    }

    void hash(nb::bytes tweak, Words q, WordsOut zeros, WordsOut ones, unsigned threads) {
        const Block r = block_from(tweak, "tweak");
        const std::size_t count = block_count(q, "q");
        const Block* in = blocks(q, count, "q");
        Block *pads0 = blocks(zeros, count, "zeros"), *pads1 = blocks(ones, count, "ones");
        nb::gil_scoped_release unlocked;
        const std::lock_guard alone(mutex);
        ots.hash(r, in, count, pads0, pads1, threads);
    }

    unsigned k;
    bool checked;
    OtSender ots;
    std::mutex mutex;
};

void received_hash(nb::bytes tweak, WordsOut t, unsigned threads) {
    const Block r = block_from(tweak, "tweak");
    const std::size_t count = block_count(t, "t");
    Block* pads = blocks(t, count, "t");
    nb::gil_scoped_release unlocked;
    hash_received(r, pads, count, threads);
}

std::size_t message_blocks(unsigned k, std::size_t count, bool random_choices, bool checked) {
    require_parameter(k);
    require(count <= most_ots, "too many OTs");
    return extension_message_blocks(k, count, random_choices, checked);
}

std::size_t blocks_of_setup(unsigned k, bool checked) {
    require_parameter(k);
    return setup_blocks(k, checked);
}

void bit_planes(Words pads, unsigned width, WordsOut planes) {
    require_width(width);
    const std::size_t count = block_count(pads, "pads");
    const std::size_t words = product(width, plane_words(count));
    const Pads from(blocks(pads, count, "pads"), count);
    const std::span to(sized(planes, words, "planes"), words);
    nb::gil_scoped_release unlocked;
    low_bit_planes(from, width, to);
}

void pads_expand(Words pads, WordsOut out, unsigned threads) {
    const std::size_t count = block_count(pads, "pads");
    const Pads from(blocks(pads, count, "pads"), count);
    require(out.ndim() == 3 && out.shape(0) == count, "out must have shape (pads, blocks, 2)");
    const std::size_t length = out.shape(1), made = product(count, length);
    const std::span to(blocks(out, made, "out"), made);
    nb::gil_scoped_release unlocked;
    expand_pads(from, length, to, threads);
}

void chosen_send(Words m0, Words m1, Words x0, Words x1, WordsOut message) {
    const std::size_t count = block_count(m0, "m0");
    const Pads pad0(blocks(m0, count, "m0"), count), pad1(blocks(m1, count, "m1"), count);
    const std::span string0(blocks(x0, count, "x0"), count), string1(blocks(x1, count, "x1"), count);
    const std::span out(blocks(message, 2 * count, "message"), 2 * count);
    nb::gil_scoped_release unlocked;
    send_chosen(pad0, pad1, string0, string1, out);
}

void chosen_receive(Words m_r, Words choices, Words message, WordsOut out) {
    const std::size_t count = block_count(m_r, "m_r");
    const Pads pads(blocks(m_r, count, "m_r"), count);
    const std::span bits(sized(choices, plane_words(count), "choices"), plane_words(count));
    const std::span in(blocks(message, 2 * count, "message"), 2 * count);
    const std::span strings(blocks(out, count, "out"), count);
    nb::gil_scoped_release unlocked;
    receive_chosen(pads, bits, in, strings);
}

void products_send(Words m0, Words m1, Words x, unsigned width, BytesOut message, WordsOut shares) {
    require_width(width);
    const std::size_t count = block_count(m0, "m0");
    const std::size_t bytes = packed_bytes(count, width);
    const Pads pad0(blocks(m0, count, "m0"), count), pad1(blocks(m1, count, "m1"), count);
    const std::span values(sized(x, count, "x"), count);
    const std::span to(sized(shares, count, "shares"), count);
    const std::span out(sized(message, bytes, "message"), bytes);
    nb::gil_scoped_release unlocked;
    send_products(pad0, pad1, values, width, out, to);
}

void products_receive(Words m_r, Words choices, Bytes message, unsigned width, WordsOut shares) {
    require_width(width);
    const std::size_t count = block_count(m_r, "m_r");
    const std::size_t bytes = packed_bytes(count, width);
    const Pads pads(blocks(m_r, count, "m_r"), count);
    const std::span bits(sized(choices, plane_words(count), "choices"), plane_words(count));
    const std::span in(sized(message, bytes, "message"), bytes);
    const std::span to(sized(shares, count, "shares"), count);
    nb::gil_scoped_release unlocked;
    receive_products(pads, bits, in, width, to);
}

}  // namespace

void bind_ot(nb::module_& module) {
    module.attr("base_ot_count") = base_ot_count;
    module.def("ot_setup_blocks", blocks_of_setup, "k"_a, "checked"_a);
    module.def("ot_message_blocks", message_blocks, "k"_a, "count"_a, "random_choices"_a, "checked"_a);
    nb::class_<Receiver>(module, "OtReceiver")
        .def(nb::init<unsigned, bool, Words, Prg&, WordsOut>(), "k"_a, "checked"_a,
             "base_pairs"_a.noconvert(), "prg"_a, "setup"_a.noconvert())
        .def_ro("k", &Receiver::k)
        .def_ro("checked", &Receiver::checked)
        .def("bind", &Receiver::bind, "said"_a)
        .def("extend", &Receiver::extend, "count"_a, "choices"_a.noconvert(), "random_choices"_a,
             "message"_a.noconvert(), "t"_a.noconvert(), "threads"_a)
        .def("early_tweak", &Receiver::early_tweak);
    nb::class_<Sender>(module, "OtSender")
        .def(nb::init<unsigned, bool, Words, Words, Words>(), "k"_a, "checked"_a, "delta"_a.noconvert(),
             "base_keys"_a.noconvert(), "setup"_a.noconvert())
        .def_ro("k", &Sender::k)
        .def_ro("checked", &Sender::checked)
        .def("bind", &Sender::bind, "said"_a)
        .def("has_refused", &Sender::has_refused)
        .def("extend", &Sender::extend, "count"_a, "random_choices"_a, "message"_a.noconvert(),
             "q"_a.noconvert(), "threads"_a)
        .def("early_tweak", &Sender::early_tweak)
        .def("hash", &Sender::hash, "tweak"_a, "q"_a.noconvert(), "zeros"_a.noconvert(), "ones"_a.noconvert(),
             "threads"_a);
    module.def("hash_received", received_hash, "tweak"_a, "t"_a.noconvert(), "threads"_a);
    module.def("low_bit_planes", bit_planes, "pads"_a.noconvert(), "width"_a, "planes"_a.noconvert());
    module.def("expand_pads", pads_expand, "pads"_a.noconvert(), "out"_a.noconvert(), "threads"_a);
    module.def("send_chosen", chosen_send, "m0"_a.noconvert(), "m1"_a.noconvert(), "x0"_a.noconvert(),
               "x1"_a.noconvert(), "message"_a.noconvert());
    module.def("receive_chosen", chosen_receive, "m_r"_a.noconvert(), "choices"_a.noconvert(),
               "message"_a.noconvert(), "out"_a.noconvert());
    module.def("send_products", products_send, "m0"_a.noconvert(), "m1"_a.noconvert(), "x"_a.noconvert(),
               "width"_a, "message"_a.noconvert(), "shares"_a.noconvert());
    module.def("receive_products", products_receive, "m_r"_a.noconvert(), "choices"_a.noconvert(),
               "message"_a.noconvert(), "width"_a, "shares"_a.noconvert());
}
