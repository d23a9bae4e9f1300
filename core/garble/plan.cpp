#include "garble/plan.h"

#include <algorithm>
#include <initializer_list>
#include <map>

namespace sphynx::garble {

using circuit::Gate;
using circuit::GateKind;

namespace {

constexpr std::uint32_t kNoWire = 0xffffffff;

// Steps over wires, still without slots: folds XOR gates into the AND and XOR gates that read them.
class Folding {
  public:
    explicit Folding(const circuit::Circuit& circuit)
        : circuit_(circuit),
          gate_of_(circuit.wire_count, kNoWire),
          readers_(circuit.wire_count),
          is_output_(circuit.wire_count, false),
          inlined_(circuit.wire_count, false),
          full_(circuit.wire_count, false) {
        for (std::uint32_t i = 0; i < circuit.gates.size(); ++i) {
            const Gate& gate = circuit.gates[i];
            gate_of_[gate.out] = i;
            readers_[gate.a].push_back(i);
            if (gate.b != gate.a) readers_[gate.b].push_back(i);
        }
        for (const std::uint32_t wire : circuit.outputs) is_output_[wire] = true;
    }

    std::vector<PlanStep> steps() {
        for (const Gate& gate : circuit_.gates) {
            if (gate.kind == GateKind::Xor && can_inline(gate)) {
                inlined_[gate.out] = true;
                for (const std::uint32_t reader : readers_[gate.out])
                    full_[circuit_.gates[reader].out] = true;
            }
        }
        std::vector<PlanStep> result;
        std::uint32_t next_and = 0;
        std::vector<std::uint32_t> and_index(circuit_.wire_count, 0);
        for (const Gate& gate : circuit_.gates) {
            if (gate.kind == GateKind::And) and_index[gate.out] = next_and++;
            if (inlined_[gate.out] || (gate.kind == GateKind::And && adding_xor(gate) != kNoWire)) continue;
            if (gate.kind == GateKind::Not) {
                result.push_back(
                    {gate.kind, {gate.a, kNoWire, kNoWire, kNoWire, kNoWire, kNoWire}, gate.out, kNoWire, 0});
            } else if (gate.kind == GateKind::And) {
                result.push_back(and_step(gate, kNoWire, gate.out, and_index[gate.out]));
            } else if (const std::uint32_t product = folded_and(gate); product != kNoWire) {
                const std::uint32_t added = product == gate.a ? gate.b : gate.a;
                result.push_back(
                    and_step(circuit_.gates[gate_of_[product]], added, gate.out, and_index[product]));
            } else {
                PlanStep step{GateKind::Xor,
                              {gate.a, gate.b, kNoWire, kNoWire, kNoWire, kNoWire},
                              gate.out,
                              kNoWire,
                              0};
                for (int side = 0; side < 2; ++side) {
                    const std::uint32_t wire = step.in[side];
                    if (!inlined_[wire]) continue;
                    step.in[side] = circuit_.gates[gate_of_[wire]].a;
                    step.in[2] = circuit_.gates[gate_of_[wire]].b;
                    break;  // at most one: a second would have found the reader full
                }
                result.push_back(step);
            }
        }
        return with_sums(std::move(result));
    }

  private:
    using Terms = std::vector<std::uint32_t>;

    // The wires that are added up, in order; a wire that occurs twice cancels.
    static Terms sum_of(std::initializer_list<std::uint32_t> wires) {
        Terms terms;
        for (const std::uint32_t wire : wires) {
            if (wire == kNoWire) continue;
            const auto place = std::lower_bound(terms.begin(), terms.end(), wire);
            if (place != terms.end() && *place == wire) {
                terms.erase(place);
            } else {
                terms.insert(place, wire);
            }
        }
        return terms;
    }

    // Moves a XOR step into an AND step whose operands' sum it is, up to one wire, if no one reads it before
    // that.
    std::vector<PlanStep> with_sums(std::vector<PlanStep> steps) const {
        std::map<Terms, std::size_t> xor_at;
        std::vector<std::size_t> first_read(circuit_.wire_count, steps.size());
        for (std::size_t i = steps.size(); i-- > 0;) {
            const PlanStep& step = steps[i];
            if (step.kind == GateKind::Xor) xor_at[sum_of({step.in[0], step.in[1], step.in[2]})] = i;
            for (const std::uint32_t wire : step.in) {
                if (wire != kNoWire) first_read[wire] = i;
            }
        }
        std::vector<bool> moved(steps.size(), false);
        for (std::size_t i = 0; i < steps.size(); ++i) {
            PlanStep& step = steps[i];
            if (step.kind != GateKind::And) continue;
            const auto in = step.in;
            for (const std::uint32_t more : {in[1], in[3], in[4], kNoWire}) {
                const auto found = xor_at.find(sum_of({in[0], in[1], in[2], in[3], more}));
                if (found == xor_at.end() || moved[found->second]) continue;
                const std::uint32_t wire = steps[found->second].out;
                if (first_read[wire] <= i) continue;
                step.in[5] = more;
                step.sum = wire;
                moved[found->second] = true;
                break;
            }
        }
        std::vector<PlanStep> kept;
        for (std::size_t i = 0; i < steps.size(); ++i) {
            if (!moved[i]) kept.push_back(steps[i]);
        }
        return kept;
    }

