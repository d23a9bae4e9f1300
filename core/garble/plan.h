// A circuit made ready to run over chunks of instances. XOR gates disappear into their readers where they can
// (an AND step takes two wires per operand and adds one to its result, a XOR step takes three), and every
// remaining wire lives in a slot that is reused once its last reader is done, so that a chunk's labels stay
// in the first-level cache.
#pragma once

#include <array>

#include "circuit/circuit.h"

namespace sphynx {

// And: out = (in[0] ^ in[1])(in[2] ^ in[3]) ^ in[4].  Xor: out = in[0] ^ in[1] ^ in[2].  Not: out = not
// in[0]. Rows below input_count() are inputs, from there on slots of scratch memory; no_row() is a row of
// zeros.
struct PlanStep {
    GateKind kind;
    std::array<std::uint32_t, 5> in;
    std::uint32_t out;
    std::uint32_t and_index;  // And only: its place in the order of the circuit's AND gates
};

class Plan {
  public:
    explicit Plan(const Circuit& circuit);

    std::size_t input_count() const { return input_count_; }
    std::size_t output_count() const { return outputs_.size(); }
    std::size_t and_count() const { return and_count_; }
    // Slots of scratch memory; the first is no_row(), kept at zero.
    std::size_t slot_count() const { return slot_count_; }
    std::uint32_t no_row() const { return static_cast<std::uint32_t>(input_count_); }
    const std::vector<PlanStep>& steps() const { return steps_; }
    const std::vector<std::uint32_t>& outputs() const { return outputs_; }

  private:
    void assign_slots(const std::vector<PlanStep>& on_wires, const std::vector<std::uint32_t>& output_wires,
                      std::size_t wire_count);

    std::size_t input_count_, and_count_ = 0, slot_count_ = 1;
    std::vector<PlanStep> steps_;
    std::vector<std::uint32_t> outputs_;
};

}  // namespace sphynx
