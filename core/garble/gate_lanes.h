// Half-gate AND loops, generic over a lane (crypto/lanes.h); garble.h states what they compute.
// Written so that little vector work remains beside AES: by linearity sigma(A1) = sigma(A0) xor sigma(delta);
// every hash is used in a sum of two, so the last round key cancels, and in place of sigma(x) the AES input
// sigma(x) xor i may be added (the sum of the two tweaks is 1: both parties' output labels move by that
// public constant); all that does not need an AES output is folded before the rounds start.
#pragma once

#include "crypto/kernels.h"

namespace sphynx {

// One operand of a gate: state = sigma(label) ^ tweak, colour = all ones or zeros by the label's lowest bit,
// where the label is the sum of two rows. Lane::operand(row, more, tweak, step) makes it for `width`
// instances whose tweaks are `step` apart.
template <class Lane>
struct GateOperand {
    typename Lane::V state, colour;
};

// Two vectors of instances, four hashes each.
template <class Lane>
void garble_gate(const AesKey& aes_key, Block delta_block, std::uint64_t tweak, const AndOperands& in,
                 Block* garbler_rows, Block* evaluator_rows, Block* out, std::size_t count) {
    using V = typename Lane::V;
    const typename Lane::Key key(aes_key);
    constexpr std::size_t width = Lane::width, step = 2 * width;
    const V delta = Lane::broadcast(delta_block);
    const V sigma_delta = Lane::mixed(delta, Lane::broadcast({0, 0}));
    const V sigma_and_delta = Lane::xor_(sigma_delta, delta);

    const auto garble_step = [&](const AndOperands& rows, std::size_t at, Block* row_g, Block* row_e,
                                 Block* row_out) {
        V label_a[2], colour_a[2], colour_b[2], table_g[2], result[2], state[8];
        for (std::size_t i = 0; i < 2; ++i) {
            const std::size_t from = at + i * width;
            const auto a = Lane::operand(rows.a + from, rows.a_more + from, tweak + 2 * i * width, 2);
            const auto b = Lane::operand(rows.b + from, rows.b_more + from, tweak + 2 * i * width + 1, 2);
            state[4 * i] = a.state;
            state[4 * i + 1] = Lane::xor_(a.state, sigma_delta);
            state[4 * i + 2] = b.state;
            state[4 * i + 3] = Lane::xor_(b.state, sigma_delta);
            colour_a[i] = a.colour;
            colour_b[i] = b.colour;
            table_g[i] = Lane::select(b.colour, sigma_and_delta, sigma_delta);
            label_a[i] = Lane::xor_(Lane::load(rows.a + from), Lane::load(rows.a_more + from));
            result[i] = Lane::xor_(Lane::xor_(a.state, b.state), Lane::load(rows.added + from));
        }
        for (V& value : result) Lane::pin(value);
        for (V& value : state) Lane::pin(value);
        Lane::rounds(key, state);
        for (std::size_t i = 0; i < 2; ++i) {
            table_g[i] = Lane::xor_(table_g[i], Lane::xor_(state[4 * i], state[4 * i + 1]));
            const V both_b = Lane::xor_(Lane::xor_(state[4 * i + 2], state[4 * i + 3]), sigma_delta);
            Lane::store(row_g + i * width, table_g[i]);
            Lane::store(row_e + i * width, Lane::xor_(both_b, label_a[i]));
            const V chosen = Lane::xor_(Lane::and_(colour_a[i], table_g[i]), Lane::and_(colour_b[i], both_b));
            const V hashes = Lane::xor_(state[4 * i], state[4 * i + 2]);
            Lane::store(row_out + i * width, Lane::xor_(Lane::xor_(result[i], hashes), chosen));
        }
        tweak += 2 * step;
    };
    std::size_t at = 0;
    for (; at + step <= count; at += step) {
        garble_step(in, at, garbler_rows + at, evaluator_rows + at, out + at);
    }
    if (at == count) return;
    Block tail[8][step] = {};
    for (std::size_t i = 0; at + i < count; ++i) {
        const Block* const rows[5] = {in.a, in.a_more, in.b, in.b_more, in.added};
        for (int row = 0; row < 5; ++row) tail[row][i] = rows[row][at + i];
    }
    garble_step({tail[0], tail[1], tail[2], tail[3], tail[4]}, 0, tail[5], tail[6], tail[7]);
    for (std::size_t i = 0; at + i < count; ++i) {
        garbler_rows[at + i] = tail[5][i], evaluator_rows[at + i] = tail[6][i], out[at + i] = tail[7][i];
    }
    zeroise(tail, sizeof tail);
}

// Four vectors of instances, two hashes each.
template <class Lane>
void evaluate_gate(const AesKey& aes_key, std::uint64_t tweak, const AndOperands& in,
                   const Block* garbler_rows, const Block* evaluator_rows, Block* out, std::size_t count) {
    using V = typename Lane::V;
    const typename Lane::Key key(aes_key);
    constexpr std::size_t width = Lane::width, step = 4 * width;

    const auto evaluate_step = [&](const AndOperands& rows, std::size_t at, const Block* row_g,
                                   const Block* row_e, Block* row_out) {
        V result[4], state[8];
        for (std::size_t i = 0; i < 4; ++i) {
            const std::size_t from = at + i * width;
            const auto a = Lane::operand(rows.a + from, rows.a_more + from, tweak + 2 * i * width, 2);
            const auto b = Lane::operand(rows.b + from, rows.b_more + from, tweak + 2 * i * width + 1, 2);
            const V label_a = Lane::xor_(Lane::load(rows.a + from), Lane::load(rows.a_more + from));
            const V half_g = Lane::and_(a.colour, Lane::load(row_g + i * width));
            const V half_e = Lane::and_(b.colour, Lane::xor_(Lane::load(row_e + i * width), label_a));
            state[2 * i] = a.state;
            state[2 * i + 1] = b.state;
            result[i] = Lane::xor_(Lane::xor_(half_g, half_e), Lane::load(rows.added + from));
            result[i] = Lane::xor_(result[i], Lane::xor_(a.state, b.state));
        }
        for (V& value : result) Lane::pin(value);
        for (V& value : state) Lane::pin(value);
        Lane::rounds(key, state);
        for (std::size_t i = 0; i < 4; ++i) {
            Lane::store(row_out + i * width,
                        Lane::xor_(result[i], Lane::xor_(state[2 * i], state[2 * i + 1])));
        }
        tweak += 2 * step;
    };
    std::size_t at = 0;
    for (; at + step <= count; at += step) {
        evaluate_step(in, at, garbler_rows + at, evaluator_rows + at, out + at);
    }
    if (at == count) return;
    Block tail[8][step] = {};
    for (std::size_t i = 0; at + i < count; ++i) {
        const Block* const rows[7] = {in.a,     in.a_more,    in.b,          in.b_more,
                                      in.added, garbler_rows, evaluator_rows};
        for (int row = 0; row < 7; ++row) tail[row][i] = rows[row][at + i];
    }
    evaluate_step({tail[0], tail[1], tail[2], tail[3], tail[4]}, 0, tail[5], tail[6], tail[7]);
    for (std::size_t i = 0; at + i < count; ++i) out[at + i] = tail[7][i];
    zeroise(tail, sizeof tail);
}

}  // namespace sphynx
