// Slots are reused, and never while their old value is still to be read.
#include "garble/plan.h"

#include <vector>

#include "check.h"
#include "circuit/library.h"
#include "crypto/prg.h"

using namespace sphynx;

int main() {
    Prg prg = Prg::fixed_seed_for_tests({9, 1});
    for (const Circuit& circuit : {relu_circuit(32, 32, 8), aes128_circuit()}) {
        const Plan plan(circuit);
        CHECK(plan.and_count() == circuit.and_count());
        CHECK(plan.steps().size() == circuit.gates.size());
        CHECK(plan.slot_count() < circuit.gates.size() / 3);

        std::vector<std::uint64_t> rows(plan.input_count() + plan.slot_count()), expected(plan.output_count());
        prg.fill(rows.data(), 8 * plan.input_count());
        evaluate_in_clear(circuit, rows.data(), 1, expected.data());
        for (const PlanStep& step : plan.steps()) {
            const std::uint64_t a = rows[step.a], b = rows[step.b];
            rows[step.out] = step.kind == GateKind::And ? a & b : step.kind == GateKind::Xor ? a ^ b : ~a;
        }
        for (std::size_t o = 0; o < plan.output_count(); ++o) CHECK(rows[plan.outputs()[o]] == expected[o]);
    }
    std::printf("relu slots: %zu\n", Plan(relu_circuit(32, 32, 8)).slot_count());
    return test_result();
}
