#include "bits/pack.h"

#include <cstring>

namespace sphynx {

// One value and the rest of the word before it always fit.
__extension__ typedef unsigned __int128 Wide;

void pack_ring(const std::uint64_t* values, std::size_t count, unsigned width, std::uint8_t* bytes) {
    const std::uint64_t mask = ~std::uint64_t{0} >> (64 - width);
    Wide held = 0;
    unsigned held_bits = 0;
    for (std::size_t j = 0; j < count; ++j) {
        held |= static_cast<Wide>(values[j] & mask) << held_bits;
        held_bits += width;
        if (held_bits >= 64) {
            const auto word = static_cast<std::uint64_t>(held);
            std::memcpy(bytes, &word, 8);
            bytes += 8;
            held >>= 64;
            held_bits -= 64;
        }
    }
    if (held_bits == 0) return;
    const auto word = static_cast<std::uint64_t>(held);
    std::memcpy(bytes, &word, (held_bits + 7) / 8);
}

void unpack_ring(const std::uint8_t* bytes, std::size_t count, unsigned width, std::uint64_t* values) {
    const std::uint64_t mask = ~std::uint64_t{0} >> (64 - width);
    std::size_t left = packed_bytes(count, width);
    Wide held = 0;
    unsigned held_bits = 0;
    for (std::size_t j = 0; j < count; ++j) {
        if (held_bits < width) {
            std::uint64_t word = 0;
            const std::size_t take = left < 8 ? left : 8;
            std::memcpy(&word, bytes, take);
            bytes += take;
            left -= take;
            held |= static_cast<Wide>(word) << held_bits;
            held_bits += 8 * static_cast<unsigned>(take);
        }
        values[j] = static_cast<std::uint64_t>(held) & mask;
        held >>= width;
        held_bits -= width;
    }
}

}  // namespace sphynx
