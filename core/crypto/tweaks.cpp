#include "crypto/tweaks.h"

namespace sphynx::crypto {

Tweaks::Tweaks(Block r) {
    Block sum = {};
    for (int bit = 0; bit < 64; ++bit, r = doubled(r)) {
        multiples_[bit] = r;
        steps_[bit] = sum ^= r;
    }
}

void Tweaks::fill(std::uint64_t first, Block* out, std::size_t count) const {
    if (count == 0) return;
    Block tweak = {};
    for (unsigned bit = 0; bit < 64; ++bit) tweak ^= mask_of(first >> bit) & multiples_[bit];
    out[0] = tweak;
    for (std::size_t i = 1; i < count; ++i) {
        out[i] = tweak ^= steps_[std::countr_zero(first + i)];
    }
}

}  // namespace sphynx::crypto
