// Half-gate AND loops, generic over a lane (crypto/lanes.h); garble.h states what they compute.
//
// Garbling one vector of instances (GarbleStep). A = a xor a_more and B = b xor b_more are zero labels, d is delta, tau
// the tweak of A and tau xor R that of B:
//
//   Side, one step ahead                      AES unit           finish
//
//   A --> sigma, tau -----> u_a ----------------> AES --> h_0 --.
//                           u_a xor sigma(d) ---> AES --> h_1 --+-- xor table_g -----> garbler's row
//
//   B --> sigma, tau, R --> u_b ----------------> AES --> h_2 --.
//                           u_b xor sigma(d) ---> AES --> h_3 --+-- xor table_e -----> evaluator's row
//
//   h_0 or h_1 by colour(A), xor h_2 or h_3 by colour(B) -------+-- xor result ------> out
//   A xor B xor sum_more ------------------------------------------------------------> sum
//
//       table_g = sigma(d) xor colour(B) d        table_e = sigma(d) xor A
//       result  = u_a xor u_b xor added xor colour(A) table_g xor colour(B) sigma(d)
//
// Evaluating two vectors (EvaluateStep), A and B being the labels that the evaluator has:
//
//   A --> sigma, tau -----> u_a ----------------> AES --> h_0 --.
//   B --> sigma, tau, R --> u_b ----------------> AES --> h_1 --+-- xor result ------> out
//
//       result  = u_a xor u_b xor added xor colour(A) garbler's row xor colour(B) (A xor evaluator's row)
//
// The AES unit is the bound, so the rest is kept small and out of its way.
//   Small: by linearity sigma(A xor d) = sigma(A) xor sigma(d). Every hash is used in a sum of two, so the last round
// key cancels, and in place of sigma(x) the AES input sigma(x) xor tau may be added: the sum of the two tweaks is R, the
// same for every instance, and both parties' output labels move by that public constant.
//   Out of its way: all that does not need AES output is computed on Lane::Side a step ahead and in eighths, which
// Lane::rounds calls as work(0) .. work(7) between the rounds of the step before. In a burst the same instructions would
// take issue slots from AES.
//
//       AES unit | rounds of step 0                | rounds of step 1                | ...
//       Side     | 0 1 2 3 4 5 6 7 of step 1       | 0 1 2 3 4 5 6 7 of step 2       | ...
//       then     |                        finish 0 |                        finish 1 | ...
#pragma once

#include "crypto/hash.h"
#include "crypto/kernels.h"
#include "unroll.h"

namespace sphynx::garble {

template <class Side>
[[gnu::always_inline]] inline typename Side::V label_at(const Block* row, const Block* more, std::size_t at) {
    return Side::xor_(Side::load(row + at), Side::load(more + at));
}

// One vector of instances a step, four hashes: the first drawing.
template <class Lane>
class GarbleStep {
    using V = typename Lane::V;
    using Side = typename Lane::Side;
    using S = typename Side::V;

  public:
    static constexpr std::size_t kInstances = Lane::kWidth;

    explicit GarbleStep(Block delta)
        : delta_(Side::broadcast(delta)),
          sigma_delta_(Side::broadcast(crypto::sigma(delta))),
          lane_sigma_delta_(Lane::broadcast(crypto::sigma(delta))) {}

    // What goes from Side to the lane.
    struct Prepared {
        S input_a, input_b, colour_a, colour_b, table_g, table_e, result;
    };
    // What the eighths of a preparation hand on to each other.
    struct Working {
        S a, b, colour_a, colour_b, table_g, result;
    };
    struct Stage {
        V state[4], colour_a, colour_b, table_g, table_e, result;
    };

