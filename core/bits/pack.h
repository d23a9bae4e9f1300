// Ring elements on the wire: `count` values of `width` bits, back to back, lowest bit first, no padding but
// in the last byte. 5,120 elements of Z_2^41 take 26,240 bytes instead of 40,960.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sphynx::bits {

constexpr std::size_t packed_bytes(std::size_t count, unsigned width) {
    return (count * width + 7) / 8;
}

// Bits of values[j] from `width` up are ignored.
void pack_ring(const std::uint64_t* values, std::size_t count, unsigned width, std::uint8_t* bytes);
void unpack_ring(const std::uint8_t* bytes, std::size_t count, unsigned width, std::uint64_t* values);

}  // namespace sphynx::bits
