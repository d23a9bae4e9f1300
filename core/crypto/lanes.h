// The symmetric loops written once, generic over a lane: a vector type with its AES. Each instruction-set
// file (kernels_<set>.cpp) defines a Lane in its own unnamed namespace and instantiates these loops with it;
// the instances then have internal linkage, so the linker never merges code compiled for different sets.
//
// A Lane offers: V (holds `width` blocks), Key(AesKey), load/store (unaligned), xor_, counters(hi, lo) giving
// `width` consecutive big-endian counter blocks, and encrypt(Key, V (&)[8]): eight independent vectors at
// once, enough to hide the latency of the AES units.
#pragma once

#include <cstddef>
#include <cstdint>

#include "crypto/kernels.h"

namespace sphynx {

// A partial vector at the end of an array goes through a small copy instead of a second code path.
template <class Lane>
inline void load_partial(const Block* from, std::size_t count, typename Lane::V& to) {
    Block copy[Lane::width] = {};
    for (std::size_t i = 0; i < Lane::width && i < count; ++i) copy[i] = from[i];
    to = Lane::load(copy);
}

template <class Lane>
inline void store_partial(typename Lane::V from, std::size_t count, Block* to) {
    Block copy[Lane::width];
    Lane::store(copy, from);
    for (std::size_t i = 0; i < Lane::width && i < count; ++i) to[i] = copy[i];
}

template <class Lane>
void encrypt_blocks(const AesKey& aes_key, const Block* in, Block* out, std::size_t count) {
    const typename Lane::Key key(aes_key);
    constexpr std::size_t step = 8 * Lane::width;
    typename Lane::V state[8];
    for (; count >= step; count -= step, in += step, out += step) {
        for (int i = 0; i < 8; ++i) state[i] = Lane::load(in + i * Lane::width);
        Lane::encrypt(key, state);
        for (int i = 0; i < 8; ++i) Lane::store(out + i * Lane::width, state[i]);
    }
    if (count == 0) return;
    for (std::size_t i = 0; i < 8; ++i) {
        const std::size_t done = i * Lane::width;
        load_partial<Lane>(in + (done < count ? done : 0), done < count ? count - done : 0, state[i]);
    }
    Lane::encrypt(key, state);
    for (std::size_t i = 0; i * Lane::width < count; ++i) {
        store_partial<Lane>(state[i], count - i * Lane::width, out + i * Lane::width);
    }
}

template <class Lane>
void counter_blocks(const AesKey& aes_key, Block counter, Block* out, std::size_t count) {
    const typename Lane::Key key(aes_key);
    constexpr std::size_t step = 8 * Lane::width;
    std::uint64_t high = __builtin_bswap64(counter.lo);
    std::uint64_t low = __builtin_bswap64(counter.hi);
    typename Lane::V state[8];
    while (count > 0) {
        for (int i = 0; i < 8; ++i) {
            state[i] = Lane::counters(high, low);
            low += Lane::width;
            if (low < Lane::width) ++high;
        }
        Lane::encrypt(key, state);
        if (count >= step) {
            for (int i = 0; i < 8; ++i) Lane::store(out + i * Lane::width, state[i]);
            out += step;
            count -= step;
        } else {
            for (std::size_t i = 0; i * Lane::width < count; ++i) {
                store_partial<Lane>(state[i], count - i * Lane::width, out + i * Lane::width);
            }
            count = 0;
        }
    }
}

template <class Lane>
void hash_many(const AesKey& aes_key, const Block* in, std::uint64_t first_tweak, Block* out, std::size_t count) {
    const typename Lane::Key key(aes_key);
    constexpr std::size_t step = 8 * Lane::width;
    const auto hash_step = [&](const Block* from, std::uint64_t tweak, Block* to) {
        typename Lane::V mixed[8], state[8];
        for (std::size_t i = 0; i < 8; ++i) {
            mixed[i] = Lane::sigma(Lane::load(from + i * Lane::width));
            state[i] = Lane::xor_(mixed[i], Lane::tweaks(tweak + i * Lane::width, 1));
        }
        Lane::encrypt(key, state);
        for (int i = 0; i < 8; ++i) Lane::store(to + i * Lane::width, Lane::xor_(state[i], mixed[i]));
    };
    for (; count >= step; count -= step, in += step, out += step, first_tweak += step) {
        hash_step(in, first_tweak, out);
    }
    if (count == 0) return;
    Block tail[step] = {};
    for (std::size_t i = 0; i < count; ++i) tail[i] = in[i];
    hash_step(tail, first_tweak, tail);
    for (std::size_t i = 0; i < count; ++i) out[i] = tail[i];
    zeroise(tail, sizeof tail);
}

// Half gates (garble.h). By linearity sigma(A1) = sigma(A0) xor sigma(delta), so that
// H(A0) xor H(A1) = AES(A0 side) xor AES(A1 side) xor sigma(delta). Two vectors of instances, four hashes each.
template <class Lane>
void garble_gate(const AesKey& aes_key, Block delta_block, std::uint64_t tweak, const Block* a0, const Block* b0,
                 Block* garbler_rows, Block* evaluator_rows, Block* c0, std::size_t count) {
    using V = typename Lane::V;
    const typename Lane::Key key(aes_key);
    const V delta = Lane::broadcast(delta_block), sigma_delta = Lane::sigma(delta);
    constexpr std::size_t width = Lane::width, step = 2 * width;

    const auto garble_step = [&](const Block* in_a, const Block* in_b, Block* row_g, Block* row_e, Block* out) {
        V a[2], b[2], mixed_a[2], mixed_b[2], state[8];
        for (std::size_t i = 0; i < 2; ++i) {
            a[i] = Lane::load(in_a + i * width);
            b[i] = Lane::load(in_b + i * width);
            mixed_a[i] = Lane::sigma(a[i]);
            mixed_b[i] = Lane::sigma(b[i]);
            state[4 * i] = Lane::xor_(mixed_a[i], Lane::tweaks(tweak + 2 * i * width, 2));
            state[4 * i + 1] = Lane::xor_(state[4 * i], sigma_delta);
            state[4 * i + 2] = Lane::xor_(mixed_b[i], Lane::tweaks(tweak + 2 * i * width + 1, 2));
            state[4 * i + 3] = Lane::xor_(state[4 * i + 2], sigma_delta);
        }
        Lane::encrypt(key, state);
        for (std::size_t i = 0; i < 2; ++i) {
            const V colour_a = Lane::colour_mask(a[i]), colour_b = Lane::colour_mask(b[i]);
            const V both_a = Lane::xor_(Lane::xor_(state[4 * i], state[4 * i + 1]), sigma_delta);
            const V both_b = Lane::xor_(Lane::xor_(state[4 * i + 2], state[4 * i + 3]), sigma_delta);
            const V table_g = Lane::xor_(both_a, Lane::and_(colour_b, delta));
            Lane::store(row_g + i * width, table_g);
            Lane::store(row_e + i * width, Lane::xor_(both_b, a[i]));
            const V hashes = Lane::xor_(Lane::xor_(state[4 * i], mixed_a[i]),
                                        Lane::xor_(state[4 * i + 2], mixed_b[i]));
            const V chosen = Lane::xor_(Lane::and_(colour_a, table_g), Lane::and_(colour_b, both_b));
            Lane::store(out + i * width, Lane::xor_(hashes, chosen));
        }
        tweak += 2 * step;
    };
    for (; count >= step; count -= step) {
        garble_step(a0, b0, garbler_rows, evaluator_rows, c0);
        a0 += step, b0 += step, garbler_rows += step, evaluator_rows += step, c0 += step;
    }
    if (count == 0) return;
    Block tail[5][step] = {};
    for (std::size_t i = 0; i < count; ++i) tail[0][i] = a0[i], tail[1][i] = b0[i];
    garble_step(tail[0], tail[1], tail[2], tail[3], tail[4]);
    for (std::size_t i = 0; i < count; ++i) {
        garbler_rows[i] = tail[2][i], evaluator_rows[i] = tail[3][i], c0[i] = tail[4][i];
    }
    zeroise(tail, sizeof tail);
}

template <class Lane>
void evaluate_gate(const AesKey& aes_key, std::uint64_t tweak, const Block* a, const Block* b,
                   const Block* garbler_rows, const Block* evaluator_rows, Block* c, std::size_t count) {
    using V = typename Lane::V;
    const typename Lane::Key key(aes_key);
    constexpr std::size_t width = Lane::width, step = 4 * width;

    const auto evaluate_step = [&](const Block* in_a, const Block* in_b, const Block* row_g, const Block* row_e,
                                   Block* out) {
        V mixed[4], state[8];
        for (std::size_t i = 0; i < 4; ++i) {
            const V mixed_a = Lane::sigma(Lane::load(in_a + i * width));
            const V mixed_b = Lane::sigma(Lane::load(in_b + i * width));
            state[2 * i] = Lane::xor_(mixed_a, Lane::tweaks(tweak + 2 * i * width, 2));
            state[2 * i + 1] = Lane::xor_(mixed_b, Lane::tweaks(tweak + 2 * i * width + 1, 2));
            mixed[i] = Lane::xor_(mixed_a, mixed_b);
        }
        Lane::encrypt(key, state);
        for (std::size_t i = 0; i < 4; ++i) {
            const V label_a = Lane::load(in_a + i * width), label_b = Lane::load(in_b + i * width);
            const V hashes = Lane::xor_(Lane::xor_(state[2 * i], state[2 * i + 1]), mixed[i]);
            const V half_g = Lane::and_(Lane::colour_mask(label_a), Lane::load(row_g + i * width));
            const V half_e = Lane::and_(Lane::colour_mask(label_b),
                                        Lane::xor_(Lane::load(row_e + i * width), label_a));
            Lane::store(out + i * width, Lane::xor_(hashes, Lane::xor_(half_g, half_e)));
        }
        tweak += 2 * step;
    };
    for (; count >= step; count -= step) {
        evaluate_step(a, b, garbler_rows, evaluator_rows, c);
        a += step, b += step, garbler_rows += step, evaluator_rows += step, c += step;
    }
    if (count == 0) return;
    Block tail[5][step] = {};
    for (std::size_t i = 0; i < count; ++i) {
        tail[0][i] = a[i], tail[1][i] = b[i], tail[2][i] = garbler_rows[i], tail[3][i] = evaluator_rows[i];
    }
    evaluate_step(tail[0], tail[1], tail[2], tail[3], tail[4]);
    for (std::size_t i = 0; i < count; ++i) c[i] = tail[4][i];
    zeroise(tail, sizeof tail);
}

template <class Lane>
constexpr SymmetricKernels lane_kernels(const char* name, std::uint32_t (*substitute_word)(std::uint32_t)) {
    return {
        .name = name,
        .substitute_word = substitute_word,
        .encrypt = encrypt_blocks<Lane>,
        .counter_stream = counter_blocks<Lane>,
        .hash = hash_many<Lane>,
        .garble_and = garble_gate<Lane>,
        .evaluate_and = evaluate_gate<Lane>,
    };
}

}  // namespace sphynx
