// Builds circuits from arithmetic on k-bit values, lowest bit first, with as few ANDs as are known to be
// needed:
//   add, subtract (mod 2^k): k-1     less_than (unsigned): k     multiplex: k     (XOR and NOT cost nothing)
// Public constants are folded away, so a constant operand only removes gates.
#pragma once

#include <span>
#include <vector>

#include "circuit/circuit.h"

namespace sphynx::circuit {

class CircuitBuilder;

// A bit inside a builder. Holds the builder so that generic code (sbox.h) can compute with it by ^, & and ~.
struct Wire {
    CircuitBuilder* builder = nullptr;
    std::uint32_t id = 0;

    Wire operator^(Wire other) const;
    Wire operator&(Wire other) const;
    Wire operator~() const;
};

using Value = std::vector<Wire>;

class CircuitBuilder {
  public:
    // All inputs come before the first gate.
    Value input(unsigned width);
    Wire constant(bool bit) { return {this, bit ? kConstantOne : kConstantZero}; }

    Wire exclusive_or(Wire a, Wire b);
    Wire conjunction(Wire a, Wire b);
    Wire negation(Wire a);

    Value add(std::span<const Wire> a, std::span<const Wire> b);
    Value subtract(std::span<const Wire> a, std::span<const Wire> b);
    Wire less_than(std::span<const Wire> a, std::span<const Wire> b);
    Value multiplex(Wire choose_a, std::span<const Wire> a, std::span<const Wire> b);

    // Closes the circuit: gates that no output needs are dropped, wires are renumbered.
    Circuit finish(const std::vector<Value>& outputs);

  private:
    static constexpr std::uint32_t kConstantZero = 0xfffffffe, kConstantOne = 0xffffffff;

    static bool is_constant(std::uint32_t id) { return id >= kConstantZero; }
    std::uint32_t emit(GateKind kind, std::uint32_t a, std::uint32_t b);
    bool opposite(Wire a, Wire b) const;

    Circuit circuit_;
    std::vector<std::uint32_t> negation_of_;  // the wire's complement, where one exists, else itself
};

}  // namespace sphynx::circuit
