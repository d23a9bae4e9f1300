// RLWE for linear layers: parameters, keys, uploads, prepared weights, masked replies. Submodule
// _native.rlwe.
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "bindings/arrays.h"
#include "rlwe/client.h"
#include "rlwe/noise.h"
#include "rlwe/server.h"
#include "threads.h"

namespace {

using namespace sphynx;
using namespace sphynx::crypto;
using namespace sphynx::bindings;
using namespace sphynx::rlwe;
using ParamsPtr = std::shared_ptr<const Params>;
using Indices = Array<const std::uint32_t>;

std::span<const std::uint8_t> view(const nb::bytes& bytes) {
    return {reinterpret_cast<const std::uint8_t*>(bytes.c_str()), bytes.size()};
}

UsedCoefficients used_from(const Params& params, const Indices& index,
                           const std::vector<std::size_t>& counts) {
    const std::uint32_t* from = sized(index, index.size(), "used_index").data();
    UsedCoefficients used{{from, from + index.size()}, counts};
    used.check(params);
    return used;
}

void require_same(const Params& a, const Params& b) {
    require(&a == &b, "keys, ciphertexts and weights must come from one Params object");
}

nb::bytes encrypt(const SecretKey& key, const Words& messages, Prg& prg, unsigned threads) {
    const auto n = static_cast<std::size_t>(key.params().n());
    require(messages.ndim() == 2 && messages.shape(1) == n,
            "messages must have shape (count, " + std::to_string(n) + ")");
    const std::size_t count = messages.shape(0);
    const std::uint64_t* from = sized(messages, messages.size(), "messages").data();
    auto [wire, to] = new_bytes(product(count, key.params().upload_bytes()));
    {
        nb::gil_scoped_release unlocked;
        key.encrypt(from, count, prg, threads, to);
    }
    return wire;
}

void decrypt(const SecretKey& key, const nb::bytes& wire, const Indices& used_index,
             const std::vector<std::size_t>& used_counts, std::size_t tiles, const WordsOut& out,
             unsigned threads) {
    const UsedCoefficients used = used_from(key.params(), used_index, used_counts);
    std::uint64_t* to = sized(out, product(tiles, used.total()), "out").data();
    const auto bytes = view(wire);
    nb::gil_scoped_release unlocked;
    key.decrypt(bytes, used, tiles, threads, to);
}

void set_reply(Weights& weights, std::size_t reply, const Array<const std::int32_t>& polynomials,
               unsigned threads) {
    const auto degree = static_cast<std::size_t>(weights.degree());
    const std::int32_t* from = sized(polynomials, product(weights.inputs(), degree), "polynomials").data();
    nb::gil_scoped_release unlocked;
    parallel_ranges(weights.inputs(), 1, threads, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) weights.set(reply, i, from + i * degree);
    });
}

// inputs: per convolution input its ciphertexts, each holding `tiles` equal runs; a tile's operand is run t
// of every input. The counts are checked before the loop, so that they bound it.
std::vector<const std::int32_t*> operands(const Weights& weights,
                                          const std::vector<std::shared_ptr<Ciphertexts>>& inputs,
                                          std::size_t tiles) {
    std::size_t total = 0;
    for (const auto& input : inputs) {
        require(input != nullptr && input->count() % tiles == 0,
                "every input needs the same number of ciphertexts per tile");
        require_same(input->params(), weights.params());
        total += input->count();
    }
    require(total == product(tiles, weights.inputs()),
            "the number of ciphertexts does not match the weights");
    std::vector<const std::int32_t*> pointers;
    pointers.reserve(total);
    for (std::size_t tile = 0; tile < tiles; ++tile) {
        for (const auto& input : inputs) {
            const std::size_t run = input->count() / tiles;
            for (std::size_t i = 0; i < run; ++i) pointers.push_back(input->data(tile * run + i));
        }
    }
    return pointers;
}

nb::bytes reply(const PublicKey& key, const Weights& weights,
                const std::vector<std::shared_ptr<Ciphertexts>>& inputs, std::size_t tiles,
                const Indices& used_index, const std::vector<std::size_t>& used_counts, Prg& prg,
                const WordsOut& share, unsigned threads) {
    const Params& params = key.params();
    require_same(weights.params(), params);
    require(tiles >= 1, "there is at least one tile");
    const UsedCoefficients used = used_from(params, used_index, used_counts);
    const auto pointers = operands(weights, inputs, tiles);
    require(used.count.size() == weights.replies(), "used_counts must have one entry per reply of a tile");
    std::uint64_t* to_share = sized(share, product(tiles, used.total()), "share").data();
    auto [wire, to] = new_bytes(product(tiles, used.reply_bytes(params)));
    {
        nb::gil_scoped_release unlocked;
        respond(key, weights, pointers, tiles, used, prg, threads, to, to_share);
    }
    return wire;
}

// Unmasked sums of products, thrown away: what the benchmarks time as "the product".
void time_products(const Weights& weights, const std::vector<std::shared_ptr<Ciphertexts>>& inputs,
                   unsigned threads) {
    const auto pointers = operands(weights, inputs, 1);
    nb::gil_scoped_release unlocked;
    std::vector<std::int32_t> sums(weights.replies() * 2 * sum_stride(weights.params()));
    product_sums(weights, pointers, 1, threads, sums.data());
}

void transform(const Params& params, int prime, bool forward, const Array<std::int32_t>& values) {
    require(prime >= 0 && prime < params.primes(), "no such prime");
    std::int32_t* data = sized(values, static_cast<std::size_t>(params.n()), "values").data();
    const std::int32_t p = params.modulus(prime).p();
    const bool inside =
        std::all_of(data, data + params.n(), [p](std::int32_t x) { return -p <= x && x <= p; });
    require(inside, "a residue lies outside [-p, p]");
    nb::gil_scoped_release unlocked;
    (forward ? best_kernels().forward : best_kernels().inverse)(data, params.table(prime));
}

