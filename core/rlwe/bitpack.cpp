#include "rlwe/bitpack.h"

#include <cstring>
#include <stdexcept>

namespace sphynx::rlwe {

std::uint8_t* pack(const std::int32_t* centred, std::size_t count, const Modulus& modulus,
                   std::uint8_t* out) {
    const int bits = modulus.bits();
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
    const int bits = modulus.bits();
    const std::int32_t p = modulus.p(), half = p / 2;
    const std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
    const std::uint8_t* const end = in + packed_bytes(count, bits);
    std::uint64_t pending = 0;
    int filled = 0;
    std::int32_t outside = 0;
    for (std::size_t i = 0; i < count; ++i) {
        if (filled < bits) {
            if (end - in >= 4) {
                std::uint32_t word;
                std::memcpy(&word, in, sizeof word);
                pending |= static_cast<std::uint64_t>(word) << filled;
                in += sizeof word;
                filled += 32;
            } else {
                for (; filled < bits; filled += 8) pending |= static_cast<std::uint64_t>(*in++) << filled;
            }
        }
        const auto value = static_cast<std::int32_t>(pending & mask);
        pending >>= bits;
        filled -= bits;
        outside |= p - 1 - value;
        centred[i] = value - (p & ((half - value) >> 31));
    }
    if (outside < 0) throw std::invalid_argument("a residue on the wire is not below its prime");
    if (pending != 0) throw std::invalid_argument("filler bits on the wire are not zero");
    return end;
}

}  // namespace sphynx::rlwe
