// BLAKE2sp (the BLAKE2 paper's parallel BLAKE2s: eight leaves, one root), without a key: a collision-resistant hash of
// long public messages, 256 bits, that vectors compute side by side. Leaf i hashes the 64-byte blocks i, i + 8, ...
// What is hashed is public: nothing is wiped.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sphynx::crypto {

constexpr std::size_t kBlake2spBytes = 32;

void blake2sp(const void* bytes, std::size_t count, void* digest);

// Which path calls take now: "avx512", "avx2" or "portable".
const char* blake2sp_path_name();

}  // namespace sphynx::crypto
