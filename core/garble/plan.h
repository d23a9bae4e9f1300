// A circuit made ready to run over chunks of instances. XOR gates disappear into AND steps where they can:
// such a step takes two wires per operand, adds one to its result and yields the sum of its operands beside
// it, so that a full adder is one step. Every wire lives in a slot that is reused once its last reader is
// done, so that a chunk's labels stay in the first-level cache.
#pragma once

#include <array>

#include "circuit/circuit.h"

namespace sphynx::garble {

// And: out = (in[0] ^ in[1])(in[2] ^ in[3]) ^ in[4], sum = in[0] ^ in[1] ^ in[2] ^ in[3] ^ in[5];
// Xor: out = in[0] ^ in[1] ^ in[2];
// Not: out = not in[0].
// Rows below input_count() are inputs, from there on slots of scratch memory; no_row() is a row of zeros,
// sink_row() one that is written and never read.
struct PlanStep {
    circuit::GateKind kind;
    std::array<std::uint32_t, 6> in;
    std::uint32_t out;
    std::uint32_t sum;
    std::uint32_t and_index;  // And only: its place in the order of the circuit's AND gates
};

class Plan {
  public:
    explicit Plan(const circuit::Circuit& circuit);

    std::size_t input_count() const { return input_count_; }
    std::size_t output_count() const { return outputs_.size(); }
    std::size_t and_count() const { return and_count_; }
    // Slots of scratch memory, no_row() and sink_row() included.
    std::size_t slot_count() const { return slot_count_; }
    std::uint32_t no_row() const { return static_cast<std::uint32_t>(input_count_); }
    std::uint32_t sink_row() const { return no_row() + 1; }
    const std::vector<PlanStep>& steps() const { return steps_; }
    const std::vector<std::uint32_t>& outputs() const { return outputs_; }

  private:
    void assign_slots(const std::vector<PlanStep>& on_wires, const std::vector<std::uint32_t>& output_wires,
                      std::size_t wire_count);

    std::size_t input_count_, and_count_ = 0, slot_count_ = 2;
    std::vector<PlanStep> steps_;
    std::vector<std::uint32_t> outputs_;
};

}  // namespace sphynx::garble
