// Slots are reused, and never while their old value is still to be read.
#include "garble/plan.h"

#include <algorithm>
#include <vector>

#include "check.h"
#include "circuit/library.h"
#include "crypto/prg.h"

using namespace sphynx;
using namespace sphynx::circuit;
using namespace sphynx::crypto;
using namespace sphynx::garble;

int main() {
    Prg prg = Prg::fixed_seed_for_tests({9, 1});
    for (const Circuit& circuit : {relu_circuit(32, 32, 8), aes128_circuit()}) {
        const Plan plan(circuit);
        CHECK(plan.and_count() == circuit.and_count());
        CHECK(plan.steps().size() < circuit.gates.size());
        CHECK(plan.slot_count() < circuit.gates.size() / 3);

        std::vector<std::uint64_t> rows(plan.input_count() + plan.slot_count()),
            expected(plan.output_count());
        prg.fill(rows.data(), 8 * plan.input_count());
        evaluate_in_clear(circuit, rows.data(), 1, expected.data());
        for (const PlanStep& step : plan.steps()) {
            std::uint64_t in[6];
            for (int i = 0; i < 6; ++i) in[i] = rows[step.in[i]];
            CHECK(std::find(step.in.begin(), step.in.end(), step.sum) == step.in.end());
            if (step.kind == GateKind::And) rows[step.sum] = in[0] ^ in[1] ^ in[2] ^ in[3] ^ in[5];
            rows[step.out] = step.kind == GateKind::And   ? ((in[0] ^ in[1]) & (in[2] ^ in[3])) ^ in[4]
                             : step.kind == GateKind::Xor ? in[0] ^ in[1] ^ in[2]
                                                          : ~in[0];
        }
        for (std::size_t o = 0; o < plan.output_count(); ++o) CHECK(rows[plan.outputs()[o]] == expected[o]);
    }
    // One step per AND; beside them the sign, its complement, and the bits of the difference above those of
    // the value.
    const Plan relu(relu_circuit(32, 32, 8));
    CHECK(relu.steps().size() == 85 + 2 + 9);
    std::printf("relu: %zu steps, %zu slots\n", relu.steps().size(), relu.slot_count());
    return test_result();
}
