// Bristol Fashion, the text format in which published circuits are exchanged:
//   <gates> <wires> / <n> <input widths> / <m> <output widths> / one gate a line: <ins> <outs> <wires> <kind>
// Inputs are the first wires, outputs the last. Read: XOR, AND, INV, NOT, EQ (constant), EQW (copy), MAND
// (several ANDs). Written: XOR, AND, INV, EQW. The text is untrusted: any fault throws std::invalid_argument
// with the line; a header of the older Bristol format is named as such.
#pragma once

#include <string>
#include <string_view>

#include "circuit/circuit.h"

namespace sphynx::circuit {

Circuit read_bristol(std::string_view text);
std::string write_bristol(const Circuit& circuit);

}  // namespace sphynx::circuit
