// A lane's side work (lanes.h) in general registers, a block as two words, and the hand-over through memory.
#pragma once

#include "crypto/hash.h"

namespace sphynx::crypto {

struct GeneralRegisters {
    using V = Block;

    // With the address in one register the two words move as a pair.
    [[gnu::always_inline]] static V load(const Block* from) {
        __asm__("" : "+r"(from));
        return *from;
    }
    [[gnu::always_inline]] static void store(Block* to, V value) {
        __asm__("" : "+r"(to));
        *to = value;
    }

    [[gnu::always_inline]] static V counters(std::uint64_t high, std::uint64_t low) {
        return {__builtin_bswap64(high), __builtin_bswap64(low)};
    }

    [[gnu::always_inline]] static V xor_(V a, V b) { return a ^ b; }
    [[gnu::always_inline]] static V and_(V a, V b) { return a & b; }
    [[gnu::always_inline]] static V broadcast(Block block) { return block; }
    [[gnu::always_inline]] static V mixed(V x, V tweak) { return sigma(x) ^ tweak; }
    [[gnu::always_inline]] static V colour_mask(V x) { return mask_of(x.lo); }
    [[gnu::always_inline]] static void pin(V& value) {
        __asm__ volatile("" : "+r"(value.lo), "+r"(value.hi));
    }
    // In memory from here on: a move between register files would be a vector instruction again.
    [[gnu::always_inline]] static void hand_over(V& to, V value) {
        to = value;
        __asm__ volatile("" : "+m"(to));
    }
    [[gnu::always_inline]] static void forget(auto& handed_over) {
        zeroise(&handed_over, sizeof handed_over);
    }
};

}  // namespace sphynx::crypto
