#include "circuit/circuit.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <string>

namespace sphynx::circuit {
namespace {

std::size_t total(const std::vector<std::uint32_t>& widths) {
    return std::accumulate(widths.begin(), widths.end(), std::size_t{0});
}

}  // namespace

std::size_t Circuit::input_count() const {
    return total(input_widths);
}

std::size_t Circuit::and_count() const {
    return static_cast<std::size_t>(std::count_if(
        gates.begin(), gates.end(), [](const Gate& gate) { return gate.kind == GateKind::And; }));
}

void Circuit::validate() const {
    if (input_count() > wire_count) throw std::invalid_argument("circuit: more inputs than wires");
    if (total(output_widths) != outputs.size()) {
        throw std::invalid_argument("circuit: the output widths do not add up to the number of outputs");
    }
    std::vector<bool> written(wire_count, false);
    std::fill_n(written.begin(), input_count(), true);
    const auto readable = [&](std::uint32_t wire) { return wire < wire_count && written[wire]; };
    for (std::size_t i = 0; i < gates.size(); ++i) {
        const Gate& gate = gates[i];
        if (!readable(gate.a) || !readable(gate.b)) {
            throw std::invalid_argument("circuit: gate " + std::to_string(i) +
                                        " reads a wire that is not written yet");
        }
        if (gate.out >= wire_count || written[gate.out]) {
            throw std::invalid_argument("circuit: gate " + std::to_string(i) +
                                        " writes a wire twice or out of range");
        }
        written[gate.out] = true;
    }
    if (!std::all_of(outputs.begin(), outputs.end(), readable)) {
        throw std::invalid_argument("circuit: an output wire is never written");
    }
}

void evaluate_in_clear(const Circuit& circuit, const std::uint64_t* inputs, std::size_t words,
                       std::uint64_t* outputs) {
    std::vector<std::uint64_t> wires(circuit.wire_count);
    for (std::size_t word = 0; word < words; ++word) {
        for (std::size_t i = 0; i < circuit.input_count(); ++i) wires[i] = inputs[i * words + word];
        for (const Gate& gate : circuit.gates) {
            const std::uint64_t a = wires[gate.a], b = wires[gate.b];
            switch (gate.kind) {
                case GateKind::Xor:
                    wires[gate.out] = a ^ b;
                    break;
                case GateKind::And:
                    wires[gate.out] = a & b;
                    break;
                case GateKind::Not:
                    wires[gate.out] = ~a;
                    break;
            }
        }
        for (std::size_t o = 0; o < circuit.outputs.size(); ++o) {
            outputs[o * words + word] = wires[circuit.outputs[o]];
        }
    }
}

}  // namespace sphynx::circuit
