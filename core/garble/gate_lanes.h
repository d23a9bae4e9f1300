// Half-gate AND loops, generic over a lane (crypto/lanes.h); garble.h states what they compute.
//
// Little vector work remains beside AES: by linearity sigma(A1) = sigma(A0) xor sigma(delta); every hash is
// used in a sum of two, so the last round key cancels, and in place of sigma(x) the AES input sigma(x) xor i
// may be added (the sum of the two tweaks is 1: both parties' output labels move by that public constant).
// What remains is spread over the AES rounds of the step before: Lane::rounds calls work(0) .. work(7) in
// between, and each call prepares an eighth of the next step. In a burst the same instructions would take
// issue slots from AES.
#pragma once

#include "crypto/kernels.h"
#include "crypto/unroll.h"

namespace sphynx {

template <class Lane>
[[gnu::always_inline]] inline typename Lane::V label_at(const Block* row, const Block* more, std::size_t at) {
    return Lane::xor_(Lane::load(row + at), Lane::load(more + at));
}

// One vector of instances a step, four hashes.
template <class Lane>
class GarbleStep {
    using V = typename Lane::V;

  public:
    static constexpr std::size_t instances = Lane::width;

    explicit GarbleStep(Block delta)
        : delta_(Lane::broadcast(delta)),
          sigma_delta_(Lane::mixed(delta_, Lane::broadcast({0, 0}))),
          sigma_and_delta_(Lane::xor_(sigma_delta_, delta_)) {}

    struct Stage {
        V state[4], b, sum, colour_a, colour_b, table_g, result;
    };

    [[gnu::always_inline]] void prepare(auto part, Stage& next, const AndOperands& in, std::uint64_t tweak,
                                        std::size_t at) const {
        if constexpr (part == 0) {
            const V a = label_at<Lane>(in.a, in.a_more, at);
            next.state[0] = Lane::mixed(a, Lane::tweaks(tweak, 2));
            next.colour_a = Lane::colour_mask(a);
            next.sum = Lane::xor_(a, Lane::load(in.sum_more + at));
            Lane::pin(next.state[0]), Lane::pin(next.colour_a), Lane::pin(next.sum);
        } else if constexpr (part == 2) {
            next.state[1] = Lane::xor_(next.state[0], sigma_delta_);
            next.b = label_at<Lane>(in.b, in.b_more, at);
            Lane::store(in.sum + at, Lane::xor_(next.sum, next.b));
            Lane::pin(next.state[1]), Lane::pin(next.b);
        } else if constexpr (part == 4) {
            next.state[2] = Lane::mixed(next.b, Lane::tweaks(tweak + 1, 2));
            next.colour_b = Lane::colour_mask(next.b);
            Lane::pin(next.state[2]), Lane::pin(next.colour_b);
        } else if constexpr (part == 6) {
            next.state[3] = Lane::xor_(next.state[2], sigma_delta_);
            next.table_g = Lane::select(next.colour_b, sigma_and_delta_, sigma_delta_);
            next.result = Lane::xor_(Lane::xor_(next.state[0], next.state[2]), Lane::load(in.added + at));
            Lane::pin(next.state[3]), Lane::pin(next.table_g), Lane::pin(next.result);
        }
    }

    [[gnu::always_inline]] void finish(const Stage& done, const AndOperands& in, std::size_t at,
                                       Block* garbler_row, Block* evaluator_row, Block* out) const {
        const V table_g = Lane::xor_(done.table_g, Lane::xor_(done.state[0], done.state[1]));
        const V both_b = Lane::xor_(Lane::xor_(done.state[2], done.state[3]), sigma_delta_);
        const V a = label_at<Lane>(in.a, in.a_more, at);
        Lane::store(garbler_row, table_g);
        Lane::store(evaluator_row, Lane::xor_(both_b, a));
        const V chosen = Lane::xor_(Lane::and_(done.colour_a, table_g), Lane::and_(done.colour_b, both_b));
        const V hashes = Lane::xor_(done.state[0], done.state[2]);
        Lane::store(out, Lane::xor_(Lane::xor_(done.result, hashes), chosen));
    }

  private:
    V delta_, sigma_delta_, sigma_and_delta_;
};

// Two vectors of instances a step, two hashes each.
template <class Lane>
class EvaluateStep {
    using V = typename Lane::V;

  public:
    static constexpr std::size_t instances = 2 * Lane::width;

    struct Stage {
        V state[4], other[2], sum[2], result[2];
    };

    [[gnu::always_inline]] void prepare(auto part, Stage& next, const AndOperands& in,
                                        const Block* garbler_row, const Block* evaluator_row,
                                        std::uint64_t tweak, std::size_t at) const {
        constexpr int i = part / 4;
        const std::size_t ahead = static_cast<std::size_t>(i) * Lane::width;
        at += ahead, tweak += 2 * ahead, garbler_row += ahead, evaluator_row += ahead;
        V &state_a = next.state[2 * i], &state_b = next.state[2 * i + 1], &other = next.other[i];
        V& result = next.result[i];
        if constexpr (part % 4 == 0) {
            other = label_at<Lane>(in.a, in.a_more, at);
            state_a = Lane::mixed(other, Lane::tweaks(tweak, 2));
            next.sum[i] = Lane::xor_(other, Lane::load(in.sum_more + at));
            Lane::pin(other), Lane::pin(state_a), Lane::pin(next.sum[i]);
        } else if constexpr (part % 4 == 1) {
            result = Lane::and_(Lane::colour_mask(other), Lane::load(garbler_row));
            other = Lane::xor_(other, Lane::load(evaluator_row));
            Lane::pin(result), Lane::pin(other);
        } else if constexpr (part % 4 == 2) {
            const V b = label_at<Lane>(in.b, in.b_more, at);
            state_b = Lane::mixed(b, Lane::tweaks(tweak + 1, 2));
            other = Lane::and_(other, Lane::colour_mask(b));
            Lane::store(in.sum + at, Lane::xor_(next.sum[i], b));
            Lane::pin(state_b), Lane::pin(other);
        } else {
            result = Lane::xor_(Lane::xor_(result, other), Lane::load(in.added + at));
            result = Lane::xor_(result, Lane::xor_(state_a, state_b));
            Lane::pin(result);
        }
    }

