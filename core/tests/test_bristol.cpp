// Written and read back, the same function; and every kind of damage refused.
#include "circuit/bristol.h"

#include <vector>

#include "check.h"
#include "circuit/library.h"
#include "crypto/prg.h"

using namespace sphynx;
using namespace sphynx::circuit;
using namespace sphynx::crypto;

namespace {

std::vector<std::uint64_t> outputs_of(const Circuit& circuit, const std::vector<std::uint64_t>& inputs) {
    std::vector<std::uint64_t> out(circuit.outputs.size());
    evaluate_in_clear(circuit, inputs.data(), 1, out.data());
    return out;
}

}  // namespace

int main() {
    Prg prg = Prg::fixed_seed_for_tests({7, 8});
    for (const Circuit& circuit : {adder_circuit(64), relu_circuit(20, 24, 5), aes128_circuit()}) {
        const Circuit back = read_bristol(write_bristol(circuit));
        CHECK(back.input_widths == circuit.input_widths && back.output_widths == circuit.output_widths);
        CHECK(back.and_count() == circuit.and_count());
        std::vector<std::uint64_t> inputs(circuit.input_count());
        prg.fill(inputs.data(), 8 * inputs.size());
        CHECK(outputs_of(back, inputs) == outputs_of(circuit, inputs));
    }

    const Circuit every_kind = read_bristol(
        "6 9\n2 1 1\n1 4\n\n2 1 0 1 2 XOR\n1 1 2 3 INV\n1 1 1 4 EQ\n"
        "1 1 0 5 EQW\n4 2 0 3 1 4 6 7 MAND\r\n2 1 6 7 8 XOR\n");
    CHECK((outputs_of(every_kind, {0b0011, 0b0101})[0] == 0b0011));
    CHECK((outputs_of(every_kind, {0b0011, 0b0101})[1] == 0b0001));

    const std::string good = write_bristol(adder_circuit(4));
    for (std::size_t length = 0; length + 1 < good.size(); ++length)
        CHECK_THROWS(read_bristol(good.substr(0, length)));
    for (const char* bad : {
             "",
             "x",
             "0 0\n1 0\n1 0\n",
             "1 3\n1 2\n1 1\n2 1 0 1 3 AND\n",               // writes out of range
             "1 3\n1 2\n1 1\n2 1 0 9 2 AND\n",               // reads out of range
             "1 3\n1 2\n1 1\n2 1 0 2 2 AND\n",               // reads itself
             "1 3\n1 2\n1 1\n2 1 0 1 1 AND\n",               // writes an input
             "1 3\n1 2\n1 1\n2 1 0 1 2 NAND\n",              // unknown
             "1 3\n1 2\n1 1\n1 1 0 2 AND\n",                 // too few wires
             "1 3\n1 2\n1 1\n2 1 0 1 2 AND extra\n",         // too long
             "2 3\n1 2\n1 1\n2 1 0 1 2 AND\n",               // gate missing
             "1 3\n1 2\n1 1\n2 1 0 1 2 AND\n2 1 0 1 2 AND",  // gate too many
             "1 99999999999\n1 2\n1 1\n2 1 0 1 2 AND\n",     // number too large
             "1 3\n1 4294967295\n1 1\n2 1 0 1 2 AND\n",      // inputs too wide
             "1 3\n2 2 2\n1 1\n2 1 0 1 2 AND\n",             // more inputs than wires
             "1 3\n1 -2\n1 1\n2 1 0 1 2 AND\n",
         }) {
        CHECK_THROWS(read_bristol(bad));
    }
    return test_result();
}
