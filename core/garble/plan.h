// A circuit made ready to run over chunks of instances: every wire lives in a slot that is reused once its last
// reader is done, so that the labels of a chunk stay in the first-level cache; AND gates are numbered.
#pragma once

#include "circuit/circuit.h"

namespace sphynx {

struct PlanStep {
    GateKind kind;
    // Rows: below input_count an input wire, from there on a slot of the scratch memory.
    std::uint32_t a;
    std::uint32_t b;
    std::uint32_t out;
    std::uint32_t and_index;  // meaningful for And
};

class Plan {
  public:
    explicit Plan(const Circuit& circuit);

    std::size_t input_count() const { return input_count_; }
    std::size_t output_count() const { return outputs_.size(); }
    std::size_t and_count() const { return and_count_; }
    std::size_t slot_count() const { return slot_count_; }
    const std::vector<PlanStep>& steps() const { return steps_; }
    const std::vector<std::uint32_t>& outputs() const { return outputs_; }

  private:
    std::size_t input_count_, and_count_ = 0, slot_count_ = 0;
    std::vector<PlanStep> steps_;
    std::vector<std::uint32_t> outputs_;
};

}  // namespace sphynx
