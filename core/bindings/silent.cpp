// Silent OT. The protocol layer moves its messages, and makes its seeds by the extension of ot.cpp.
#include "ot/silent.h"

#include <mutex>

#include "bindings/arrays.h"
#include "bits/transpose.h"

namespace {

using namespace sphynx;
using namespace sphynx::crypto;
using namespace sphynx::bits;
using namespace sphynx::ot;
using namespace sphynx::bindings;

constexpr std::size_t kMostOts = std::size_t{1} << 36;

SilentShape shape_of(std::size_t secret, std::size_t trees, unsigned depth) {
    const SilentShape shape{secret, trees, depth};
    shape.require_valid();
    return shape;
}

// One call at a time, as in ot.cpp; other names, for nanobind knows types by theirs.
struct BoundSender {
    BoundSender(std::size_t secret, std::size_t trees, unsigned depth, nb::bytes session, Words delta,
                Words q)
        : shape(shape_of(secret, trees, depth)),
          ots(shape, block_from(session, "session"), blocks(delta, 1, "delta")[0],
              blocks(q, shape.seeds(), "q")) {}

    void refill(Prg& prg, WordsOut message, unsigned threads) {
        const BlockSpan out = blocks(message, shape.refill_blocks(), "message");
        nb::gil_scoped_release unlocked;
        const std::lock_guard alone(mutex);
        ots.refill(prg, out, threads);
    }

    nb::bytes prove(nb::bytes masked, unsigned threads) {
        const Block answer = block_from(masked, "masked");
        Digest proof;
        {
            nb::gil_scoped_release unlocked;
            const std::lock_guard alone(mutex);
            proof = ots.prove(answer, threads);
        }
        return nb::bytes(&proof, sizeof proof);
    }

    std::size_t available() {
        const std::lock_guard alone(mutex);
        return ots.available();
    }

    void extend(std::size_t count, bool random_choices, Words message, WordsOut q, unsigned threads) {
        require(count <= kMostOts, "too many OTs");
        const BlockView in = blocks(message, silent_message_blocks(count, random_choices), "message");
        const BlockSpan labels = blocks(q, count, "q");
        nb::gil_scoped_release unlocked;
        const std::lock_guard alone(mutex);
        ots.extend(in, labels, threads);
    }

    SilentShape shape;
    SilentSender ots;
    std::mutex mutex;
};

struct BoundReceiver {
    BoundReceiver(std::size_t secret, std::size_t trees, unsigned depth, bool checked, nb::bytes session,
                  Words t)
        : shape(shape_of(secret, trees, depth)),
          ots(shape, checked, block_from(session, "session"), blocks(t, shape.seeds(), "t")) {}

    nb::bytes refill(Words message, unsigned threads) {
        const BlockView in = blocks(message, shape.refill_blocks(), "message");
        Block masked;
        {
            nb::gil_scoped_release unlocked;
            const std::lock_guard alone(mutex);
            masked = ots.refill(in, threads);
        }
        return bytes_of(masked);
    }

    bool accept(nb::bytes proof) {
        Digest digest;
        require(proof.size() == sizeof digest, "proof must be 32 bytes");
        __builtin_memcpy(static_cast<void*>(&digest), proof.c_str(), sizeof digest);
        const std::lock_guard alone(mutex);
        return ots.accept(digest);
    }

    std::size_t available() {
        const std::lock_guard alone(mutex);
        return ots.available();
    }

    void extend(std::size_t count, WordsOut choices, bool random_choices, WordsOut message, WordsOut t,
                unsigned threads) {
        require(count <= kMostOts, "too many OTs");
        const WordSpan bits = sized(choices, plane_words(count), "choices");
        const BlockSpan out = blocks(message, silent_message_blocks(count, random_choices), "message");
        const BlockSpan labels = blocks(t, count, "t");
        nb::gil_scoped_release unlocked;
        const std::lock_guard alone(mutex);
        ots.extend(bits, random_choices, out, labels, threads);
    }

    SilentShape shape;
    SilentReceiver ots;
    std::mutex mutex;
};

}  // namespace

void bind_silent(nb::module_& module) {
    module.attr("silent_shape") = nb::make_tuple(kSilentShape.secret, kSilentShape.trees, kSilentShape.depth);
    module.def(
        "silent_seeds",
        [](std::size_t secret, std::size_t trees, unsigned depth) {
            return shape_of(secret, trees, depth).seeds();
        },
        "secret"_a, "trees"_a, "depth"_a);
    nb::class_<BoundSender>(module, "SilentSender")
        .def(nb::init<std::size_t, std::size_t, unsigned, nb::bytes, Words, Words>(), "secret"_a, "trees"_a,
             "depth"_a, "session"_a, "delta"_a.noconvert(), "q"_a.noconvert())
        .def("refill", &BoundSender::refill, "prg"_a, "message"_a.noconvert(), "threads"_a)
        .def("prove", &BoundSender::prove, "masked"_a, "threads"_a)
        .def("available", &BoundSender::available)
        .def("extend", &BoundSender::extend, "count"_a, "random_choices"_a, "message"_a.noconvert(),
             "q"_a.noconvert(), "threads"_a);
    nb::class_<BoundReceiver>(module, "SilentReceiver")
        .def(nb::init<std::size_t, std::size_t, unsigned, bool, nb::bytes, Words>(), "secret"_a, "trees"_a,
             "depth"_a, "checked"_a, "session"_a, "t"_a.noconvert())
        .def("refill", &BoundReceiver::refill, "message"_a.noconvert(), "threads"_a)
        .def("accept", &BoundReceiver::accept, "proof"_a)
        .def("available", &BoundReceiver::available)
        .def("extend", &BoundReceiver::extend, "count"_a, "choices"_a.noconvert(), "random_choices"_a,
             "message"_a.noconvert(), "t"_a.noconvert(), "threads"_a);
}
