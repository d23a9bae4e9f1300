// Channel-first ring tensors to channel-last limb planes with explicit zero padding, internal to core/ring.
#pragma once

#include "ring/conv.h"

namespace sphynx::ring {

// Rows [first_row, last_row) of the padded field, in every limb's plane: plane l at planes + l * plane_bytes,
// each field_height x field_width x in_channels limbs.
template <class T>
void fill_planes(const ConvShape& shape, LimbForm form, int limbs, const T* in, std::size_t first_row,
                 std::size_t last_row, std::uint8_t* planes, std::size_t plane_bytes);

}  // namespace sphynx::ring