nb::tuple noise(const Params& params, double l1, double l2_squared) {
    require(l1 >= 0 && l2_squared >= 0, "norms are not negative and not NaN");
    const NoiseBound bound = reply_noise(params, l1, l2_squared);
    return nb::make_tuple(bound.worst, bound.rms, bound.log2_off_by_one);
}

void bind_params(nb::module_& module) {
    nb::class_<Params>(module, "Params")
        .def_static(
            "for_ring",
            [](int ring_bits) { return std::const_pointer_cast<Params>(Params::for_ring(ring_bits)); },
            "ring_bits"_a)
        .def_static(
            "make",
            [](int n, int ring_bits, const std::vector<int>& prime_bits, int reply_primes) {
                return std::const_pointer_cast<Params>(Params::make(n, ring_bits, prime_bits, reply_primes));
            },
            "n"_a, "ring_bits"_a, "prime_bits"_a, "reply_primes"_a)
        .def_prop_ro("n", &Params::n)
        .def_prop_ro("ring_bits", &Params::ring_bits)
        .def_prop_ro("primes",
                     [](const Params& params) {
                         std::vector<int> primes;
                         for (int i = 0; i < params.primes(); ++i) primes.push_back(params.modulus(i).p());
                         return primes;
                     })
        .def_prop_ro("reply_primes", &Params::reply_primes)
        .def_prop_ro("modulus_bits", &Params::modulus_bits)
        .def_prop_ro("upload_bytes", &Params::upload_bytes)
        .def_prop_ro("public_key_bytes", &Params::public_key_bytes)
        .def(
            "reply_bytes",
            [](const Params& params, std::size_t used) {
                require(used <= static_cast<std::size_t>(params.n()), "a reply has at most n coefficients");
                return params.reply_bytes(used);
            },
            "used"_a)
        .def("noise", noise, "l1"_a, "l2_squared"_a)
        .def("transform", transform, "prime"_a, "forward"_a, "values"_a.noconvert());
}

}  // namespace

void bind_rlwe(nb::module_& parent) {
    nb::module_ module = parent.def_submodule("rlwe", "RLWE for linear layers");
    bind_params(module);
    module.def("path", [] { return best_kernels().name; });
    module.def("max_modulus_bits", max_modulus_bits, "n"_a);

    nb::class_<SecretKey>(module, "SecretKey")
        .def(
            "__init__",
            [](SecretKey* self, std::shared_ptr<Params> params, Prg& prg) {
                new (self) SecretKey(std::move(params), prg);
            },
            "params"_a, "prg"_a)
        .def(
            "public_key",
            [](const SecretKey& key, Prg& prg) {
                auto [wire, to] = new_bytes(key.params().public_key_bytes());
                key.public_key(prg, to);
                return wire;
            },
            "prg"_a)
        .def("encrypt", encrypt, "messages"_a.noconvert(), "prg"_a, "threads"_a = 0)
        .def("decrypt", decrypt, "wire"_a, "used_index"_a.noconvert(), "used_counts"_a, "tiles"_a,
             "out"_a.noconvert(), "threads"_a = 0);

    nb::class_<PublicKey>(module, "PublicKey")
        .def(
            "__init__",
            [](PublicKey* self, std::shared_ptr<Params> params, const nb::bytes& wire) {
                new (self) PublicKey(std::move(params), view(wire));
            },
            "params"_a, "wire"_a);

    nb::class_<Ciphertexts>(module, "Ciphertexts")
        .def(
            "__init__",
            [](Ciphertexts* self, std::shared_ptr<Params> params, const nb::bytes& wire, std::size_t count,
               unsigned threads) {
                const auto bytes = view(wire);
                nb::gil_scoped_release unlocked;
                new (self) Ciphertexts(std::move(params), bytes, count, threads);
            },
            "params"_a, "wire"_a, "count"_a, "threads"_a = 0)
        .def_prop_ro("count", &Ciphertexts::count);

    nb::class_<Weights>(module, "Weights")
        .def(
            "__init__",
            [](Weights* self, std::shared_ptr<Params> params, std::size_t replies, std::size_t inputs,
               int degree) { new (self) Weights(std::move(params), replies, inputs, degree); },
            "params"_a, "replies"_a, "inputs"_a, "degree"_a)
        .def(
            "__init__",
            [](Weights* self, std::shared_ptr<Params> params, std::size_t replies, std::size_t inputs,
               int degree, const Array<const std::int32_t>& shared) {
                new (self) Weights(std::move(params), replies, inputs, degree,
                                   sized(shared, shared.size(), "shared").data(), shared.size());
            },
            "params"_a, "replies"_a, "inputs"_a, "degree"_a, "shared"_a.noconvert(), nb::keep_alive<1, 6>())
        .def(
            "copy_to",
            [](const Weights& weights, const Array<std::int32_t>& out) {
                std::copy_n(weights.values(), weights.size(), sized(out, weights.size(), "out").data());
            },
            "out"_a.noconvert())
        .def("set_reply", set_reply, "reply"_a, "polynomials"_a.noconvert(), "threads"_a = 0)
        .def_prop_ro("bytes", &Weights::bytes);

    module.def("reply", reply, "key"_a, "weights"_a, "inputs"_a, "tiles"_a, "used_index"_a.noconvert(),
               "used_counts"_a, "prg"_a, "share"_a.noconvert(), "threads"_a = 0);
    module.def("time_products", time_products, "weights"_a, "inputs"_a, "threads"_a = 1);
}
