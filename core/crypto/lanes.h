// The symmetric loops written once, generic over a lane: a vector type with its AES. Each instruction-set
// file (kernels_<set>.cpp) defines a Lane in its own unnamed namespace and instantiates these loops with it;
// the instances then have internal linkage, so the linker never merges code compiled for different sets.
//
// A Lane offers
//   V, width               a vector and how many blocks it holds; load and store (unaligned), broadcast
//   xor_, select           select(mask, a, b) takes a where the mask is set
//   counters(high, low)    consecutive big-endian counter blocks
//   mixed(x, tweak)        sigma(x) ^ tweak (hash.h)
//   Key, encrypt           AES of eight vectors at once, enough to hide the latency of the AES units; with a
//                          third argument calling work(0) .. work(7) in between
//   encrypt_each           AES of vectors 2 i and 2 i + 1 under keys[i]
//   rounds(.., work)       AES of four vectors up to a constant that depends on the key only (the last
//                          AddRoundKey may be missing; it cancels in sums of two), calling work(0) .. work(7)
//                          in between
//   Side                   does that work: the lane itself, or GeneralRegisters (general_registers.h) where
//                          that is faster; from_side(value) is Side's V as the lane's
// A Side offers V, load, store, xor_, broadcast, counters and mixed as above, and
//   and_, colour_mask(x)   colour_mask: each block all ones or zeros by its lowest bit
//   pin(V&)                the value is computed here, not later
//   hand_over(to, value)   the value is complete, for from_side
//   forget(..)             wipes what was handed over, if that was through memory
#pragma once

#include <cstddef>
#include <cstdint>

#include "crypto/kernels.h"
#include "garble/gate_lanes.h"

