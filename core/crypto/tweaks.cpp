#include "crypto/tweaks.h"

#include <algorithm>
#include <bit>

namespace sphynx::crypto {

Tweaks::Tweaks(Block r) {
    Block sum = {};
    for (int bit = 0; bit < 64; ++bit, r = doubled(r)) {
        multiples_[bit] = r;
        steps_[bit] = sum ^= r;
    }
    first_[0] = {};
    for (std::size_t j = 1; j < kGroup; ++j)
        first_[j] = first_[j & (j - 1)] ^ multiples_[std::countr_zero(j)];
}

Block Tweaks::of(std::uint64_t index) const {
    Block tweak = {};
    for (; index != 0; index &= index - 1) tweak ^= multiples_[std::countr_zero(index)];
    return tweak;
}

void Tweaks::fill(std::uint64_t first, Block* out, std::size_t count) const {
    std::uint64_t group = first / kGroup;
    std::size_t skipped = first % kGroup;
    Block of_group = of(kGroup * group);
    for (std::size_t done = 0; done < count; skipped = 0) {
        const std::size_t taken = std::min(kGroup - skipped, count - done);
        if (taken == kGroup) {
            for (std::size_t j = 0; j < kGroup; ++j) out[done + j] = of_group ^ first_[j];
        } else {
            for (std::size_t j = 0; j < taken; ++j) out[done + j] = of_group ^ first_[skipped + j];
        }
        done += taken;
        if (done == count) return;  // the next group may be beyond the last index
        // From the last of this group to the first of the next.
        of_group ^= first_[kGroup - 1] ^ steps_[std::countr_zero(kGroup * ++group)];
    }
}

}  // namespace sphynx::crypto
