// Validation, and the clear evaluation of a circuit written by hand.
#include "circuit/circuit.h"

#include "check.h"

using namespace sphynx;
using namespace sphynx::circuit;

int main() {
    const Circuit majority{.wire_count = 7,
                           .input_widths = {3},
                           .output_widths = {1, 1},
                           .gates = {{GateKind::Xor, 0, 2, 3},
                                     {GateKind::Xor, 1, 2, 4},
                                     {GateKind::And, 3, 4, 5},
                                     {GateKind::Xor, 5, 2, 6}},
                           .outputs = {6, 0}};
    majority.validate();
    CHECK(majority.input_count() == 3 && majority.and_count() == 1);
    const std::uint64_t inputs[3] = {0b11110000, 0b11001100, 0b10101010};
    std::uint64_t outputs[2];
    evaluate_in_clear(majority, inputs, 1, outputs);
    CHECK(outputs[0] == 0b11101000 && outputs[1] == inputs[0]);

    Circuit reads_ahead = majority;
    reads_ahead.gates[0].a = 5;
    CHECK_THROWS((reads_ahead.validate(), 0));
    Circuit writes_twice = majority;
    writes_twice.gates[1].out = 3;
    CHECK_THROWS((writes_twice.validate(), 0));
    Circuit out_of_range = majority;
    out_of_range.outputs[0] = 7;
    CHECK_THROWS((out_of_range.validate(), 0));
    Circuit wrong_widths = majority;
    wrong_widths.output_widths = {1};
    CHECK_THROWS((wrong_widths.validate(), 0));
    Circuit too_many_inputs = majority;
    too_many_inputs.input_widths = {8};
    CHECK_THROWS((too_many_inputs.validate(), 0));
    return test_result();
}