namespace sphynx::crypto {

template <class Lane>
void encrypt_blocks(const AesKey& aes_key, const Block* in, Block* out, std::size_t count) {
    const typename Lane::Key key(aes_key);
    constexpr std::size_t step = 8 * Lane::kWidth;
    const auto run_step = [&](const Block* from, Block* to) __attribute__((always_inline)) {
        typename Lane::V state[8];
        for (int i = 0; i < 8; ++i) state[i] = Lane::load(from + i * Lane::kWidth);
        Lane::encrypt(key, state);
        for (int i = 0; i < 8; ++i) Lane::store(to + i * Lane::kWidth, state[i]);
    };
    for (; count >= step; count -= step, in += step, out += step) run_step(in, out);
    if (count == 0) return;
    Block tail[step] = {};
    for (std::size_t i = 0; i < count; ++i) tail[i] = in[i];
    run_step(tail, tail);
    for (std::size_t i = 0; i < count; ++i) out[i] = tail[i];
    zeroise(tail, sizeof tail);
}

template <class Lane>
void counter_blocks(const AesKey& aes_key, Block counter, Block* out, std::size_t count) {
    using Side = typename Lane::Side;
    constexpr std::size_t step = 8 * Lane::kWidth;
    const typename Lane::Key key(aes_key);
    std::uint64_t high = __builtin_bswap64(counter.lo);
    std::uint64_t low = __builtin_bswap64(counter.hi);
    typename Side::V next[8];
    const auto prepare = [&](auto i) __attribute__((always_inline)) {
        Side::hand_over(next[i], Side::counters(high, low));
        low += Lane::kWidth;
        high += low < Lane::kWidth;
    };
    const auto run_step = [&](Block* to) __attribute__((always_inline)) {
        typename Lane::V state[8];
        unrolled<8>([&](auto i) __attribute__((always_inline)) { state[i] = Lane::from_side(next[i]); });
        Lane::encrypt(key, state, prepare);
        unrolled<8>([&](auto i)
                        __attribute__((always_inline)) { Lane::store(to + i * Lane::kWidth, state[i]); });
    };
    unrolled<8>(prepare);
    for (; count >= step; count -= step, out += step) run_step(out);
    if (count == 0) return;
    Block tail[step];
    run_step(tail);
    for (std::size_t i = 0; i < count; ++i) out[i] = tail[i];
    zeroise(tail, sizeof tail);
}

template <class Lane>
void sum_streams_of_four(const AesKey* keys, Block counter, Block* bit0, Block* bit1, Block* total,
                         std::size_t count) {
    using V = typename Lane::V;
    constexpr std::size_t step = 2 * Lane::kWidth;
    std::uint64_t high = __builtin_bswap64(counter.lo);
    std::uint64_t low = __builtin_bswap64(counter.hi);
    const auto sum_step = [&](Block* out0, Block* out1, Block* out) {
        V state[8];
        for (int i = 0; i < 2; ++i) {
            const V block = Lane::counters(high, low);
            for (int key = 0; key < 4; ++key) state[2 * key + i] = block;
            low += Lane::kWidth;
            if (low < Lane::kWidth) ++high;
        }
        Lane::encrypt_each(keys, state);
        for (std::size_t i = 0; i < 2; ++i) {
            const std::size_t at = i * Lane::kWidth;
            const V upper = Lane::xor_(state[4 + i], state[6 + i]);
            Lane::store(out0 + at, Lane::xor_(Lane::load(out0 + at), Lane::xor_(state[2 + i], state[6 + i])));
            Lane::store(out1 + at, Lane::xor_(Lane::load(out1 + at), upper));
            Lane::store(out + at, Lane::xor_(upper, Lane::xor_(state[i], state[2 + i])));
        }
    };
    std::size_t done = 0;
    for (; done + step <= count; done += step) sum_step(bit0 + done, bit1 + done, total + done);
    if (done == count) return;
    Block tail[3][step] = {};
    for (std::size_t i = 0; done + i < count; ++i) tail[0][i] = bit0[done + i], tail[1][i] = bit1[done + i];
    sum_step(tail[0], tail[1], tail[2]);
    for (std::size_t i = 0; done + i < count; ++i) {
        bit0[done + i] = tail[0][i], bit1[done + i] = tail[1][i], total[done + i] = tail[2][i];
    }
    zeroise(tail, sizeof tail);
}

template <class Lane>
void sum_streams_of_sixteen(const AesKey* keys, Block counter, Block* rows, Block* total, std::size_t count) {
    using V = typename Lane::V;
    constexpr std::size_t step = 2 * Lane::kWidth;
    std::uint64_t high = __builtin_bswap64(counter.lo);
    std::uint64_t low = __builtin_bswap64(counter.hi);
    // to[0] .. to[3]: the rows; to[4]: the total.
    const auto sum_step = [&](Block* const(&to)[5]) {
        V block[2], sums[5][2];
        for (V& next : block) {
            next = Lane::counters(high, low);
            low += Lane::kWidth;
            if (low < Lane::kWidth) ++high;
        }
        unrolled<4>([&](auto four) __attribute__((always_inline)) {
            V state[8];
            for (int i = 0; i < 8; ++i) state[i] = block[i % 2];
            Lane::encrypt_each(keys + 4 * four, state);
            for (int i = 0; i < 2; ++i) {
                const V upper = Lane::xor_(state[4 + i], state[6 + i]);
                const V odd = Lane::xor_(state[2 + i], state[6 + i]);
                const V all = Lane::xor_(upper, Lane::xor_(state[i], state[2 + i]));
                const auto add = [&](int row, V value) __attribute__((always_inline)) {
                    if constexpr (four > 0) value = Lane::xor_(sums[row][i], value);
                    sums[row][i] = value;
                };
                add(0, odd), add(1, upper), add(4, all);
                if constexpr (four == 1) sums[2][i] = all;
                if constexpr (four == 2) sums[3][i] = all;
                if constexpr (four == 3) add(2, all), add(3, all);
            }
        });
        for (int row = 0; row < 5; ++row) {
            for (std::size_t i = 0; i < 2; ++i) Lane::store(to[row] + i * Lane::kWidth, sums[row][i]);
        }
    };
    std::size_t done = 0;
    for (; done + step <= count; done += step) {
        Block* const row = rows + done;
        sum_step({row, row + count, row + 2 * count, row + 3 * count, total + done});
    }
    if (done == count) return;
    Block tail[5][step];
    sum_step({tail[0], tail[1], tail[2], tail[3], tail[4]});
    for (std::size_t i = 0; done + i < count; ++i) {
        for (std::size_t row = 0; row < 4; ++row) rows[row * count + done + i] = tail[row][i];
        total[done + i] = tail[4][i];
    }
    zeroise(tail, sizeof tail);
}

template <class Lane>
void hash_many(const AesKey& aes_key, const Block* in, const Block* tweaks, Block* out, std::size_t count) {
    const typename Lane::Key key(aes_key);
    constexpr std::size_t step = 8 * Lane::kWidth;
    const auto hash_step = [&](const Block* from, const Block* tweaked_by, Block* to) {
        typename Lane::V white[8], state[8];
        for (std::size_t i = 0; i < 8; ++i) {
            const auto tweak = Lane::load(tweaked_by + i * Lane::kWidth);
            state[i] = Lane::mixed(Lane::load(from + i * Lane::kWidth), tweak);
            white[i] = Lane::xor_(state[i], tweak);
        }
        Lane::encrypt(key, state);
        for (int i = 0; i < 8; ++i) Lane::store(to + i * Lane::kWidth, Lane::xor_(state[i], white[i]));
    };
    for (; count >= step; count -= step, in += step, out += step, tweaks += step) {
        hash_step(in, tweaks, out);
    }
    if (count == 0) return;
    Block tail[step] = {}, last_tweaks[step] = {};
    for (std::size_t i = 0; i < count; ++i) tail[i] = in[i], last_tweaks[i] = tweaks[i];
    hash_step(tail, last_tweaks, tail);
    for (std::size_t i = 0; i < count; ++i) out[i] = tail[i];
    zeroise(tail, sizeof tail);
}

template <class Lane>
constexpr SymmetricKernels lane_kernels(const char* name, std::uint32_t (*substitute_word)(std::uint32_t)) {
    return {
        .name = name,
        .substitute_word = substitute_word,
        .encrypt = encrypt_blocks<Lane>,
        .counter_stream = counter_blocks<Lane>,
        .sum_four_streams = sum_streams_of_four<Lane>,
        .sum_sixteen_streams = sum_streams_of_sixteen<Lane>,
        .hash = hash_many<Lane>,
        .garble_and = garble::garble_gate<Lane>,
        .evaluate_and = garble::evaluate_gate<Lane>,
    };
}

}  // namespace sphynx::crypto
