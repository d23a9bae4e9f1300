// AES-128 (FIPS 197) encryption of many independent blocks: AES-NI, VAES, ARMv8 crypto, or a bit-sliced
// portable path without table look-ups; the fastest one that the CPU has is taken at run time. No path
// branches on, or indexes memory by, key or data. Decryption is not needed anywhere and does not exist.
#pragma once

#include <cstddef>

#include "block.h"

namespace sphynx::crypto {

// The eleven round keys. Zeroised on destruction: some keys are seeds.
class AesKey {
  public:
    AesKey() = default;
    explicit AesKey(Block key);
    ~AesKey() { zeroise(round_keys_, sizeof round_keys_); }
    AesKey(const AesKey&) = default;
    AesKey& operator=(const AesKey&) = default;

    const Block* round_keys() const { return round_keys_; }

  private:
    Block round_keys_[11];
};

// out[i] = AES(key, in[i]); `in` and `out` may be the same array.
void aes_encrypt(const AesKey& key, const Block* in, Block* out, std::size_t count);

// out[i] = AES(key, counter + i), the counter block read as a 128-bit big-endian integer (SP 800-38A, CTR).
void aes_counter_stream(const AesKey& key, Block counter, Block* out, std::size_t count);

// Which path calls take now: "vaes", "aesni", "armv8" or "portable".
const char* aes_path_name();

}  // namespace sphynx::crypto