    [[gnu::always_inline]] void prepare(auto part, Prepared& next, Working& now,
                                        const crypto::AndOperands& in, const crypto::AndTweaks& tweaks,
                                        std::size_t at) const {
        if constexpr (part == 0) {
            now.a = label_at<Side>(in.a, in.a_more, at);
            Side::pin(now.a);
            now.result = Side::mixed(now.a, Side::load(tweaks.a + at));
            Side::hand_over(next.input_a, now.result);
        } else if constexpr (part == 1) {
            now.colour_a = Side::colour_mask(now.a);
            Side::pin(now.colour_a);
            Side::hand_over(next.colour_a, now.colour_a);
            Side::hand_over(next.table_e, Side::xor_(now.a, sigma_delta_));
        } else if constexpr (part == 2) {
            now.b = label_at<Side>(in.b, in.b_more, at);
            Side::pin(now.b);
        } else if constexpr (part == 3) {
            const S input_b = Side::mixed(now.b, Side::load(tweaks.b + at));
            Side::hand_over(next.input_b, input_b);
            now.result = Side::xor_(now.result, input_b);
            now.colour_b = Side::colour_mask(now.b);
            Side::pin(now.result), Side::pin(now.colour_b);
            Side::hand_over(next.colour_b, now.colour_b);
        } else if constexpr (part == 4) {
            S sum = Side::xor_(Side::xor_(now.a, now.b), Side::load(in.sum_more + at));
            Side::pin(sum);
            Side::store(in.sum + at, sum);
        } else if constexpr (part == 5) {
            now.result = Side::xor_(now.result, Side::load(in.added + at));
            Side::pin(now.result);
        } else if constexpr (part == 6) {
            now.table_g = Side::xor_(sigma_delta_, Side::and_(now.colour_b, delta_));
            Side::pin(now.table_g);
            Side::hand_over(next.table_g, now.table_g);
        } else {
            const S by_colours =
                Side::xor_(Side::and_(now.colour_a, now.table_g), Side::and_(now.colour_b, sigma_delta_));
            Side::hand_over(next.result, Side::xor_(now.result, by_colours));
        }
    }

    [[gnu::always_inline]] Stage start(const Prepared& from) const {
        const V a = Lane::from_side(from.input_a), b = Lane::from_side(from.input_b);
        return {{a, Lane::xor_(a, lane_sigma_delta_), b, Lane::xor_(b, lane_sigma_delta_)},
                Lane::from_side(from.colour_a),
                Lane::from_side(from.colour_b),
                Lane::from_side(from.table_g),
                Lane::from_side(from.table_e),
                Lane::from_side(from.result)};
    }

    [[gnu::always_inline]] void finish(const Stage& done, BlockSpan garbler_rows, BlockSpan evaluator_rows,
                                       BlockSpan out, std::size_t at) const {
        const V* hash = done.state;
        Lane::store(&garbler_rows[at], Lane::xor_(done.table_g, Lane::xor_(hash[0], hash[1])));
        Lane::store(&evaluator_rows[at], Lane::xor_(done.table_e, Lane::xor_(hash[2], hash[3])));
        const V a = Lane::select(done.colour_a, hash[1], hash[0]);
        const V b = Lane::select(done.colour_b, hash[3], hash[2]);
        Lane::store(&out[at], Lane::xor_(done.result, Lane::xor_(a, b)));
    }

  private:
    S delta_, sigma_delta_;
    V lane_sigma_delta_;
};

// Two vectors of instances a step, two hashes each: the second drawing.
template <class Lane>
class EvaluateStep {
    using V = typename Lane::V;
    using Side = typename Lane::Side;
    using S = typename Side::V;

  public:
    static constexpr std::size_t kInstances = 2 * Lane::kWidth;

    struct Prepared {
        S input[4], result[2];
    };
    struct Working {
        S a, b, result;
    };
    struct Stage {
        V state[4], result[2];
    };

