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
using namespace sphynx::bindings;

// The shape with its digits, made once for all parties.
struct PlannedGadget {
    GadgetShape shape;
    Digits digits;
};

// The arrays are held as long as the party, which has views of them and of the gadget.
struct HeldParty {
    const PlannedGadget& gadget;
    std::vector<Words> arrays;
    std::unique_ptr<Party> party;
    std::atomic_flag is_at_work;
};

// One call at a time. A second thread is refused where those of an OT wait: how long a message and its answer are is
// the party's state, so that Python must be asked for memory between taking the party and using it, and what a thread
// that waited has brought would be the wrong message by then.
class Alone {
  public:
    explicit Alone(HeldParty& held) : held_(held) {
        require(!held.is_at_work.test_and_set(std::memory_order_acquire), "another thread uses this party");
    }
    ~Alone() { held_.is_at_work.clear(std::memory_order_release); }
    Alone(const Alone&) = delete;
    Alone& operator=(const Alone&) = delete;
    Party* operator->() const { return held_.party.get(); }

  private:
    HeldParty& held_;
};

class Views {
  public:
    Views(HeldParty& held) : held_(held), shape_(held.gadget.shape) {}
    const std::uint64_t* planes(const Words& array, std::size_t rows, const char* name) {
        return taken(array, product(rows, plane_words(shape_.count)), name);
    }
    const std::uint64_t* values(const Words& array, std::size_t rows, const char* name) {
        return taken(array, product(rows, shape_.count), name);
    }

  private:
    const std::uint64_t* taken(const Words& array, std::size_t size, const char* name) {
        held_.arrays.push_back(array);
        return sized(array, size, name);
    }
    HeldParty& held_;
    const GadgetShape& shape_;
};

struct SharedMaterial {
    const Words &leaf_products, &pair_masks, &three_masks, &bits, &arithmetic;
};

std::unique_ptr<HeldParty> held_party(const PlannedGadget& gadget, const Words& x,
                                      const SharedMaterial& shared, bool is_server, auto own) {
    std::unique_ptr<HeldParty> held(new HeldParty{gadget, {}, nullptr, {}});
    const GadgetShape& shape = gadget.shape;
    const Digits& digits = gadget.digits;
    Views views(*held);
    PartyMaterial material{};
    material.leaf_products = views.planes(shared.leaf_products, digits.product_rows(), "leaf_products");
    const CarryTree& tree = digits.tree();
    material.node_masks = {
        views.planes(shared.pair_masks, NodeMasks::pair_rows * tree.pair_count(), "pair_masks"),
        views.planes(shared.three_masks, NodeMasks::three_rows * tree.three_count(), "three_masks")};
    material.bits = views.planes(shared.bits, shape.result_rows(), "bits");
    material.arithmetic = views.values(shared.arithmetic, shape.arithmetic_rows(), "arithmetic");
    own(views, material);
    const std::uint64_t* from = sized(x, shape.count, "x");
    {
        nb::gil_scoped_release unlocked;
        held->party = std::make_unique<Party>(shape, digits, is_server, material, from);
    }
    return held;
}

std::unique_ptr<HeldParty> server(const PlannedGadget& gadget, Words x, Words leaf_products, Words pair_masks,
                                  Words three_masks, Words bits, Words arithmetic, Words leaf_masks,
                                  std::optional<Words> alpha) {
    const bool is_relu = gadget.shape.gadget == Gadget::relu;
    require(alpha.has_value() == is_relu, "a ReLU has alpha, a truncation has not");
    return held_party(gadget, x, {leaf_products, pair_masks, three_masks, bits, arithmetic}, true,
                      [&](Views& views, PartyMaterial& material) {
                          material.leaf_masks =
                              views.planes(leaf_masks, gadget.digits.code_rows(), "leaf_masks");
                          if (is_relu) material.alpha = views.values(*alpha, 1, "alpha");
                      });
}

std::unique_ptr<HeldParty> client(const PlannedGadget& gadget, Words x, Words leaf_products, Words pair_masks,
                                  Words three_masks, Words bits, Words arithmetic, Words new_mask) {
    return held_party(gadget, x, {leaf_products, pair_masks, three_masks, bits, arithmetic}, false,
                      [&](Views& views, PartyMaterial& material) {
                          material.new_mask = views.values(new_mask, 1, "new_mask");
                      });
}

const std::uint8_t* checked(const Alone& party, const Bytes& received) {
    const std::uint8_t* from = sized(received, party->received_bytes(), "received");
    require(reinterpret_cast<std::uintptr_t>(from) % sizeof(std::uint64_t) == 0,
            "received is not aligned to words");
    return from;
}

nb::bytes first(HeldParty& self) {
    const Alone party(self);
    auto [message, to] = new_bytes(party->first_bytes());
    {
        nb::gil_scoped_release unlocked;
        party->first(to);
    }
    return message;
}

nb::bytes answer(HeldParty& self, Bytes received) {
    const Alone party(self);
    const std::uint8_t* from = checked(party, received);
    auto [message, to] = new_bytes(party->answer_bytes());
    {
        nb::gil_scoped_release unlocked;
        party->answer(from, to);
    }
    return message;
}

void finish(HeldParty& self, Bytes received, WordsOut y) {
    const Alone party(self);
    const std::uint8_t* from = checked(party, received);
    std::uint64_t* to = sized(y, self.gadget.shape.count, "y");
    nb::gil_scoped_release unlocked;
    party->finish(from, to);
}

void bits_of(const Digits& digits, Words values, WordsOut bits) {
    const std::uint64_t* from = sized(values, values.size(), "values");
    std::uint64_t* to = sized(bits, product(digits.bit_rows(), plane_words(values.size())), "bits");
    nb::gil_scoped_release unlocked;
    digits.bits(from, values.size(), to);
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
        .def("bits", bits_of, "values"_a.noconvert(), "bits"_a.noconvert());
    nb::class_<HeldParty>(module, "GmwParty")
        .def_prop_ro("received_bytes", [](HeldParty& self) { return Alone(self)->received_bytes(); })
        .def_prop_ro("is_last", [](HeldParty& self) { return Alone(self)->is_last(); })
        .def_prop_ro("is_over", [](HeldParty& self) { return Alone(self)->is_over(); })
        .def("first", first)
        .def("answer", answer, "received"_a.noconvert())
        .def("finish", finish, "received"_a.noconvert(), "y"_a.noconvert());
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
