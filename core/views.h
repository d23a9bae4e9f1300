// How the core's functions see memory that they do not own: where it is and how much of it there is. A View is read, a
// Span is written.
#pragma once

#include <cstdint>
#include <span>

#include "block.h"

namespace sphynx {

using BlockView = std::span<const Block>;
using BlockSpan = std::span<Block>;
using WordView = std::span<const std::uint64_t>;
using WordSpan = std::span<std::uint64_t>;
using ByteView = std::span<const std::uint8_t>;
using ByteSpan = std::span<std::uint8_t>;

inline ByteView bytes_of(BlockView blocks) {
    return {reinterpret_cast<const std::uint8_t*>(blocks.data()), blocks.size_bytes()};
}

}  // namespace sphynx