    [[gnu::always_inline]] void prepare(auto part, Prepared& next, Working& now,
                                        const crypto::AndOperands& in, BlockView garbler_rows,
                                        BlockView evaluator_rows, const crypto::AndTweaks& tweaks,
                                        std::size_t at) const {
        constexpr int i = part / 4;
        at += static_cast<std::size_t>(i) * Lane::kWidth;
        if constexpr (part % 4 == 0) {
            now.a = label_at<Side>(in.a, in.a_more, at);
            Side::pin(now.a);
            now.result = Side::mixed(now.a, Side::load(tweaks.a + at));
            Side::hand_over(next.input[2 * i], now.result);
        } else if constexpr (part % 4 == 1) {
            now.b = label_at<Side>(in.b, in.b_more, at);
            Side::pin(now.b);
            const S input_b = Side::mixed(now.b, Side::load(tweaks.b + at));
            Side::hand_over(next.input[2 * i + 1], input_b);
            now.result = Side::xor_(now.result, input_b);
            Side::pin(now.result);
        } else if constexpr (part % 4 == 2) {
            S sum = Side::xor_(Side::xor_(now.a, now.b), Side::load(in.sum_more + at));
            Side::pin(sum);
            Side::store(in.sum + at, sum);
            now.result = Side::xor_(now.result, Side::load(in.added + at));
            Side::pin(now.result);
        } else {
            const S from_g = Side::and_(Side::colour_mask(now.a), Side::load(&garbler_rows[at]));
            const S from_e =
                Side::and_(Side::colour_mask(now.b), Side::xor_(now.a, Side::load(&evaluator_rows[at])));
            Side::hand_over(next.result[i], Side::xor_(now.result, Side::xor_(from_g, from_e)));
        }
    }

    [[gnu::always_inline]] Stage start(const Prepared& from) const {
        return {{Lane::from_side(from.input[0]), Lane::from_side(from.input[1]),
                 Lane::from_side(from.input[2]), Lane::from_side(from.input[3])},
                {Lane::from_side(from.result[0]), Lane::from_side(from.result[1])}};
    }

