#include "ot/lpn_code.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "bits/vector.h"
#include "crypto/prg.h"

namespace sphynx::ot {
namespace {

constexpr std::size_t kTile = 128;  // rows whose indices are drawn together: 5 KB of them
constexpr std::size_t kWordsOfBlock = sizeof(Block) / sizeof(std::uint32_t);

}  // namespace

void LpnCode::add_rows(BlockView vector, std::size_t first_row, BlockSpan out) const {
    constexpr std::size_t together = 2;  // rows that are a whole number of blocks
    static_assert(together * kLpnRowWeight % kWordsOfBlock == 0 && kTile % together == 0);
    Block drawn[kTile * kLpnRowWeight / kWordsOfBlock];
    std::uint32_t indices[kTile * kLpnRowWeight];
    const std::size_t last_row = first_row + out.size();
    auto next = out.begin();
    for (std::size_t row = first_row; row < last_row;) {
        const std::size_t begin = row / together * together, end = std::min(begin + kTile, last_row);
        crypto::expand_seed(seed_, 0, begin * kLpnRowWeight / kWordsOfBlock, drawn, std::size(drawn));
        std::memcpy(indices, drawn, sizeof indices);
        for (std::uint32_t& index : indices) {
            index = static_cast<std::uint32_t>(std::uint64_t{index} * secret_ >> 32);
        }
        const std::uint32_t* of_row = indices + (row - begin) * kLpnRowWeight;
        for (; row < end; ++row, ++next, of_row += kLpnRowWeight) {
            auto sum = bits::loaded<bits::Vector>(&*next);
            for (std::size_t i = 0; i < kLpnRowWeight; ++i)
                sum ^= bits::loaded<bits::Vector>(&vector[of_row[i]]);
            bits::store(&*next, sum);
        }
    }
}

}  // namespace sphynx::ot
