// Bit-sliced GMW: the digits and the carry tree, for what is preprocessed; a gadget's parties.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "bindings/arrays.h"
#include "bits/transpose.h"
#include "gmw/party.h"

namespace {

using namespace sphynx;
using namespace sphynx::bits;
using namespace sphynx::gmw;
using namespace sphynx::bindings;

// The shape with its digits, made once for all parties.
struct PlannedGadget {
    GadgetShape shape;
    Digits digits;
};

// The arrays are held as long as the party, which has views of them and of the gadget.
template <class Party>
struct Held {
    const PlannedGadget& gadget;
    std::vector<Words> arrays;
    std::unique_ptr<Party> party;
    std::atomic_flag is_at_work;
};

// One call at a time. A second thread is refused where those of an OT wait: how long a message and its answer are is
// the party's state, so that Python must be asked for memory between taking the party and using it, and what a thread
// that waited has brought would be the wrong message by then.
template <class Party>
class Alone {
  public:
    explicit Alone(Held<Party>& held) : held_(held) {
        require(!held.is_at_work.test_and_set(std::memory_order_acquire), "another thread uses this party");
    }
    ~Alone() { held_.is_at_work.clear(std::memory_order_release); }
    Alone(const Alone&) = delete;
    Alone& operator=(const Alone&) = delete;
    Party* operator->() const { return held_.party.get(); }

  private:
    Held<Party>& held_;
};

// What is given for a party, checked against the shape and kept.
class Given {
  public:
    explicit Given(const GadgetShape& shape) : shape_(shape) {}
    WordView planes(const Words& array, std::size_t rows, const char* name) {
        return kept(array, product(rows, plane_words(shape_.count)), name);
    }
    WordView values(const Words& array, std::size_t rows, const char* name) {
        return kept(array, product(rows, shape_.count), name);
    }
    std::vector<Words> arrays() { return std::move(arrays_); }

  private:
    WordView kept(const Words& array, std::size_t size, const char* name) {
        arrays_.push_back(array);
        return sized(array, size, name);
    }
    const GadgetShape& shape_;
    std::vector<Words> arrays_;
};

PartyMaterial material_of(const PlannedGadget& gadget, Given& given, const Words& leaf_products,
                          const Words& pair_masks, const Words& three_masks, const Words& bits,
                          const Words& arithmetic) {
    const Digits& digits = gadget.digits;
    const CarryTree& tree = digits.tree();
    return {given.planes(leaf_products, digits.product_rows(), "leaf_products"),
            {given.planes(pair_masks, NodeMasks::pair_rows * tree.pair_count(), "pair_masks"),
             given.planes(three_masks, NodeMasks::three_rows * tree.three_count(), "three_masks")},
            given.planes(bits, gadget.shape.result_rows(), "bits"),
            given.values(arithmetic, gadget.shape.arithmetic_rows(), "arithmetic")};
}

template <class Party>
std::unique_ptr<Held<Party>> hold(const PlannedGadget& gadget, Given& given, const auto& material,
                                  const Words& x) {
    const WordView shares = sized(x, gadget.shape.count, "x");
    std::unique_ptr<Party> party;
    {
        nb::gil_scoped_release unlocked;
        party = std::make_unique<Party>(gadget.shape, gadget.digits, material, shares);
    }
    return std::unique_ptr<Held<Party>>(new Held<Party>{gadget, given.arrays(), std::move(party), {}});
}

std::unique_ptr<Held<ServerParty>> server(const PlannedGadget& gadget, Words x, Words leaf_products,
                                          Words pair_masks, Words three_masks, Words bits, Words arithmetic,
                                          Words leaf_masks, std::optional<Words> alpha) {
    const bool is_relu = gadget.shape.gadget == Gadget::relu;
    require(alpha.has_value() == is_relu, "a ReLU has alpha, a truncation has not");
    Given given(gadget.shape);
    ServerMaterial material{
        material_of(gadget, given, leaf_products, pair_masks, three_masks, bits, arithmetic),
        given.planes(leaf_masks, gadget.digits.code_rows(), "leaf_masks"),
        {}};
    if (is_relu) material.alpha = given.values(*alpha, 1, "alpha");
    return hold<ServerParty>(gadget, given, material, x);
}

std::unique_ptr<Held<ClientParty>> client(const PlannedGadget& gadget, Words x, Words leaf_products,
                                          Words pair_masks, Words three_masks, Words bits, Words arithmetic,
                                          Words new_mask) {
    Given given(gadget.shape);
    const ClientMaterial material{
        material_of(gadget, given, leaf_products, pair_masks, three_masks, bits, arithmetic),
        given.values(new_mask, 1, "new_mask")};
    return hold<ClientParty>(gadget, given, material, x);
}

template <class Party>
ByteView checked(const Alone<Party>& party, const Bytes& received) {
    const ByteView from = sized(received, party->received_bytes(), "received");
    require(reinterpret_cast<std::uintptr_t>(from.data()) % sizeof(std::uint64_t) == 0,
            "received is not aligned to words");
    return from;
}

nb::bytes first(Held<ServerParty>& self) {
    const Alone party(self);
    const auto [message, to] = new_bytes(party->first_bytes());
    {
        nb::gil_scoped_release unlocked;
        party->first({to, message.size()});
    }
    return message;
}

template <class Party>
nb::bytes answer(Held<Party>& self, Bytes received) {
    const Alone party(self);
    const ByteView from = checked(party, received);
    const auto [message, to] = new_bytes(party->answer_bytes());
    {
        nb::gil_scoped_release unlocked;
        party->answer(from, {to, message.size()});
    }
    return message;
}

void finish(Held<ServerParty>& self, Bytes received, WordsOut y) {
    const Alone party(self);
    const ByteView from = checked(party, received);
    const WordSpan to = sized(y, self.gadget.shape.count, "y");
    nb::gil_scoped_release unlocked;
    party->finish(from, to);
}

template <class Party>
auto bind_party(nb::module_& module, const char* name) {
    return nb::class_<Held<Party>>(module, name)
        .def_prop_ro("received_bytes", [](Held<Party>& self) { return Alone(self)->received_bytes(); })
        .def("answer", answer<Party>, "received"_a.noconvert());
}

void bits_of(const Digits& digits, Words values, WordsOut bits) {
    const WordView from = sized(values, values.size(), "values");
    const WordSpan to = sized(bits, product(digits.bit_rows(), plane_words(values.size())), "bits");
    nb::gil_scoped_release unlocked;
    digits.bits(from, to);
}

// Pads of so many words of every plane.
BlockView leaf_pads(const Digits& digits, const Words& pads, std::size_t words, const char* name) {
    return blocks(pads, product(product(64, digits.bit_rows()), words), name);
}

void masks_of(const Digits& digits, Words zeros, Words ones, WordsOut masks, WordsOut products,
              WordsOut corrections) {
    const std::size_t words = masks.size() / digits.code_rows();
    const BlockView from[] = {leaf_pads(digits, zeros, words, "zeros"),
                              leaf_pads(digits, ones, words, "ones")};
    const WordSpan to[] = {sized(masks, product(words, digits.code_rows()), "masks"),
                           sized(products, product(words, digits.product_rows()), "products"),
                           sized(corrections, product(words, digits.correction_rows()), "corrections")};
    nb::gil_scoped_release unlocked;
    digits.masks(from[0], from[1], to[0], to[1], to[2]);
}

void products_of(const Digits& digits, Words pads, Words bits, Words corrections, WordsOut products) {
    const std::size_t words = bits.size() / digits.bit_rows();
    const BlockView from = leaf_pads(digits, pads, words, "pads");
    const WordView chosen = sized(bits, product(words, digits.bit_rows()), "bits");
    const WordView heard = sized(corrections, product(words, digits.correction_rows()), "corrections");
    const WordSpan to = sized(products, product(words, digits.product_rows()), "products");
    nb::gil_scoped_release unlocked;
    digits.products(from, chosen, heard, to);
}

}  // namespace

