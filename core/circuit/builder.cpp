#include "circuit/builder.h"

#include <stdexcept>

namespace sphynx::circuit {
namespace {

void require_equal_widths(std::span<const Wire> a, std::span<const Wire> b) {
    if (a.size() != b.size() || a.empty())
        throw std::invalid_argument("circuit: operands differ in width or are empty");
}

}  // namespace

Wire Wire::operator^(Wire other) const {
    return builder->exclusive_or(*this, other);
}
Wire Wire::operator&(Wire other) const {
    return builder->conjunction(*this, other);
}
Wire Wire::operator~() const {
    return builder->negation(*this);
}

Value CircuitBuilder::input(unsigned width) {
    if (!circuit_.gates.empty()) throw std::invalid_argument("circuit: inputs must come before gates");
    if (width == 0) throw std::invalid_argument("circuit: an input needs at least one bit");
    Value value;
    for (unsigned bit = 0; bit < width; ++bit) {
        value.push_back({this, circuit_.wire_count});
        negation_of_.push_back(circuit_.wire_count++);
    }
    circuit_.input_widths.push_back(width);
    return value;
}

std::uint32_t CircuitBuilder::emit(GateKind kind, std::uint32_t a, std::uint32_t b) {
    const std::uint32_t out = circuit_.wire_count++;
    circuit_.gates.push_back({kind, a, b, out});
    negation_of_.push_back(out);
    return out;
}

bool CircuitBuilder::opposite(Wire a, Wire b) const {
    return a.id != b.id && negation_of_[a.id] == b.id;
}

Wire CircuitBuilder::negation(Wire a) {
    if (is_constant(a.id)) return constant(a.id == kConstantZero);
    if (negation_of_[a.id] == a.id) {
        const std::uint32_t out = emit(GateKind::Not, a.id, a.id);
        negation_of_[a.id] = out;
        negation_of_[out] = a.id;
    }
    return {this, negation_of_[a.id]};
}

Wire CircuitBuilder::exclusive_or(Wire a, Wire b) {
    if (is_constant(b.id)) std::swap(a, b);
    if (is_constant(a.id)) {
        if (is_constant(b.id)) return constant(a.id != b.id);
        return a.id == kConstantZero ? b : negation(b);
    }
    if (a.id == b.id) return constant(false);
    if (opposite(a, b)) return constant(true);
    return {this, emit(GateKind::Xor, a.id, b.id)};
}

Wire CircuitBuilder::conjunction(Wire a, Wire b) {
    if (is_constant(b.id)) std::swap(a, b);
    if (is_constant(a.id)) return a.id == kConstantZero ? a : b;
    if (a.id == b.id) return a;
    if (opposite(a, b)) return constant(false);
    return {this, emit(GateKind::And, a.id, b.id)};
}

// carry' = majority(a, b, carry) = carry xor (a xor carry)(b xor carry): one AND a bit.
Value CircuitBuilder::add(std::span<const Wire> a, std::span<const Wire> b) {
    require_equal_widths(a, b);
    Value sum;
    Wire carry = constant(false);
    for (std::size_t bit = 0; bit < a.size(); ++bit) {
        const Wire b_carry = b[bit] ^ carry;
        sum.push_back(a[bit] ^ b_carry);
        if (bit + 1 < a.size()) carry = carry ^ ((a[bit] ^ carry) & b_carry);
    }
    return sum;
}

// borrow' = majority(not a, b, borrow) = b xor (a xor borrow)(b xor borrow): the complement costs no gate.
Value CircuitBuilder::subtract(std::span<const Wire> a, std::span<const Wire> b) {
    require_equal_widths(a, b);
    Value difference;
    Wire borrow = constant(false);
    for (std::size_t bit = 0; bit < a.size(); ++bit) {
        const Wire b_borrow = b[bit] ^ borrow;
        difference.push_back(a[bit] ^ b_borrow);
        if (bit + 1 < a.size()) borrow = b[bit] ^ ((a[bit] ^ borrow) & b_borrow);
    }
    return difference;
}

Wire CircuitBuilder::less_than(std::span<const Wire> a, std::span<const Wire> b) {
    require_equal_widths(a, b);
    Wire borrow = constant(false);
    for (std::size_t bit = 0; bit < a.size(); ++bit) {
        borrow = b[bit] ^ ((a[bit] ^ borrow) & (b[bit] ^ borrow));
    }
    return borrow;
}

Value CircuitBuilder::multiplex(Wire choose_a, std::span<const Wire> a, std::span<const Wire> b) {
    require_equal_widths(a, b);
    Value chosen;
    for (std::size_t bit = 0; bit < a.size(); ++bit) {
        chosen.push_back(b[bit] ^ (choose_a & (a[bit] ^ b[bit])));
    }
    return chosen;
}

Circuit CircuitBuilder::finish(const std::vector<Value>& outputs) {
    Circuit result;
    result.input_widths = circuit_.input_widths;
    for (const Value& value : outputs) {
        result.output_widths.push_back(static_cast<std::uint32_t>(value.size()));
        for (Wire wire : value) {
            // A constant output is x xor x of the first input, complemented for 1.
            if (is_constant(wire.id)) {
                if (circuit_.input_count() == 0) throw std::invalid_argument("circuit: it needs an input");
                const bool one = wire.id == kConstantOne;
                wire.id = emit(GateKind::Xor, 0, 0);
                if (one) wire.id = emit(GateKind::Not, wire.id, wire.id);
            }
            result.outputs.push_back(wire.id);
        }
    }
    std::vector<bool> needed(circuit_.wire_count, false);
    for (std::uint32_t wire : result.outputs) needed[wire] = true;
    for (auto gate = circuit_.gates.rbegin(); gate != circuit_.gates.rend(); ++gate) {
        if (needed[gate->out]) needed[gate->a] = needed[gate->b] = true;
    }
    std::vector<std::uint32_t> renumbered(circuit_.wire_count);
    for (std::uint32_t wire = 0; wire < circuit_.input_count(); ++wire) renumbered[wire] = wire;
    result.wire_count = static_cast<std::uint32_t>(circuit_.input_count());
    for (const Gate& gate : circuit_.gates) {
        if (!needed[gate.out]) continue;
        renumbered[gate.out] = result.wire_count++;
        result.gates.push_back({gate.kind, renumbered[gate.a], renumbered[gate.b], renumbered[gate.out]});
    }
    for (std::uint32_t& wire : result.outputs) wire = renumbered[wire];
    result.validate();
    return result;
}

}  // namespace sphynx::circuit
