// Circuits and half-gates garbling.
#include "garble/garble.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings/arrays.h"
#include "bits/transpose.h"
#include "circuit/bristol.h"
#include "circuit/library.h"

namespace {

using namespace sphynx;
using namespace sphynx::bits;
using namespace sphynx::circuit;
using namespace sphynx::garble;
using namespace sphynx::bindings;

// A circuit and what garbling needs of it, made once.
struct PlannedCircuit {
    explicit PlannedCircuit(Circuit source) : circuit(std::move(source)), plan(circuit) {}
    Circuit circuit;
    Plan plan;
};

GarbleBatch batch_of(const nb::bytes& late_tweak, std::uint64_t first_instance, std::size_t instances,
                     unsigned threads) {
    constexpr std::uint64_t most = std::uint64_t{1} << 40;  // far below any overflow of sizes or tweaks
    require(instances <= most && first_instance <= most, "too many instances");
    return {block_from(late_tweak, "late_tweak"), first_instance, instances, threads};
}

using MaybeWordsOut = std::optional<WordsOut>;

GarbledOutputs outputs_of(const Plan& plan, std::size_t instances, WordsOut& colours, MaybeWordsOut& halves) {
    const WordSpan bits = sized(colours, product(plan.output_count(), plane_words(instances)), "colours");
    if (!halves) return {bits};
    return {bits, sized(*halves, product(plan.output_count(), instances), "halves")};
}

void garble_batch(const PlannedCircuit& self, nb::bytes late_tweak, Words delta, std::uint64_t first_instance,
                  std::size_t instances, Words input_zeros, WordsOut tables, WordsOut colours,
                  MaybeWordsOut halves, unsigned threads) {
    const Plan& plan = self.plan;
    const GarbleBatch batch = batch_of(late_tweak, first_instance, instances, threads);
    const Block offset = blocks(delta, 1, "delta")[0];
    const BlockView zeros = blocks(input_zeros, product(plan.input_count(), instances), "input_zeros");
    const BlockSpan to = blocks(tables, product(2 * plan.and_count(), instances), "tables");
    const GarbledOutputs outputs = outputs_of(plan, instances, colours, halves);
    nb::gil_scoped_release unlocked;
    garble::garble(plan, batch, offset, zeros, to, outputs);
}

void evaluate_batch(const PlannedCircuit& self, nb::bytes late_tweak, std::uint64_t first_instance,
                    std::size_t instances, Words input_labels, Words tables, WordsOut colours,
                    MaybeWordsOut halves, unsigned threads) {
    const Plan& plan = self.plan;
    const GarbleBatch batch = batch_of(late_tweak, first_instance, instances, threads);
    const BlockView labels = blocks(input_labels, product(plan.input_count(), instances), "input_labels");
    const BlockView from = blocks(tables, product(2 * plan.and_count(), instances), "tables");
    const GarbledOutputs outputs = outputs_of(plan, instances, colours, halves);
    nb::gil_scoped_release unlocked;
    evaluate(plan, batch, labels, from, outputs);
}

void evaluate_clear(const PlannedCircuit& self, Words inputs, WordsOut outputs) {
    const std::size_t rows = self.circuit.input_count();
    require(rows > 0 && inputs.size() % rows == 0, "inputs must have one row per input bit");
    const std::size_t words = inputs.size() / rows;
    const std::uint64_t* from = sized(inputs, inputs.size(), "inputs").data();
    std::uint64_t* to = sized(outputs, product(self.circuit.outputs.size(), words), "outputs").data();
    nb::gil_scoped_release unlocked;
    evaluate_in_clear(self.circuit, from, words, to);
}

void encode(Words delta, Words zeros, Words planes, std::size_t instances, WordsOut labels,
            unsigned threads) {
    const BlockView from = blocks(zeros, "zeros");
    require(instances > 0 && from.size() % instances == 0, "zeros must have whole rows");
    const Block offset = blocks(delta, 1, "delta")[0];
    const std::size_t rows = from.size() / instances;
    const WordView bits = sized(planes, product(rows, plane_words(instances)), "planes");
    const BlockSpan to = blocks(labels, from.size(), "labels");
    nb::gil_scoped_release unlocked;
    encode_labels(offset, from, bits, instances, to, threads);
}

}  // namespace

void bind_garble(nb::module_& module) {
    nb::class_<PlannedCircuit>(module, "Circuit")
        .def_static(
            "read_bristol", [](const std::string& text) { return PlannedCircuit(read_bristol(text)); },
            "text"_a)
        .def_static(
            "relu", [](unsigned w, unsigned k, unsigned f) { return PlannedCircuit(relu_circuit(w, k, f)); },
            "w"_a, "k"_a, "f"_a)
        .def_static(
            "floor",
            [](unsigned w, unsigned k, unsigned f) { return PlannedCircuit(floor_circuit(w, k, f)); }, "w"_a,
            "k"_a, "f"_a)
        .def_static(
            "label",
            [](unsigned classes, unsigned w, std::uint64_t margin) {
                return PlannedCircuit(label_circuit(classes, w, margin));
            },
            "classes"_a, "w"_a, "margin"_a)
        .def_static(
            "adder", [](unsigned width) { return PlannedCircuit(adder_circuit(width)); }, "width"_a)
        .def_static("aes128", [] { return PlannedCircuit(aes128_circuit()); })
        .def("write_bristol", [](const PlannedCircuit& self) { return write_bristol(self.circuit); })
        .def_prop_ro("input_widths", [](const PlannedCircuit& self) { return self.circuit.input_widths; })
        .def_prop_ro("output_widths", [](const PlannedCircuit& self) { return self.circuit.output_widths; })
        .def_prop_ro("and_count", [](const PlannedCircuit& self) { return self.plan.and_count(); })
        .def_prop_ro("gate_count", [](const PlannedCircuit& self) { return self.circuit.gates.size(); })
        .def("evaluate_in_clear", evaluate_clear, "inputs"_a.noconvert(), "outputs"_a.noconvert())
        .def("garble", garble_batch, "late_tweak"_a, "delta"_a.noconvert(), "first_instance"_a, "instances"_a,
             "input_zeros"_a.noconvert(), "tables"_a.noconvert(), "colours"_a.noconvert(),
             "halves"_a.noconvert().none(), "threads"_a)
        .def("evaluate", evaluate_batch, "late_tweak"_a, "first_instance"_a, "instances"_a,
             "input_labels"_a.noconvert(), "tables"_a.noconvert(), "colours"_a.noconvert(),
             "halves"_a.noconvert().none(), "threads"_a);
    module.def("encode_labels", encode, "delta"_a.noconvert(), "zeros"_a.noconvert(), "planes"_a.noconvert(),
               "instances"_a, "labels"_a.noconvert(), "threads"_a);
}
