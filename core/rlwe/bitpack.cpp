#include "rlwe/bitpack.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "cpu.h"

namespace sphynx::rlwe {

std::uint8_t* pack(const std::int32_t* centred, std::size_t count, const Modulus& modulus,
                   std::uint8_t* out) {
    const int bits = modulus.bits();
#if defined(__x86_64__)
    if (const std::size_t sixteens = count / 16; usable_features().vbmi) {
        pack_sixteens(centred, sixteens, modulus, out);
        out += 2 * sixteens * static_cast<std::size_t>(bits);
        centred += 16 * sixteens;
        count -= 16 * sixteens;
    }
#endif
    std::uint64_t pending = 0;
    int filled = 0;
    for (std::size_t i = 0; i < count; ++i) {
        pending |= static_cast<std::uint64_t>(modulus.canonical(centred[i])) << filled;
        filled += bits;
        if (filled >= 32) {
            const auto word = static_cast<std::uint32_t>(pending);
            std::memcpy(out, &word, sizeof word);
            out += sizeof word;
            pending >>= 32;
            filled -= 32;
        }
    }
    for (; filled > 0; filled -= 8, pending >>= 8) *out++ = static_cast<std::uint8_t>(pending);
    return out;
}

const std::uint8_t* unpack(const std::uint8_t* in, std::size_t count, const Modulus& modulus,
                           std::int32_t* centred) {
    const auto bits = static_cast<std::size_t>(modulus.bits());
    const std::int32_t p = modulus.p(), half = p / 2;
    const std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
    std::int32_t outside = 0;
#if defined(__x86_64__)
    if (const std::size_t sixteens = count / 16; usable_features().vbmi) {
        outside = unpack_sixteens(in, sixteens, modulus, centred) ? 0 : -1;
        in += 2 * sixteens * bits;
        centred += 16 * sixteens;
        count -= 16 * sixteens;
    }
#endif
    const std::size_t bytes = packed_bytes(count, modulus.bits());
    // word: the eight bytes that residue i begins in, so that no residue waits for the one before it.
    const auto take = [&](std::size_t i, std::uint64_t word) {
        const auto value = static_cast<std::int32_t>((word >> (i * bits % 8)) & mask);
        outside |= p - 1 - value;
        centred[i] = value - (p & ((half - value) >> 31));
    };
    const std::size_t whole = bytes < 8 ? 0 : std::min(count, (bytes - 8) * 8 / bits + 1);
    for (std::size_t i = 0; i < whole; ++i) {
        std::uint64_t word;
        std::memcpy(&word, in + i * bits / 8, sizeof word);
        take(i, word);
    }
    for (std::size_t i = whole; i < count; ++i) {  // at most eight bytes are left
        std::uint64_t word = 0;
        std::memcpy(&word, in + i * bits / 8, bytes - i * bits / 8);
        take(i, word);
    }
    if (outside < 0) throw std::invalid_argument("a residue on the wire is not below its prime");
    if (const std::size_t used = count * bits % 8; used != 0 && in[bytes - 1] >> used != 0)
        throw std::invalid_argument("filler bits on the wire are not zero");
    return in + bytes;
}

}  // namespace sphynx::rlwe
