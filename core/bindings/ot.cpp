// OT extension and what is made of it. Messages are block or byte arrays; the protocol layer moves them.
#include <mutex>

#include "bindings/arrays.h"
#include "bits/pack.h"
#include "bits/transpose.h"
#include "ot/extension.h"
#include "ot/forms.h"

namespace {

using namespace sphynx;
using namespace sphynx::crypto;
using namespace sphynx::bits;
using namespace sphynx::ot;
using namespace sphynx::bindings;

constexpr std::size_t kMostOts = std::size_t{1} << 36;

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
          ots(k, checked, blocks(base_pairs, 2 * kBaseOtCount, "base_pairs"), prg,
              blocks(setup, setup_blocks(k, checked), "setup")) {}

    void bind(nb::bytes said) {
        const std::lock_guard alone(mutex);
        ots.bind(view_of(said));
    }

    void extend(std::size_t count, WordsOut choices, bool random_choices, WordsOut message, WordsOut t,
                unsigned threads) {
        require(count <= kMostOts, "too many OTs");
        const WordSpan bits = sized(choices, plane_words(count), "choices");
        const BlockSpan out =
            blocks(message, extension_message_blocks(k, count, random_choices, checked), "message");
        const BlockSpan labels = blocks(t, count, "t");
        nb::gil_scoped_release unlocked;
        const std::lock_guard alone(mutex);
        ots.extend(bits, random_choices, out, labels, threads);
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
          ots(k, checked, blocks(delta, 1, "delta")[0], blocks(base_keys, kBaseOtCount, "base_keys"),
              blocks(setup, setup_blocks(k, checked), "setup")) {}

    void bind(nb::bytes said) {
        const std::lock_guard alone(mutex);
        ots.bind(view_of(said));
    }

    bool has_refused() {
        const std::lock_guard alone(mutex);
        return ots.has_refused();
    }

    bool extend(std::size_t count, bool random_choices, Words message, WordsOut q, unsigned threads) {
        require(count <= kMostOts, "too many OTs");
        const BlockView in =
            blocks(message, extension_message_blocks(k, count, random_choices, checked), "message");
        const BlockSpan labels = blocks(q, count, "q");
        nb::gil_scoped_release unlocked;
        const std::lock_guard alone(mutex);
        return ots.extend(random_choices, in, labels, threads);
    }

    nb::bytes early_tweak() {
        const std::lock_guard alone(mutex);
        return bytes_of(ots.early_tweak());
    }

    void hash(nb::bytes tweak, Words q, WordsOut zeros, WordsOut ones, unsigned threads) {
        const Block r = block_from(tweak, "tweak");
        const BlockView in = blocks(q, "q");
        const BlockSpan pads0 = blocks(zeros, in.size(), "zeros"), pads1 = blocks(ones, in.size(), "ones");
        nb::gil_scoped_release unlocked;
        const std::lock_guard alone(mutex);
        ots.hash(r, in, pads0, pads1, threads);
    }

    unsigned k;
    bool checked;
    OtSender ots;
    std::mutex mutex;
};

void received_hash(nb::bytes tweak, WordsOut t, unsigned threads) {
    const Block r = block_from(tweak, "tweak");
    const BlockSpan pads = blocks(t, "t");
    nb::gil_scoped_release unlocked;
    hash_received(r, pads, threads);
}

std::size_t message_blocks(unsigned k, std::size_t count, bool random_choices, bool checked) {
    require_parameter(k);
    require(count <= kMostOts, "too many OTs");
    return extension_message_blocks(k, count, random_choices, checked);
}

std::size_t blocks_of_setup(unsigned k, bool checked) {
    require_parameter(k);
    return setup_blocks(k, checked);
}

void bit_planes(Words pads, unsigned width, WordsOut planes) {
    require_width(width);
    const Pads from = blocks(pads, "pads");
    const WordSpan to = sized(planes, product(width, plane_words(from.size())), "planes");
    nb::gil_scoped_release unlocked;
    low_bit_planes(from, width, to);
}

void pads_expand(Words pads, WordsOut out, unsigned threads) {
    const Pads from = blocks(pads, "pads");
    require(out.ndim() == 3 && out.shape(0) == from.size(), "out must have shape (pads, blocks, 2)");
    const std::size_t length = out.shape(1);
    const BlockSpan to = blocks(out, product(from.size(), length), "out");
    nb::gil_scoped_release unlocked;
    expand_pads(from, length, to, threads);
}

void chosen_send(Words m0, Words m1, Words x0, Words x1, WordsOut message) {
    const Pads pad0 = blocks(m0, "m0"), pad1 = blocks(m1, pad0.size(), "m1");
    const BlockView string0 = blocks(x0, pad0.size(), "x0"), string1 = blocks(x1, pad0.size(), "x1");
    const BlockSpan out = blocks(message, 2 * pad0.size(), "message");
    nb::gil_scoped_release unlocked;
    send_chosen(pad0, pad1, string0, string1, out);
}

void chosen_receive(Words m_r, Words choices, Words message, WordsOut out) {
    const Pads pads = blocks(m_r, "m_r");
    const WordView bits = sized(choices, plane_words(pads.size()), "choices");
    const BlockView in = blocks(message, 2 * pads.size(), "message");
    const BlockSpan strings = blocks(out, pads.size(), "out");
    nb::gil_scoped_release unlocked;
    receive_chosen(pads, bits, in, strings);
}

void products_send(Words m0, Words m1, Words x, unsigned width, BytesOut message, WordsOut shares) {
    require_width(width);
    const Pads pad0 = blocks(m0, "m0"), pad1 = blocks(m1, pad0.size(), "m1");
    const WordView values = sized(x, pad0.size(), "x");
    const WordSpan to = sized(shares, pad0.size(), "shares");
    const ByteSpan out = sized(message, packed_bytes(pad0.size(), width), "message");
    nb::gil_scoped_release unlocked;
    send_products(pad0, pad1, values, width, out, to);
}

void products_receive(Words m_r, Words choices, Bytes message, unsigned width, WordsOut shares) {
    require_width(width);
    const Pads pads = blocks(m_r, "m_r");
    const WordView bits = sized(choices, plane_words(pads.size()), "choices");
    const ByteView in = sized(message, packed_bytes(pads.size(), width), "message");
    const WordSpan to = sized(shares, pads.size(), "shares");
    nb::gil_scoped_release unlocked;
    receive_products(pads, bits, in, width, to);
}

}  // namespace

void bind_ot(nb::module_& module) {
    module.attr("base_ot_count") = kBaseOtCount;
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
