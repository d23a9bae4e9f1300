// Garble, encode, evaluate, decode against the circuit in the clear: odd batch sizes, threads, both paths.
#include "garble/garble.h"

#include <vector>

#include "bits/transpose.h"
#include "check.h"
#include "circuit/library.h"
#include "cpu.h"
#include "crypto/prg.h"

using namespace sphynx;
using namespace sphynx::bits;
using namespace sphynx::circuit;
using namespace sphynx::crypto;
using namespace sphynx::garble;

namespace {

struct Garbled {
    std::vector<Block> tables;
    std::vector<std::uint64_t> garbler_colours, values;
    bool operator==(const Garbled&) const = default;
};

Garbled round_trip(const Circuit& circuit, std::size_t n, unsigned threads) {
    Prg prg = Prg::fixed_seed_for_tests({2, n});
    const Plan plan(circuit);
    Block delta = prg.block();
    delta.lo |= 1;
    const GarbleBatch batch{
        .late_tweak = prg.block(), .first_instance = 5, .instances = n, .threads = threads};
    const std::size_t words = plane_words(n);
    std::vector<Block> zeros(plan.input_count() * n), labels(zeros.size());
    prg.fill_blocks(zeros.data(), zeros.size());
    std::vector<std::uint64_t> bits(plan.input_count() * words), expected(plan.output_count() * words);
    prg.fill(bits.data(), 8 * bits.size());
    evaluate_in_clear(circuit, bits.data(), words, expected.data());

    Garbled result;
    result.tables.resize(2 * plan.and_count() * n);
    result.garbler_colours.resize(plan.output_count() * words);
    std::vector<std::uint64_t> colours(result.garbler_colours.size());
    garble::garble(plan, batch, delta, zeros, result.tables, {result.garbler_colours});
    encode_labels(delta, zeros, bits, n, labels, threads);
    evaluate(plan, batch, labels, result.tables, {colours});
    for (std::size_t i = 0; i < colours.size(); ++i) {
        result.values.push_back(colours[i] ^ result.garbler_colours[i]);
        const std::uint64_t used =
            i % words + 1 == words && n % 64 ? (std::uint64_t{1} << (n % 64)) - 1 : ~std::uint64_t{0};
        CHECK(((result.values.back() ^ expected[i]) & used) == 0);
    }
    return result;
}

}  // namespace

int main() {
    for (const std::size_t n : {1, 2, 3, 63, 64, 65, 200}) {
        const Circuit relu = relu_circuit(20, 24, 4);
        const Garbled fast = round_trip(relu, n, 1);
        CHECK(fast == round_trip(relu, n, 3));
        for (const CpuFeatures& features : features_to_test()) {
            const LimitFeatures limit(features);
            CHECK(fast == round_trip(relu, n, 1));
        }
    }
    round_trip(aes128_circuit(), 3, 2);

    const Plan plan(adder_circuit(2));
    CHECK_THROWS((garble::garble(plan, {}, Block{2, 0}, {}, {}, {}), 0));
    return test_result();
}