    // A XOR may vanish if every reader can take its two wires in place of one.
    bool can_inline(const Gate& gate) const {
        if (is_output_[gate.out] || gate.a == gate.b || readers_[gate.out].empty()) return false;
        if (inlined_[gate.a] || inlined_[gate.b] || is_folded_product(gate)) return false;
        return std::all_of(readers_[gate.out].begin(), readers_[gate.out].end(), [&](std::uint32_t reader) {
            const Gate& read = circuit_.gates[reader];
            if (read.kind == GateKind::And) return true;
            return read.kind == GateKind::Xor && read.a != read.b && !full_[read.out] &&
                   folded_and(read) == kNoWire;
        });
    }

    // The XOR that an AND's result is added in, when that XOR is its only reader.
    std::uint32_t adding_xor(const Gate& gate) const {
        if (is_output_[gate.out] || readers_[gate.out].size() != 1) return kNoWire;
        const Gate& reader = circuit_.gates[readers_[gate.out][0]];
        return reader.kind == GateKind::Xor && folded_and(reader) == gate.out ? reader.out : kNoWire;
    }

    bool is_lone_and(std::uint32_t wire) const {
        return gate_of_[wire] != kNoWire && circuit_.gates[gate_of_[wire]].kind == GateKind::And &&
               !is_output_[wire] && readers_[wire].size() == 1;
    }

    // Of a XOR's operands the AND that it absorbs, if any.
    std::uint32_t folded_and(const Gate& gate) const {
        if (gate.a == gate.b) return kNoWire;
        if (is_lone_and(gate.a)) return gate.a;
        return is_lone_and(gate.b) ? gate.b : kNoWire;
    }

    bool is_folded_product(const Gate& gate) const { return folded_and(gate) != kNoWire; }

    PlanStep and_step(const Gate& gate, std::uint32_t added, std::uint32_t out, std::uint32_t index) const {
        PlanStep step{GateKind::And, {gate.a, kNoWire, gate.b, kNoWire, added, kNoWire}, out, kNoWire, index};
        for (const int operand : {0, 2}) {
            const std::uint32_t wire = step.in[operand];
            if (!inlined_[wire]) continue;
            step.in[operand] = circuit_.gates[gate_of_[wire]].a;
            step.in[operand + 1] = circuit_.gates[gate_of_[wire]].b;
        }
        return step;
    }

    const circuit::Circuit& circuit_;
    std::vector<std::uint32_t> gate_of_;
    std::vector<std::vector<std::uint32_t>> readers_;
    std::vector<bool> is_output_, inlined_, full_;
};

}  // namespace

Plan::Plan(const circuit::Circuit& circuit)
    : input_count_(circuit.input_count()), and_count_(circuit.and_count()) {
    circuit.validate();
    assign_slots(Folding(circuit).steps(), circuit.outputs, circuit.wire_count);
}

void Plan::assign_slots(const std::vector<PlanStep>& on_wires, const std::vector<std::uint32_t>& output_wires,
                        std::size_t wire_count) {
    std::vector<std::size_t> last_read(wire_count, 0);
    for (std::size_t i = 0; i < on_wires.size(); ++i) {
        for (const std::uint32_t wire : on_wires[i].in) {
            if (wire != kNoWire) last_read[wire] = i;
        }
    }
    for (const std::uint32_t wire : output_wires) last_read[wire] = on_wires.size();

    std::vector<std::uint32_t> row(wire_count), free_slots;
    for (std::uint32_t wire = 0; wire < input_count_; ++wire) row[wire] = wire;
    const auto take_slot = [&] {
        if (free_slots.empty()) return static_cast<std::uint32_t>(input_count_ + slot_count_++);
        const std::uint32_t slot = free_slots.back();
        free_slots.pop_back();
        return slot;
    };
    for (std::size_t i = 0; i < on_wires.size(); ++i) {
        PlanStep step = on_wires[i];
        step.sum = step.sum == kNoWire ? sink_row() : row[step.sum] = take_slot();
        for (std::uint32_t& in : step.in) {
            const std::uint32_t wire = in;
            in = wire == kNoWire ? no_row() : row[wire];
            if (wire == kNoWire || wire < input_count_ || last_read[wire] != i) continue;
            // The result may take an operand's slot, the sum may not: the kernels read the added wire
            // between writing the sum and writing the result.
            if (std::find(free_slots.begin(), free_slots.end(), in) == free_slots.end())
                free_slots.push_back(in);
        }
        row[on_wires[i].out] = step.out = take_slot();
        steps_.push_back(step);
    }
    for (const std::uint32_t wire : output_wires) outputs_.push_back(row[wire]);
}

}  // namespace sphynx::garble
