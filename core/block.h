// A 128-bit block: a wire label, an AES state, a row of an OT matrix. Bytes in memory order; `lo` holds bytes
// 0..7. Two 64-bit words rather than a vector register, so that any 8-byte aligned buffer is an array of
// blocks.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace sphynx {

static_assert(std::endian::native == std::endian::little, "the wire formats are little-endian in memory");

struct Block {
    std::uint64_t lo;
    std::uint64_t hi;

    friend constexpr Block operator^(Block a, Block b) { return {a.lo ^ b.lo, a.hi ^ b.hi}; }
    friend constexpr Block operator&(Block a, Block b) { return {a.lo & b.lo, a.hi & b.hi}; }
    constexpr Block& operator^=(Block other) { return *this = *this ^ other; }
    constexpr bool operator==(const Block&) const = default;

    constexpr bool bit(std::size_t index) const {
        const std::uint64_t words[2] = {lo, hi};
        return words[index / 64] >> (index % 64) & 1;
    }

    // The point-and-permute colour of a label.
    constexpr bool lowest_bit() const { return lo & 1; }
};

static_assert(sizeof(Block) == 16);

// All ones when bit is 1, all zeros when 0: selects without a branch.
constexpr Block mask_of(std::uint64_t bit) {
    return {-(bit & 1), -(bit & 1)};
}

// Overwrites memory in a way the compiler may not drop.
inline void zeroise(void* memory, std::size_t bytes) {
    auto* cursor = static_cast<unsigned char*>(memory);
    for (std::size_t i = 0; i < bytes; ++i) cursor[i] = 0;
    __asm__ volatile("" : : "r"(memory) : "memory");
}

}  // namespace sphynx
