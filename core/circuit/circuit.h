// A Boolean circuit as data: XOR, AND and NOT gates in topological order, each wire written once.
// Wires 0 .. input_count()-1 are the inputs, grouped into values; outputs name any wires, grouped likewise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sphynx::circuit {

enum class GateKind : std::uint8_t { Xor, And, Not };

struct Gate {
    GateKind kind;
    std::uint32_t a;
    std::uint32_t b;  // equal to a for Not
    std::uint32_t out;

    bool operator==(const Gate&) const = default;
};

struct Circuit {
    std::uint32_t wire_count = 0;
    std::vector<std::uint32_t> input_widths;   // bits of each input value
    std::vector<std::uint32_t> output_widths;  // bits of each output value
    std::vector<Gate> gates;
    std::vector<std::uint32_t> outputs;  // wires, in order of output_widths

    std::size_t input_count() const;
    std::size_t and_count() const;

    // Throws std::invalid_argument unless every wire is written exactly once, before it is read.
    void validate() const;
};

// The circuit in the clear on bit planes, 64 instances a word: inputs[i * words + j] -> outputs[o * words +
// j]. The oracle of garbling, and itself tested against integer arithmetic.
void evaluate_in_clear(const Circuit& circuit, const std::uint64_t* inputs, std::size_t words,
                       std::uint64_t* outputs);

}  // namespace sphynx::circuit
