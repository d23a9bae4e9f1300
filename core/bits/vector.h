// The 128-bit vectors that both x86-64 and aarch64 always have, and code that is the same for one word and for two.
#pragma once

#include <cstdint>
#include <cstring>

namespace sphynx::bits {

typedef std::uint64_t Vector __attribute__((vector_size(16)));

template <class Words>
[[gnu::always_inline]] inline Words loaded(const void* from) {
    Words words;
    std::memcpy(&words, from, sizeof words);
    return words;
}

template <class Words>
[[gnu::always_inline]] inline void store(void* to, Words words) {
    std::memcpy(to, &words, sizeof words);
}

}  // namespace sphynx::bits
