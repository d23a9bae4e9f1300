#include "garble/garble.h"

#include <algorithm>
#include <stdexcept>

#include "bits/transpose.h"
#include "crypto/kernels.h"
#include "crypto/prg.h"
#include "crypto/tweaks.h"
#include "threads.h"

namespace sphynx::garble {

using crypto::AesKey;

namespace {

// Instances that go through the circuit together: long enough to amortise a gate's round keys, short enough
// for the live labels of a ReLU circuit to stay in the first-level cache, and one word of a colour plane.
constexpr std::size_t kChunk = 64;

std::vector<AesKey> gate_keys(const Plan& plan, Block late_tweak) {
    std::vector<Block> raw(plan.and_count());
    crypto::expand_seed(AesKey(late_tweak), 0, 0, raw.data(), raw.size());
    return {raw.begin(), raw.end()};
}

void xor_rows(const Block* a, const Block* b, const Block* c, Block* out, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) out[i] = a[i] ^ b[i] ^ c[i];
}

std::uint64_t colours_of(const Block* labels, std::size_t count) {
    std::uint64_t word = 0;
    for (std::size_t i = 0; i < count; ++i) word = word >> 1 | labels[i].lo << 63;
    return word >> (kChunk - count);
}

// Runs the plan over [begin, end) in chunks. `and_gate(index, tweaks, operands, out, start, count)` is the only
// difference between garbling and evaluating, apart from NOT, which moves delta for the garbler and nothing
// for the evaluator.
template <class AndGate>
void run_plan(const Plan& plan, const GarbleBatch& batch, Block not_offset, BlockView inputs,
              const GarbledOutputs& outputs, std::size_t begin, std::size_t end, const AndGate& and_gate) {
    std::vector<Block> scratch(plan.slot_count() * kChunk);
    const crypto::Tweaks even_tweaks(crypto::doubled(batch.late_tweak));
    Block tweaks_a[kChunk], tweaks_b[kChunk];  // of all gates: their keys differ
    for (std::size_t start = begin; start < end; start += kChunk) {
        const std::size_t count = std::min(kChunk, end - start);
        even_tweaks.fill(batch.first_instance + start, tweaks_a, count);
        for (std::size_t i = 0; i < count; ++i) tweaks_b[i] = tweaks_a[i] ^ batch.late_tweak;
        const auto slot = [&](std::uint32_t id) {
            return scratch.data() + (id - plan.input_count()) * kChunk;
        };
        const auto row = [&](std::uint32_t id) -> const Block* {
            return id < plan.input_count() ? inputs.data() + id * batch.instances + start : slot(id);
        };
        for (const PlanStep& step : plan.steps()) {
            Block* out = slot(step.out);
            const Block* a = row(step.in[0]);
            switch (step.kind) {
                case circuit::GateKind::Xor:
                    xor_rows(a, row(step.in[1]), row(step.in[2]), out, count);
                    break;
                case circuit::GateKind::Not:
                    for (std::size_t i = 0; i < count; ++i) out[i] = a[i] ^ not_offset;
                    break;
                case circuit::GateKind::And:
                    and_gate(step.and_index, crypto::AndTweaks{tweaks_a, tweaks_b},
                             crypto::AndOperands{a, row(step.in[1]), row(step.in[2]), row(step.in[3]),
                                                 row(step.in[4]), row(step.in[5]), slot(step.sum)},
                             out, start, count);
                    break;
            }
        }
        for (std::size_t o = 0; o < plan.output_count(); ++o) {
            const Block* labels = row(plan.outputs()[o]);
            outputs.colours[o * bits::plane_words(batch.instances) + start / kChunk] =
                colours_of(labels, count);
            if (outputs.halves.empty()) continue;
            std::uint64_t* halves = &outputs.halves[o * batch.instances + start];
            for (std::size_t i = 0; i < count; ++i) halves[i] = labels[i].hi;
        }
    }
    zeroise(scratch.data(), scratch.size() * sizeof(Block));
}

static_assert(kChunk == 64, "a chunk is one word of a colour plane");

}  // namespace

void garble(const Plan& plan, const GarbleBatch& batch, Block delta, BlockView input_zeros, BlockSpan tables,
            const GarbledOutputs& outputs) {
    if (!delta.lowest_bit()) throw std::invalid_argument("garble: the lowest bit of delta must be 1");
    const std::vector<AesKey> keys = gate_keys(plan, batch.late_tweak);
    const crypto::SymmetricKernels& kernels = crypto::symmetric_kernels();
    parallel_ranges(batch.instances, kChunk, batch.threads, [&](std::size_t begin, std::size_t end) {
        run_plan(plan, batch, delta, input_zeros, outputs, begin, end,
                 [&](std::size_t index, const crypto::AndTweaks& tweaks, const crypto::AndOperands& in,
                     Block* out, std::size_t start, std::size_t count) {
                     const BlockSpan rows =
                         tables.subspan(2 * (plan.and_count() * start + index * count), 2 * count);
                     kernels.garble_and(keys[index], delta, tweaks, in, rows.first(count), rows.last(count),
                                        {out, count});
                 });
    });
}

void evaluate(const Plan& plan, const GarbleBatch& batch, BlockView input_labels, BlockView tables,
              const GarbledOutputs& outputs) {
    const std::vector<AesKey> keys = gate_keys(plan, batch.late_tweak);
    const crypto::SymmetricKernels& kernels = crypto::symmetric_kernels();
    parallel_ranges(batch.instances, kChunk, batch.threads, [&](std::size_t begin, std::size_t end) {
        run_plan(plan, batch, Block{}, input_labels, outputs, begin, end,
                 [&](std::size_t index, const crypto::AndTweaks& tweaks, const crypto::AndOperands& in,
                     Block* out, std::size_t start, std::size_t count) {
                     const BlockView rows =
                         tables.subspan(2 * (plan.and_count() * start + index * count), 2 * count);
                     kernels.evaluate_and(keys[index], tweaks, in, rows.first(count), rows.last(count),
                                          {out, count});
                 });
    });
}

void encode_labels(Block delta, BlockView zeros, WordView planes, std::size_t instances, BlockSpan labels,
                   unsigned threads) {
    const std::size_t rows = zeros.size() / instances, words = bits::plane_words(instances);
    parallel_ranges(rows, 1, threads, [&](std::size_t begin, std::size_t end) {
        for (std::size_t row = begin; row < end; ++row) {
            for (std::size_t j = 0; j < instances; ++j) {
                const std::uint64_t bit = planes[row * words + j / 64] >> (j % 64);
                labels[row * instances + j] = zeros[row * instances + j] ^ (mask_of(bit) & delta);
            }
        }
    });
}

}  // namespace sphynx::garble
