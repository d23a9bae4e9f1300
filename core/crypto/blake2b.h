// BLAKE2b (RFC 7693) without a key: where the core needs a collision-resistant hash, or a random oracle on long inputs.
// No branch and no address depends on what is hashed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "block.h"

namespace sphynx::crypto {

class Blake2b {
  public:
    explicit Blake2b(std::size_t digest_bytes);  // 1 to 64
    // A digest that begins with what it is for, its length first, so that no two purposes hash the same.
    Blake2b(std::size_t digest_bytes, std::string_view purpose);
    ~Blake2b() { zeroise(this, sizeof *this); }
    Blake2b(const Blake2b&) = default;
    Blake2b& operator=(const Blake2b&) = default;

    void update(const void* bytes, std::size_t count);
    void update(std::uint64_t number) { update(&number, sizeof number); }
    void finish(void* digest);  // once

  private:
    void compress(const std::uint8_t* block, bool is_last);

    std::uint64_t state_[8];
    std::uint64_t hashed_bytes_ = 0;
    std::size_t digest_bytes_, buffered_ = 0;
    std::uint8_t buffer_[128];
};

}  // namespace sphynx::crypto