    [[gnu::always_inline]] void finish(const Stage& done, BlockSpan out, std::size_t at) const {
        unrolled<2>([&](auto i) __attribute__((always_inline)) {
            const V hashes = Lane::xor_(done.state[2 * i], done.state[2 * i + 1]);
            Lane::store(&out[at + i * Lane::kWidth], Lane::xor_(done.result[i], hashes));
        });
    }
};

// Runs whole steps of one kind: prepare(part, prepared, working, step) fills what a step starts from,
// finish(stage, step) uses a stage whose rounds are done.
template <class Lane, class Kind, class Prepare, class Finish>
[[gnu::always_inline]] inline void run_steps(const typename Lane::Key& key, const Kind& kind,
                                             std::size_t steps, const Prepare& prepare,
                                             const Finish& finish) {
    if (steps == 0) return;
    typename Kind::Prepared next;
    typename Kind::Working now;
    unrolled<8>([&](auto part) __attribute__((always_inline)) { prepare(part, next, now, std::size_t{0}); });
    for (std::size_t step = 0; step < steps; ++step) {
        typename Kind::Stage current = kind.start(next);
        const std::size_t ahead = step + 1 < steps ? step + 1 : step;  // after the last step, for nothing
        Lane::rounds(key, current.state,
                     [&](auto part) __attribute__((always_inline)) { prepare(part, next, now, ahead); });
        finish(current, step);
    }
    Lane::Side::forget(next);
}

// Not inlined: with the tail's arrays in the same frame, what Side hands over would lie beyond the reach of
// paired stores.
template <class Lane>
[[gnu::noinline]] void garble_steps(const crypto::AesKey& aes_key, Block delta,
                                    const crypto::AndTweaks& and_tweaks, const crypto::AndOperands& operands,
                                    BlockSpan garbler_rows, BlockSpan evaluator_rows, BlockSpan out) {
    using Step = GarbleStep<Lane>;
    const typename Lane::Key key(aes_key);
    const Step step(delta);
    const crypto::AndOperands in = operands;
    const crypto::AndTweaks tweaks = and_tweaks;
    constexpr std::size_t width = Step::kInstances;
    run_steps<Lane>(
        key, step, out.size() / width,
        [&](auto part, typename Step::Prepared& next, typename Step::Working& now, std::size_t at)
            __attribute__((always_inline)) { step.prepare(part, next, now, in, tweaks, width * at); },
        [&](const typename Step::Stage& done, std::size_t at) __attribute__((always_inline)) {
            step.finish(done, garbler_rows, evaluator_rows, out, width * at);
        });
}

template <class Lane>
void garble_gate(const crypto::AesKey& key, Block delta, const crypto::AndTweaks& tweaks,
                 const crypto::AndOperands& in, BlockSpan garbler_rows, BlockSpan evaluator_rows,
                 BlockSpan out) {
    constexpr std::size_t width = GarbleStep<Lane>::kInstances;
    const std::size_t count = out.size(), done = count / width * width;
    garble_steps<Lane>(key, delta, tweaks, in, garbler_rows, evaluator_rows, out);
    if (done == count) return;
    Block tail[12][width] = {};
    for (std::size_t i = 0; done + i < count; ++i) {
        const Block* const rows[6] = {in.a, in.a_more, in.b, in.b_more, in.added, in.sum_more};
        for (int row = 0; row < 6; ++row) tail[row][i] = rows[row][done + i];
        tail[10][i] = tweaks.a[done + i], tail[11][i] = tweaks.b[done + i];
    }
    garble_steps<Lane>(key, delta, {tail[10], tail[11]},
                       {tail[0], tail[1], tail[2], tail[3], tail[4], tail[5], tail[6]}, tail[7], tail[8],
                       tail[9]);
    for (std::size_t i = 0; done + i < count; ++i) {
        in.sum[done + i] = tail[6][i], garbler_rows[done + i] = tail[7][i];
        evaluator_rows[done + i] = tail[8][i], out[done + i] = tail[9][i];
    }
    zeroise(tail, sizeof tail);
}

template <class Lane>
[[gnu::noinline]] void evaluate_steps(const crypto::AesKey& aes_key, const crypto::AndTweaks& and_tweaks,
                                      const crypto::AndOperands& operands, BlockView garbler_rows,
                                      BlockView evaluator_rows, BlockSpan out) {
    using Step = EvaluateStep<Lane>;
    const typename Lane::Key key(aes_key);
    const Step step;
    const crypto::AndOperands in = operands;
    const crypto::AndTweaks tweaks = and_tweaks;
    constexpr std::size_t width = Step::kInstances;
    run_steps<Lane>(
        key, step, out.size() / width,
        [&](auto part, typename Step::Prepared& next, typename Step::Working& now, std::size_t at)
            __attribute__((always_inline)) {
                step.prepare(part, next, now, in, garbler_rows, evaluator_rows, tweaks, width * at);
            },
        [&](const typename Step::Stage& done, std::size_t at)
            __attribute__((always_inline)) { step.finish(done, out, width * at); });
}

template <class Lane>
void evaluate_gate(const crypto::AesKey& key, const crypto::AndTweaks& tweaks, const crypto::AndOperands& in,
                   BlockView garbler_rows, BlockView evaluator_rows, BlockSpan out) {
    constexpr std::size_t width = EvaluateStep<Lane>::kInstances;
    const std::size_t count = out.size(), done = count / width * width;
    evaluate_steps<Lane>(key, tweaks, in, garbler_rows, evaluator_rows, out);
    if (done == count) return;
    Block tail[12][width] = {};
    for (std::size_t i = 0; done + i < count; ++i) {
        const Block* const rows[8] = {in.a,
                                      in.a_more,
                                      in.b,
                                      in.b_more,
                                      in.added,
                                      in.sum_more,
                                      garbler_rows.data(),
                                      evaluator_rows.data()};
        for (int row = 0; row < 8; ++row) tail[row][i] = rows[row][done + i];
        tail[10][i] = tweaks.a[done + i], tail[11][i] = tweaks.b[done + i];
    }
    evaluate_steps<Lane>(key, {tail[10], tail[11]},
                         {tail[0], tail[1], tail[2], tail[3], tail[4], tail[5], tail[8]}, tail[6], tail[7],
                         tail[9]);
    for (std::size_t i = 0; done + i < count; ++i) in.sum[done + i] = tail[8][i], out[done + i] = tail[9][i];
    zeroise(tail, sizeof tail);
}

}  // namespace sphynx::garble