void bind_gmw(nb::module_& module) {
    nb::class_<CarryTree>(module, "CarryTree")
        .def(nb::init<unsigned, unsigned, unsigned>(), "leaves"_a, "low"_a, "arity"_a)
        .def_prop_ro("pair_count", &CarryTree::pair_count)
        .def_prop_ro("three_count", &CarryTree::three_count)
        .def_prop_ro("level_count", [](const CarryTree& tree) { return tree.levels().size(); })
        .def(
            "opened_rows",
            [](const CarryTree& tree, std::size_t level) {
                require(level < tree.levels().size(), "the tree has no such level");
                return tree.opened_rows(level);
            },
            "level"_a);
    nb::class_<Digits>(module, "Digits")
        .def(nb::init<unsigned, unsigned, unsigned, unsigned>(), "w"_a, "f"_a, "top"_a, "arity"_a)
        .def_prop_ro("tree", &Digits::tree, nb::rv_policy::reference_internal)
        .def_prop_ro("widths", &Digits::widths)
        .def_prop_ro("bit_rows", &Digits::bit_rows)
        .def_prop_ro("code_rows", &Digits::code_rows)
        .def_prop_ro("product_rows", &Digits::product_rows)
        .def_prop_ro("correction_rows", &Digits::correction_rows)
        .def("bits", bits_of, "values"_a.noconvert(), "bits"_a.noconvert())
        .def("masks", masks_of, "zeros"_a.noconvert(), "ones"_a.noconvert(), "masks"_a.noconvert(),
             "products"_a.noconvert(), "corrections"_a.noconvert())
        .def("products", products_of, "pads"_a.noconvert(), "bits"_a.noconvert(), "corrections"_a.noconvert(),
             "products"_a.noconvert());
    bind_party<ServerParty>(module, "GmwServer")
        .def_prop_ro("is_last", [](Held<ServerParty>& self) { return Alone(self)->is_last(); })
        .def("first", first)
        .def("finish", finish, "received"_a.noconvert(), "y"_a.noconvert());
    bind_party<ClientParty>(module, "GmwClient").def_prop_ro("is_over", [](Held<ClientParty>& self) {
        return Alone(self)->is_over();
    });
    nb::class_<PlannedGadget>(module, "GmwGadget")
        .def(
            "__init__",
            [](PlannedGadget* self, bool is_relu, unsigned w, unsigned k, unsigned f, std::size_t count) {
                const GadgetShape shape{is_relu ? Gadget::relu : Gadget::truncation, w, k, f, count};
                shape.check();
                new (self) PlannedGadget{shape, shape.digits()};
            },
            "is_relu"_a, "w"_a, "k"_a, "f"_a, "count"_a)
        .def("server", server, nb::keep_alive<0, 1>(), "x"_a.noconvert(), "leaf_products"_a.noconvert(),
             "pair_masks"_a.noconvert(), "three_masks"_a.noconvert(), "bits"_a.noconvert(),
             "arithmetic"_a.noconvert(), "leaf_masks"_a.noconvert(),
             "alpha"_a.noconvert().none() = nb::none())
        .def("client", client, nb::keep_alive<0, 1>(), "x"_a.noconvert(), "leaf_products"_a.noconvert(),
             "pair_masks"_a.noconvert(), "three_masks"_a.noconvert(), "bits"_a.noconvert(),
             "arithmetic"_a.noconvert(), "new_mask"_a.noconvert());
}
