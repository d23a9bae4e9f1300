// Arithmetic circuits against 64-bit integers, and their AND counts.
#include "circuit/builder.h"

#include <vector>

#include "bits/transpose.h"
#include "check.h"
#include "crypto/prg.h"

using namespace sphynx;
using namespace sphynx::bits;
using namespace sphynx::circuit;
using namespace sphynx::crypto;

namespace {

constexpr std::size_t kCount = 256;
using Numbers = std::vector<std::uint64_t>;

Numbers run(const Circuit& circuit, const std::vector<Numbers>& inputs) {
    const std::size_t words = plane_words(kCount);
    std::vector<std::uint64_t> planes(circuit.input_count() * words), out(circuit.outputs.size() * words);
    std::size_t row = 0;
    for (std::size_t i = 0; i < inputs.size(); row += circuit.input_widths[i++]) {
        slice_bits(inputs[i].data(), kCount, circuit.input_widths[i], planes.data() + row * words);
    }
    evaluate_in_clear(circuit, planes.data(), words, out.data());
    Numbers values(kCount);
    unslice_bits(out.data(), kCount, circuit.output_widths[0], values.data());
    return values;
}

}  // namespace

int main() {
    Prg prg = Prg::fixed_seed_for_tests({5, 6});
    for (const unsigned width : {1u, 2u, 5u, 32u, 64u}) {
        const std::uint64_t mask = ~std::uint64_t{0} >> (64 - width);
        Numbers a(kCount), b(kCount), s(kCount);
        for (Numbers* numbers : {&a, &b, &s}) prg.fill(numbers->data(), 8 * kCount);
        for (std::size_t j = 0; j < kCount; ++j) a[j] &= mask, b[j] &= mask, s[j] &= 1;
        b[0] = a[0];
        const auto build = [&](auto make) {
            CircuitBuilder builder;
            const Value in_a = builder.input(width), in_b = builder.input(width), in_s = builder.input(1);
            return builder.finish({make(builder, in_a, in_b, in_s[0])});
        };
        const Circuit sum = build([](auto& c, auto& x, auto& y, Wire) { return c.add(x, y); });
        const Circuit difference = build([](auto& c, auto& x, auto& y, Wire) { return c.subtract(x, y); });
        const Circuit less = build([](auto& c, auto& x, auto& y, Wire) { return Value{c.less_than(x, y)}; });
        const Circuit chosen = build([](auto& c, auto& x, auto& y, Wire z) { return c.multiplex(z, x, y); });
        CHECK(sum.and_count() == width - 1 && difference.and_count() == width - 1);
        CHECK(less.and_count() == width && chosen.and_count() == width);
        const Numbers sums = run(sum, {a, b, s}), differences = run(difference, {a, b, s});
        const Numbers lesses = run(less, {a, b, s}), chosens = run(chosen, {a, b, s});
        for (std::size_t j = 0; j < kCount; ++j) {
            CHECK(sums[j] == ((a[j] + b[j]) & mask));
            CHECK(differences[j] == ((a[j] - b[j]) & mask));
            CHECK(lesses[j] == (a[j] < b[j] ? 1 : 0));
            CHECK(chosens[j] == (s[j] ? a[j] : b[j]));
        }
    }

    // Constants disappear; constant outputs remain right.
    CircuitBuilder builder;
    const Value x = builder.input(8);
    Value five(8, builder.constant(false));
    five[0] = five[2] = builder.constant(true);
    const Wire one = x[0] ^ ~x[0];
    const Circuit folded =
        builder.finish({{one, x[1] & ~x[1], builder.constant(true)}, builder.add(x, five)});
    CHECK(folded.and_count() < 7);
    std::vector<std::uint64_t> planes(8, 0), out(11);
    evaluate_in_clear(folded, planes.data(), 1, out.data());
    CHECK(~out[0] == 0 && out[1] == 0 && ~out[2] == 0);
    CHECK(~out[3] == 0 && out[4] == 0 && ~out[5] == 0 && out[6] == 0);

    CHECK_THROWS(builder.input(1));
    CHECK_THROWS(builder.add(x, Value(7, builder.constant(false))));
    return test_result();
}
