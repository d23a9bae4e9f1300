// The inner kernel of the ring convolution: a tile of output channels times a tile of columns, over runs of
// bytes.
//
// A column is one limb of one output pixel; its pointer is where the pixel's receptive field starts in that
// limb's plane. A run is a stretch of that field, cut into groups of four bytes, and a group is one lane of a
// dot-product instruction (four 8-bit or two 16-bit limbs). Kernels may read whole steps of four groups.
// Weights: [group][output of the tile][4 bytes].
#pragma once

#include <cstddef>
#include <cstdint>

#include "ring/limbs.h"

namespace sphynx::ring {

inline constexpr int kGroupBytes = 4, kStepBytes = 16;
inline constexpr int kMaxColumns = 8;

struct Run {
    std::int32_t offset_bytes;  // from the column's pointer
    std::int32_t groups;
    std::int32_t first_group;  // of its weights
    bool operator==(const Run&) const = default;
};

struct DotKernel {
    const char* name;
    LimbForm form;
    int outputs;  // channels per tile, 8 or 16
    // sums[column * outputs + output] = the 32-bit dot products. columns <= kMaxColumns.
    void (*tile)(const std::int8_t* weights, const Run* runs, std::size_t run_count,
                 const std::uint8_t* const* columns, int column_count, std::int32_t* sums);
};

// The fastest dot-product kernel this CPU may use now, for a ring of that many bits and for weights that fit signed
// bytes or do not; null when it has none.
const DotKernel* best_dot_kernel(int ring_bits, bool byte_weights);

}  // namespace sphynx::ring
