// VAES with AVX-512: four blocks per register.
#if defined(__x86_64__)
#include <immintrin.h>

#include "crypto/lanes.h"

namespace sphynx::crypto {
namespace {

struct Vaes512Lane {
    using V = __m512i;
    static constexpr std::size_t kWidth = 4;
    using Side = Vaes512Lane;

    static __m128i one(const Block* from) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)); }

    struct Key {
        V round[11];
        explicit Key(const AesKey& key) {
            for (int i = 0; i < 11; ++i) round[i] = broadcast(key.round_keys()[i]);
        }
    };

    static V load(const Block* from) { return _mm512_loadu_si512(from); }
    static void store(Block* to, V value) { _mm512_storeu_si512(to, value); }
    static V broadcast(Block block) { return _mm512_broadcast_i32x4(one(&block)); }

    static V counters(std::uint64_t high, std::uint64_t low) {
        long long words[8];
        for (std::uint64_t i = 0; i < 4; ++i) {
            words[2 * i] = static_cast<long long>(__builtin_bswap64(high + (low + i < low)));
            words[2 * i + 1] = static_cast<long long>(__builtin_bswap64(low + i));
        }
        return _mm512_set_epi64(words[7], words[6], words[5], words[4], words[3], words[2], words[1],
                                words[0]);
    }

    static V xor_(V a, V b) { return _mm512_xor_si512(a, b); }
    static V and_(V a, V b) { return _mm512_and_si512(a, b); }
    static V mixed(V x, V tweak) {
        const V swapped = _mm512_shuffle_epi32(x, _MM_PERM_BADC);
        return _mm512_ternarylogic_epi64(swapped, _mm512_maskz_mov_epi64(0xaa, x), tweak,
                                         0x96);  // the sum of three
    }
    static void pin(V& value) { __asm__ volatile("" : "+v"(value)); }
    static void hand_over(V& to, V value) { pin(to = value); }
    static V from_side(V value) { return value; }
    static void forget(auto&) {}
    static V select(V mask, V a, V b) { return _mm512_ternarylogic_epi64(mask, a, b, 0xca); }
    static V colour_mask(V x) {
        return _mm512_srai_epi32(_mm512_slli_epi32(_mm512_shuffle_epi32(x, _MM_PERM_AAAA), 31), 31);
    }

    template <int n, class Work>
    [[gnu::always_inline]] static void rounds(const Key& key, V (&state)[n], const Work& work) {
        for (V& block : state) block = xor_(block, key.round[0]);
        unrolled<9>([&](auto round) __attribute__((always_inline)) {
            for (V& block : state) block = _mm512_aesenc_epi128(block, key.round[round + 1]);
            if constexpr (round < 8) work(round);
        });
        for (V& block : state) block = _mm512_aesenclast_epi128(block, key.round[10]);
    }
    template <class Work = NoWork>
    [[gnu::always_inline]] static void encrypt(const Key& key, V (&state)[8], const Work& work = {}) {
        rounds(key, state, work);
    }
    [[gnu::always_inline]] static void encrypt_each(const AesKey* keys, V (&state)[8]) {
        unrolled<8>([&](auto i) __attribute__((always_inline)) {
            state[i] = xor_(state[i], broadcast(keys[i / 2].round_keys()[0]));
        });
        unrolled<9>([&](auto round) __attribute__((always_inline)) {
            unrolled<8>([&](auto i) __attribute__((always_inline)) {
                state[i] = _mm512_aesenc_epi128(state[i], broadcast(keys[i / 2].round_keys()[round + 1]));
            });
        });
        unrolled<8>([&](auto i) __attribute__((always_inline)) {
            state[i] = _mm512_aesenclast_epi128(state[i], broadcast(keys[i / 2].round_keys()[10]));
        });
    }
};

std::uint32_t substitute_word(std::uint32_t word) {
    const __m128i words = _mm_set1_epi32(static_cast<int>(word));
    return static_cast<std::uint32_t>(_mm_cvtsi128_si32(_mm_aeskeygenassist_si128(words, 0)));
}

}  // namespace

const SymmetricKernels& vaes512_kernels() {
    static constexpr SymmetricKernels table = lane_kernels<Vaes512Lane>("vaes512", substitute_word);
    return table;
}

}  // namespace sphynx::crypto
#endif
