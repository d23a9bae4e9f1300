#include "bits/pack.h"

#include <algorithm>
#include <cstring>

namespace sphynx::bits {
namespace {

constexpr std::size_t kWord = sizeof(std::uint64_t);

// Bytes that a value can touch: it begins at any bit of the first.
constexpr std::size_t kReach = kWord + 1;

std::uint64_t low_bits(unsigned width) {
    return ~std::uint64_t{0} >> (64 - width);
}

// The 64 bits from bit `shift` < 8 of the first byte on; the ninth byte is read where a value can reach into it.
template <bool kReaches>
[[gnu::always_inline]] inline std::uint64_t bits_from(const std::uint8_t* bytes, unsigned shift) {
    std::uint64_t word;
    std::memcpy(&word, bytes, kWord);
    if constexpr (kReaches)
        return word >> shift | static_cast<std::uint64_t>(bytes[kWord]) << 1 << (63 - shift);
    return word >> shift;
}

template <bool kReaches>
void unpack(const std::uint8_t* bytes, std::size_t count, unsigned width, std::uint64_t* values) {
    const std::size_t size = packed_bytes(count, width), inside = size < kReach ? 0 : size - kReach + 1;
    const std::uint64_t mask = low_bits(width);
    std::size_t j = 0, bit = 0;
    for (; bit / 8 < inside; ++j, bit += width)
        values[j] = bits_from<kReaches>(bytes + bit / 8, bit % 8) & mask;
    std::uint8_t rest[2 * kReach] = {};  // what is left begins in the last bytes: read where more follow
    std::copy(bytes + inside, bytes + size, rest);
    for (; j < count; ++j, bit += width)
        values[j] = bits_from<kReaches>(rest + (bit / 8 - inside), bit % 8) & mask;
}

}  // namespace

void pack_ring(const std::uint64_t* values, std::size_t count, unsigned width, std::uint8_t* bytes) {
    const std::uint64_t mask = low_bits(width);
    std::uint64_t held = 0;
    unsigned held_bits = 0;
    for (std::size_t j = 0; j < count; ++j) {
        const std::uint64_t value = values[j] & mask;
        held |= value << held_bits;
        const unsigned bits = held_bits + width;
        if (bits >= 64) {
            std::memcpy(bytes, &held, kWord);
            bytes += kWord;
            held = value >> 1 >> (63 - held_bits);
        }
        held_bits = bits % 64;
    }
    if (held_bits > 0) std::memcpy(bytes, &held, (held_bits + 7) / 8);
}

void unpack_ring(const std::uint8_t* bytes, std::size_t count, unsigned width, std::uint64_t* values) {
    (width + 7 <= 64 ? unpack<false> : unpack<true>)(bytes, count, width, values);
}

}  // namespace sphynx::bits
