// Residues on the wire: each in as many bits as its prime has, little-endian, the last byte filled with
// zeros. unpack is a parser of hostile bytes: a residue outside [0, p) or a set filler bit throws.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rlwe/modulus.h"

namespace sphynx::rlwe {

constexpr std::size_t packed_bytes(std::size_t count, int bits) {
    return (count * static_cast<std::size_t>(bits) + 7) / 8;
}

// Centred residues to bytes; returns the end of what was written.
std::uint8_t* pack(const std::int32_t* centred, std::size_t count, const Modulus& modulus, std::uint8_t* out);

// Bytes to centred residues; reads exactly packed_bytes(count, bits) and returns the end of what was read.
const std::uint8_t* unpack(const std::uint8_t* in, std::size_t count, const Modulus& modulus,
                           std::int32_t* centred);

// For CPUs with vbmi: sixteen residues at a time, which are whole bytes. The latter says whether all were below the prime.
void pack_sixteens(const std::int32_t* centred, std::size_t sixteens, const Modulus& modulus,
                   std::uint8_t* out);
bool unpack_sixteens(const std::uint8_t* in, std::size_t sixteens, const Modulus& modulus,
                     std::int32_t* centred);

}  // namespace sphynx::rlwe
