#include "ot/lpn_code.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>
#include <stdexcept>

#include "bits/vector.h"
#include "crypto/prg.h"

namespace sphynx::ot {
namespace {

using Index = std::uint16_t;

constexpr std::size_t kChunk = 512;  // rows whose indices are drawn together
constexpr std::size_t kIndicesOfBlock = sizeof(Block) / sizeof(Index);
constexpr std::size_t kBlocksOfChunk = kChunk / kIndicesOfBlock;  // in each region
constexpr std::size_t kMostEntries = std::size_t{1} << 16;        // of a region

}  // namespace

LpnCode::LpnCode(Block public_seed, std::size_t region) : seed_(public_seed), region_(region) {
    if (!std::has_single_bit(region) || region > kMostEntries) {
        throw std::invalid_argument("LPN code: a region has a power of two of entries, at most 2^16");
    }
}

void LpnCode::add_rows(BlockView vector, std::size_t first_row, BlockSpan out) const {
    constexpr std::size_t together = 2;  // regions
    static_assert(kLpnRowWeight % together == 0);
    Block drawn[together * kBlocksOfChunk];
    Index indices[together][kChunk];
    static_assert(sizeof drawn == sizeof indices);
    const std::size_t last_row = first_row + out.size();
    for (std::size_t part = 0; part < kLpnRowWeight; part += together) {
        const Block* const left = vector.data() + part * region_;
        const Block* const right = left + region_;
        for (std::size_t row = first_row; row < last_row;) {
            const std::size_t chunk = row / kChunk, begin = chunk * kChunk,
                              end = std::min(begin + kChunk, last_row);
            crypto::expand_seed(seed_, 0, (chunk * kLpnRowWeight + part) * kBlocksOfChunk, drawn,
                                std::size(drawn));
            std::memcpy(indices, drawn, sizeof indices);
            for (auto& of_region : indices) {
                for (Index& index : of_region) index &= static_cast<Index>(region_ - 1);
            }
            for (; row < end; ++row) {
                Block* const to = &out[row - first_row];
                const auto entries = bits::loaded<bits::Vector>(left + indices[0][row - begin]) ^
                                     bits::loaded<bits::Vector>(right + indices[1][row - begin]);
                bits::store(to, bits::loaded<bits::Vector>(to) ^ entries);
            }
        }
    }
}

}  // namespace sphynx::ot
