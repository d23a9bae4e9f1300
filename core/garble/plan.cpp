#include "garble/plan.h"

namespace sphynx {

Plan::Plan(const Circuit& circuit) : input_count_(circuit.input_count()) {
    circuit.validate();
    // The last step that reads each wire; outputs are read after the end.
    std::vector<std::size_t> last_read(circuit.wire_count, 0);
    for (std::size_t i = 0; i < circuit.gates.size(); ++i) {
        last_read[circuit.gates[i].a] = last_read[circuit.gates[i].b] = i;
    }
    for (const std::uint32_t wire : circuit.outputs) last_read[wire] = circuit.gates.size();

    std::vector<std::uint32_t> row(circuit.wire_count), free_slots;
    for (std::uint32_t wire = 0; wire < input_count_; ++wire) row[wire] = wire;
    const auto release = [&](std::uint32_t wire, std::size_t step) {
        if (wire >= input_count_ && last_read[wire] == step) free_slots.push_back(row[wire]);
    };
    for (std::size_t i = 0; i < circuit.gates.size(); ++i) {
        const Gate& gate = circuit.gates[i];
        PlanStep step{gate.kind, row[gate.a], row[gate.b], 0, 0};
        // The output may take an operand's slot: the kernels read a block before they write it.
        release(gate.a, i);
        if (gate.b != gate.a) release(gate.b, i);
        if (free_slots.empty()) {
            step.out = static_cast<std::uint32_t>(input_count_ + slot_count_++);
        } else {
            step.out = free_slots.back();
            free_slots.pop_back();
        }
        if (gate.kind == GateKind::And) step.and_index = static_cast<std::uint32_t>(and_count_++);
        row[gate.out] = step.out;
        steps_.push_back(step);
    }
    for (const std::uint32_t wire : circuit.outputs) outputs_.push_back(row[wire]);
}

}  // namespace sphynx
