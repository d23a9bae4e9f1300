#include "circuit/bristol.h"

#include <charconv>
#include <optional>
#include <stdexcept>

#include "circuit/builder.h"

namespace sphynx::circuit {
namespace {

// More wires than any published circuit has; keeps a hostile header from asking for all memory.
constexpr std::uint32_t kMostWires = 1u << 24;

// Words of the text, line by line; blank lines are skipped.
class Lines {
  public:
    explicit Lines(std::string_view text) : rest_(text) {}

    bool next() {
        while (!rest_.empty()) {
            const std::size_t end = rest_.find('\n');
            line_ = rest_.substr(0, end);
            rest_ = end == std::string_view::npos ? std::string_view{} : rest_.substr(end + 1);
            ++number_;
            if (line_.find_first_not_of(" \t\r") != std::string_view::npos) return true;
        }
        return false;
    }

    std::string_view word() {
        const std::size_t begin = line_.find_first_not_of(" \t\r");
        if (begin == std::string_view::npos) fail("the line is too short");
        line_ = line_.substr(begin);
        const std::string_view found = line_.substr(0, line_.find_first_of(" \t\r"));
        line_ = line_.substr(found.size());
        return found;
    }

    std::uint32_t number(std::uint32_t limit) {
        const std::string_view digits = word();
        std::uint32_t value = 0;
        const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
        if (error != std::errc{} || end != digits.data() + digits.size()) fail("a number was expected");
        if (value > limit) fail("the number is too large");
        return value;
    }

    // Gate lines end in the gate's name, header lines hold numbers only.
    bool line_is_gate() const { return line_.find_first_of("ADEIMNOQRVWX") != std::string_view::npos; }

    void end_of_line() {
        if (line_.find_first_not_of(" \t\r") != std::string_view::npos) fail("the line is too long");
    }

    [[noreturn]] void fail(const std::string& what) const {
        throw std::invalid_argument("Bristol Fashion, line " + std::to_string(number_) + ": " + what);
    }

  private:
    std::string_view rest_, line_;
    std::size_t number_ = 0;
};

std::vector<std::uint32_t> read_widths(Lines& lines, std::uint32_t wires) {
    if (!lines.next()) lines.fail("the header is cut off");
    std::vector<std::uint32_t> widths(lines.number(wires));
    std::uint64_t total = 0;
    for (std::uint32_t& width : widths) {
        width = lines.number(wires);
        if (width == 0) lines.fail("a value of no bits");
        total += width;
    }
    if (total > wires) lines.fail("more bits than wires");
    lines.end_of_line();
    return widths;
}

}  // namespace

Circuit read_bristol(std::string_view text) {
    Lines lines(text);
    if (!lines.next()) lines.fail("empty");
    const std::uint32_t gate_count = lines.number(kMostWires), wire_count = lines.number(kMostWires);
    lines.end_of_line();
    if (wire_count == 0) lines.fail("no wires");
    if (Lines ahead = lines; ahead.next() && ahead.next() && ahead.line_is_gate()) {
        ahead.fail(
            "a gate where the widths of the outputs should be: this is the older Bristol format, whose "
            "second "
            "line has two input widths and the output width; to read it as Bristol Fashion, replace that "
            "line "
            "'a b c' by two lines, '2 a b' ('1 a' if b is 0) and '1 c'");
    }
    const auto input_widths = read_widths(lines, wire_count), output_widths = read_widths(lines, wire_count);

    CircuitBuilder builder;
    std::vector<std::optional<Wire>> wires(wire_count);
    std::size_t inputs = 0;
    for (const std::uint32_t width : input_widths) {
        for (const Wire wire : builder.input(width)) wires[inputs++] = wire;
    }
    for (std::uint32_t gate = 0; gate < gate_count; ++gate) {
        if (!lines.next()) lines.fail("fewer gates than the header says");
        const std::uint32_t in_count = lines.number(wire_count), out_count = lines.number(wire_count);
        std::vector<std::uint32_t> ins(in_count), outs(out_count);
        for (std::uint32_t& wire : ins) wire = lines.number(wire_count - 1);
        for (std::uint32_t& wire : outs) wire = lines.number(wire_count - 1);
        const std::string_view kind = lines.word();
        lines.end_of_line();
        const auto require_shape = [&](std::size_t in, std::size_t out) {
            if (ins.size() != in || outs.size() != out) lines.fail("wrong number of wires for this gate");
        };
        const auto in = [&](std::size_t i) {
            if (!wires[ins[i]]) lines.fail("reads a wire that is not written yet");
            return *wires[ins[i]];
        };
        const auto write = [&](std::size_t i, Wire wire) {
            if (wires[outs[i]]) lines.fail("writes a wire twice");
            wires[outs[i]] = wire;
        };
        if (kind == "XOR") {
            require_shape(2, 1);
            write(0, in(0) ^ in(1));
        } else if (kind == "AND") {
            require_shape(2, 1);
            write(0, in(0) & in(1));
        } else if (kind == "INV" || kind == "NOT") {
            require_shape(1, 1);
            write(0, ~in(0));
        } else if (kind == "EQW") {
            require_shape(1, 1);
            write(0, in(0));
        } else if (kind == "EQ") {
            require_shape(1, 1);
            if (ins[0] > 1) lines.fail("a constant is 0 or 1");
            write(0, builder.constant(ins[0] == 1));
        } else if (kind == "MAND") {
            require_shape(2 * outs.size(), outs.size());
            std::vector<Wire> products;
            for (std::size_t i = 0; i < outs.size(); ++i) products.push_back(in(i)&in(outs.size() + i));
            for (std::size_t i = 0; i < outs.size(); ++i) write(i, products[i]);
        } else {
            lines.fail("unknown gate");
        }
    }
    if (lines.next()) lines.fail("more gates than the header says");

    std::size_t output_bits = 0;
    for (const std::uint32_t width : output_widths) output_bits += width;
    std::size_t wire = wire_count - output_bits;
    std::vector<Value> outputs;
    for (const std::uint32_t width : output_widths) {
        Value value;
        for (std::uint32_t bit = 0; bit < width; ++bit, ++wire) {
            if (!wires[wire]) lines.fail("an output wire is never written");
            value.push_back(*wires[wire]);
        }
        outputs.push_back(std::move(value));
    }
    return builder.finish(outputs);
}

std::string write_bristol(const Circuit& circuit) {
    // Outputs must be the last wires: each is a copy of the wire that holds it.
    std::string text = std::to_string(circuit.gates.size() + circuit.outputs.size()) + ' ' +
                       std::to_string(circuit.wire_count + circuit.outputs.size()) + '\n';
    for (const auto* widths : {&circuit.input_widths, &circuit.output_widths}) {
        text += std::to_string(widths->size());
        for (const std::uint32_t width : *widths) text += ' ' + std::to_string(width);
        text += '\n';
    }
    text += '\n';
    for (const Gate& gate : circuit.gates) {
        if (gate.kind == GateKind::Not) {
            text += "1 1 " + std::to_string(gate.a) + ' ' + std::to_string(gate.out) + " INV\n";
        } else {
            text += "2 1 " + std::to_string(gate.a) + ' ' + std::to_string(gate.b) + ' ' +
                    std::to_string(gate.out) + (gate.kind == GateKind::And ? " AND\n" : " XOR\n");
        }
    }
    for (std::size_t o = 0; o < circuit.outputs.size(); ++o) {
        text += "1 1 " + std::to_string(circuit.outputs[o]) + ' ' + std::to_string(circuit.wire_count + o) +
                " EQW\n";
    }
    return text;
}

}  // namespace sphynx::circuit