    [[gnu::always_inline]] void finish(const Stage& done, Block* out) const {
        for (std::size_t i = 0; i < 2; ++i) {
            const V hashes = Lane::xor_(done.state[2 * i], done.state[2 * i + 1]);
            Lane::store(out + i * Lane::width, Lane::xor_(done.result[i], hashes));
        }
    }
};

// Runs whole steps: prepare(part, stage, step) fills a stage, finish(stage, step) uses one whose rounds are
// done.
template <class Lane, class Stage, class Prepare, class Finish>
[[gnu::always_inline]] inline void run_steps(const typename Lane::Key& key, std::size_t steps,
                                             const Prepare& prepare, const Finish& finish) {
    if (steps == 0) return;
    Stage current;
    unrolled<8>([&](auto part) __attribute__((always_inline)) { prepare(part, current, std::size_t{0}); });
    for (std::size_t step = 0; step < steps; ++step) {
        Stage next;
        const std::size_t ahead = step + 1 < steps ? step + 1 : step;  // after the last step, for nothing
        Lane::rounds(key, current.state,
                     [&](auto part) __attribute__((always_inline)) { prepare(part, next, ahead); });
        finish(current, step);
        current = next;
    }
}

template <class Lane>
void garble_gate(const AesKey& aes_key, Block delta, std::uint64_t tweak, const AndOperands& in,
                 Block* garbler_rows, Block* evaluator_rows, Block* out, std::size_t count) {
    using Step = GarbleStep<Lane>;
    const typename Lane::Key key(aes_key);
    const Step step(delta);
    constexpr std::size_t width = Step::instances;
    const auto run = [&](const AndOperands rows, std::uint64_t first_tweak, Block* row_g, Block* row_e,
                         Block* row_out, std::size_t steps) __attribute__((always_inline)) {
        run_steps<Lane, typename Step::Stage>(
            key, steps,
            [&](auto part, typename Step::Stage& stage, std::size_t at) __attribute__((always_inline)) {
                step.prepare(part, stage, rows, first_tweak + 2 * width * at, width * at);
            },
            [&](const typename Step::Stage& stage, std::size_t at) __attribute__((always_inline)) {
                step.finish(stage, rows, width * at, row_g + width * at, row_e + width * at,
                            row_out + width * at);
            });
    };
    run(in, tweak, garbler_rows, evaluator_rows, out, count / width);
    const std::size_t done = count / width * width;
    if (done == count) return;
    Block tail[10][width] = {};
    for (std::size_t i = 0; done + i < count; ++i) {
        const Block* const rows[6] = {in.a, in.a_more, in.b, in.b_more, in.added, in.sum_more};
        for (int row = 0; row < 6; ++row) tail[row][i] = rows[row][done + i];
    }
    run({tail[0], tail[1], tail[2], tail[3], tail[4], tail[5], tail[6]}, tweak + 2 * done, tail[7], tail[8],
        tail[9], 1);
    for (std::size_t i = 0; done + i < count; ++i) {
        in.sum[done + i] = tail[6][i], garbler_rows[done + i] = tail[7][i];
        evaluator_rows[done + i] = tail[8][i], out[done + i] = tail[9][i];
    }
    zeroise(tail, sizeof tail);
}

template <class Lane>
void evaluate_gate(const AesKey& aes_key, std::uint64_t tweak, const AndOperands& in,
                   const Block* garbler_rows, const Block* evaluator_rows, Block* out, std::size_t count) {
    using Step = EvaluateStep<Lane>;
    const typename Lane::Key key(aes_key);
    const Step step;
    constexpr std::size_t width = Step::instances;
    const auto run = [&](const AndOperands rows, std::uint64_t first_tweak, const Block* row_g,
                         const Block* row_e, Block* row_out,
                         std::size_t steps) __attribute__((always_inline)) {
        run_steps<Lane, typename Step::Stage>(
            key, steps,
            [&](auto part, typename Step::Stage& stage, std::size_t at) __attribute__((always_inline)) {
                step.prepare(part, stage, rows, row_g + width * at, row_e + width * at,
                             first_tweak + 2 * width * at, width * at);
            },
            [&](const typename Step::Stage& stage, std::size_t at)
                __attribute__((always_inline)) { step.finish(stage, row_out + width * at); });
    };
    run(in, tweak, garbler_rows, evaluator_rows, out, count / width);
    const std::size_t done = count / width * width;
    if (done == count) return;
    Block tail[10][width] = {};
    for (std::size_t i = 0; done + i < count; ++i) {
        const Block* const rows[8] = {in.a,     in.a_more,   in.b,         in.b_more,
                                      in.added, in.sum_more, garbler_rows, evaluator_rows};
        for (int row = 0; row < 8; ++row) tail[row][i] = rows[row][done + i];
    }
    run({tail[0], tail[1], tail[2], tail[3], tail[4], tail[5], tail[8]}, tweak + 2 * done, tail[6], tail[7],
        tail[9], 1);
    for (std::size_t i = 0; done + i < count; ++i) in.sum[done + i] = tail[8][i], out[done + i] = tail[9][i];
    zeroise(tail, sizeof tail);
}

}  // namespace sphynx
