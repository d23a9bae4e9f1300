#include "crypto/blake2b.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <stdexcept>

#include "crypto/blake2_order.h"

namespace sphynx::crypto {
namespace {

constexpr std::uint64_t kInitial[8] = {0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b,
                                       0xa54ff53a5f1d36f1, 0x510e527fade682d1, 0x9b05688c2b3e6c1f,
                                       0x1f83d9abfb41bd6b, 0x5be0cd19137e2179};

[[gnu::always_inline]] inline void mix(std::uint64_t* v, int a, int b, int c, int d, std::uint64_t x,
                                       std::uint64_t y) {
    v[a] += v[b] + x;
    v[d] = std::rotr(v[d] ^ v[a], 32);
    v[c] += v[d];
    v[b] = std::rotr(v[b] ^ v[c], 24);
    v[a] += v[b] + y;
    v[d] = std::rotr(v[d] ^ v[a], 16);
    v[c] += v[d];
    v[b] = std::rotr(v[b] ^ v[c], 63);
}

}  // namespace

Blake2b::Blake2b(std::size_t digest_bytes) : digest_bytes_(digest_bytes) {
    if (digest_bytes < 1 || digest_bytes > 64)
        throw std::invalid_argument("BLAKE2b: a digest has 1 to 64 bytes");
    std::copy_n(kInitial, 8, state_);
    state_[0] ^= 0x01010000 ^ digest_bytes;
}

Blake2b::Blake2b(std::size_t digest_bytes, std::string_view purpose) : Blake2b(digest_bytes) {
    update(purpose.size());
    update(purpose.data(), purpose.size());
}

void Blake2b::update(const void* bytes, std::size_t count) {
    const auto* from = static_cast<const std::uint8_t*>(bytes);
    while (count) {
        if (buffered_ == 0 &&
            count > sizeof buffer_) {  // straight from the caller's memory, all but the last block
            hashed_bytes_ += sizeof buffer_;
            compress(from, false);
            from += sizeof buffer_, count -= sizeof buffer_;
            continue;
        }
        if (buffered_ == sizeof buffer_) {
            hashed_bytes_ += buffered_;
            compress(buffer_, false);
            buffered_ = 0;
            continue;
        }
        const std::size_t taken = std::min(count, sizeof buffer_ - buffered_);
        std::memcpy(buffer_ + buffered_, from, taken);
        buffered_ += taken, from += taken, count -= taken;
    }
}

void Blake2b::finish(void* digest) {
    hashed_bytes_ += buffered_;
    std::memset(buffer_ + buffered_, 0, sizeof buffer_ - buffered_);
    compress(buffer_, true);
    std::memcpy(digest, state_, digest_bytes_);
}

void Blake2b::compress(const std::uint8_t* block, bool is_last) {
    std::uint64_t v[16], words[16];
    std::memcpy(words, block, sizeof words);
    std::copy_n(state_, 8, v);
    std::copy_n(kInitial, 8, v + 8);
    v[12] ^= hashed_bytes_;
    if (is_last) v[14] = ~v[14];
#pragma GCC unroll 12
    for (int round = 0; round < 12; ++round) {
        const std::uint8_t* s = kBlake2WordOf[round % 10];
        mix(v, 0, 4, 8, 12, words[s[0]], words[s[1]]);
        mix(v, 1, 5, 9, 13, words[s[2]], words[s[3]]);
        mix(v, 2, 6, 10, 14, words[s[4]], words[s[5]]);
        mix(v, 3, 7, 11, 15, words[s[6]], words[s[7]]);
        mix(v, 0, 5, 10, 15, words[s[8]], words[s[9]]);
        mix(v, 1, 6, 11, 12, words[s[10]], words[s[11]]);
        mix(v, 2, 7, 8, 13, words[s[12]], words[s[13]]);
        mix(v, 3, 4, 9, 14, words[s[14]], words[s[15]]);
    }
    for (int i = 0; i < 8; ++i) state_[i] ^= v[i] ^ v[i + 8];
    zeroise(v, sizeof v);
    zeroise(words, sizeof words);
}

}  // namespace sphynx::crypto
