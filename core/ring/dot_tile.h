// The loop that all dot-product kernels share, internal to core/ring. A kernel is a struct in an unnamed
// namespace (its instances then never leave the file that is compiled for the instruction set) with
//   Sum, zero()               the 32-bit sums of one column, one per output of a tile
//   store(to, sum)
//   add<groups>(weights, columns, at, sums)
//                             adds `groups` (1 .. 4) groups of every column from byte `at` on
#pragma once

#include "ring/dot.h"
#include "unroll.h"

namespace sphynx::ring {

template <class Kernel, int kColumns>
void tile_of(const std::int8_t* all_weights, const Run* runs, std::size_t run_count,
             const std::uint8_t* const* columns, std::int32_t* sums) {
    constexpr std::ptrdiff_t group_weights = std::ptrdiff_t{kGroupBytes} * Kernel::kOutputs;
    typename Kernel::Sum sum[kColumns];
    unrolled<kColumns>([&](auto c) __attribute__((always_inline)) { sum[c] = Kernel::zero(); });
    for (std::size_t r = 0; r < run_count; ++r) {
        std::ptrdiff_t at = runs[r].offset_bytes;
        int left = runs[r].groups;
        const std::int8_t* weights = all_weights + runs[r].first_group * group_weights;
        for (; left >= 4; left -= 4, at += kStepBytes, weights += 4 * group_weights)
            Kernel::template add<4>(weights, columns, at, sum);
        if (left == 0) continue;
        if (left == 1) Kernel::template add<1>(weights, columns, at, sum);
        if (left == 2) Kernel::template add<2>(weights, columns, at, sum);
        if (left == 3) Kernel::template add<3>(weights, columns, at, sum);
    }
    unrolled<kColumns>(
        [&](auto c) __attribute__((always_inline)) { Kernel::store(sums + c * Kernel::kOutputs, sum[c]); });
}

// A tile whose column count is known at run time.
template <class Kernel, int kColumns = kMaxColumns>
void any_tile(const std::int8_t* weights, const Run* runs, std::size_t run_count,
              const std::uint8_t* const* columns, int column_count, std::int32_t* sums) {
    if constexpr (kColumns > 1) {
        if (column_count < kColumns)
            return any_tile<Kernel, kColumns - 1>(weights, runs, run_count, columns, column_count, sums);
    }
    tile_of<Kernel, kColumns>(weights, runs, run_count, columns, sums);
}

}  // namespace sphynx::ring
