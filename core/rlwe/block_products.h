// The sums of products of ntt.h in the one form that all instruction sets share: several sums at a time, which stay in
// registers from the first input to the last. Internal to the ntt*.cpp files.
//
// Lanes, a type of each file's own, holds the kBlock lanes of a block in vectors:
//   kSums                       sums of a half that its registers hold, at least two
//   Values, load_values(values)  a block of a ciphertext
//   Sums, begin(before)         64-bit sums that start at 32-bit values, at zero for a null pointer
//   add<distinct>(sums, w, x)   the products with a block of weights
//   reduce(sums, out)           centred
#pragma once

#include "rlwe/ntt.h"

namespace sphynx::rlwe {

template <class Lanes, int kDistinct, int kReplies, int kHalves>
SPHYNX_INLINE void sum_some(const BlockProducts& block, std::size_t reply, std::size_t half,
                            const Lanes& lanes) {
    typename Lanes::Sums sums[kReplies][kHalves];
    std::int32_t* out[kReplies][kHalves];
    const std::int32_t* weights[kReplies];
    const std::int32_t* values[kHalves];
    for (std::size_t h = 0; h < kHalves; ++h) {
        values[h] = block.values + (half + h) * block.inputs * kBlock;
        for (std::size_t r = 0; r < kReplies; ++r) {
            weights[r] = block.weights + (reply + r) * block.weight_stride;
            out[r][h] = block.out + (2 * (reply + r) + half + h) * block.out_stride;
            sums[r][h] = lanes.begin(block.adds ? out[r][h] : nullptr);
        }
    }
    for (std::size_t i = 0; i < block.inputs; ++i) {
        for (int h = 0; h < kHalves; ++h) {
            const typename Lanes::Values loaded = Lanes::load_values(values[h] + i * kBlock);
            for (int r = 0; r < kReplies; ++r)
                Lanes::template add<kDistinct>(sums[r][h], weights[r] + i * kDistinct, loaded);
        }
    }
    for (int h = 0; h < kHalves; ++h) {
        for (int r = 0; r < kReplies; ++r) lanes.reduce(sums[r][h], out[r][h]);
    }
}

// Weights that stand for runs of lanes are few, so that loading values costs more: a half for as many replies as there are
// registers for. Else both halves for each weight.
template <class Lanes, int kDistinct>
SPHYNX_INLINE void sum_all(const BlockProducts& block, const Lanes& lanes) {
    constexpr int halves = kDistinct == kBlock ? 2 : 1, replies = Lanes::kSums / halves;
    for (std::size_t half = 0; half < 2; half += halves) {
        std::size_t reply = 0;
        for (; reply + replies <= block.replies; reply += replies)
            sum_some<Lanes, kDistinct, replies, halves>(block, reply, half, lanes);
        for (; reply < block.replies; ++reply)
            sum_some<Lanes, kDistinct, 1, halves>(block, reply, half, lanes);
    }
}

// Kernels::product_sums.
template <class Lanes>
void product_sums_of(const BlockProducts& block, const Modulus& modulus) {
    const Lanes lanes(modulus);
    switch (block.distinct) {
        case 16:
            return sum_all<Lanes, 16>(block, lanes);
        case 8:
            return sum_all<Lanes, 8>(block, lanes);
        case 4:
            return sum_all<Lanes, 4>(block, lanes);
        case 2:
            return sum_all<Lanes, 2>(block, lanes);
        default:
            return sum_all<Lanes, 1>(block, lanes);
    }
}

}  // namespace sphynx::rlwe
