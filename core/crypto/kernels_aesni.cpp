// AES-NI with SSE4.1: one block per register.
#if defined(__x86_64__)
#include <immintrin.h>

#include "crypto/lanes.h"

namespace sphynx::crypto {
namespace {

struct AesniLane {
    using V = __m128i;
    static constexpr std::size_t kWidth = 1;
    using Side = AesniLane;

    struct Key {
        V round[11];
        explicit Key(const AesKey& key) {
            for (int i = 0; i < 11; ++i) round[i] = load(key.round_keys() + i);
        }
    };

    static V load(const Block* from) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)); }
    static void store(Block* to, V value) { _mm_storeu_si128(reinterpret_cast<__m128i*>(to), value); }

    static V counters(std::uint64_t high, std::uint64_t low) {
        return _mm_set_epi64x(static_cast<long long>(__builtin_bswap64(low)),
                              static_cast<long long>(__builtin_bswap64(high)));
    }

    static V xor_(V a, V b) { return _mm_xor_si128(a, b); }
    static V and_(V a, V b) { return _mm_and_si128(a, b); }
    static V broadcast(Block block) { return load(&block); }
    static V mixed(V x, V tweak) {
        const V high_only = _mm_set_epi64x(-1, 0);
        return _mm_xor_si128(_mm_shuffle_epi32(x, 0x4e), _mm_xor_si128(_mm_and_si128(x, high_only), tweak));
    }
    static void pin(V& value) { __asm__ volatile("" : "+x"(value)); }
    static void hand_over(V& to, V value) { pin(to = value); }
    static V from_side(V value) { return value; }
    static void forget(auto&) {}
    static V select(V mask, V a, V b) { return _mm_blendv_epi8(b, a, mask); }
    static V colour_mask(V x) { return _mm_srai_epi32(_mm_slli_epi32(_mm_shuffle_epi32(x, 0), 31), 31); }

    template <int n, class Work>
    [[gnu::always_inline]] static void rounds(const Key& key, V (&state)[n], const Work& work) {
        for (V& block : state) block = _mm_xor_si128(block, key.round[0]);
        unrolled<9>([&](auto round) __attribute__((always_inline)) {
            for (V& block : state) block = _mm_aesenc_si128(block, key.round[round + 1]);
            if constexpr (round < 8) work(round);
        });
        for (V& block : state) block = _mm_aesenclast_si128(block, key.round[10]);
    }
    template <class Work = NoWork>
    [[gnu::always_inline]] static void encrypt(const Key& key, V (&state)[8], const Work& work = {}) {
        rounds(key, state, work);
    }
    [[gnu::always_inline]] static void encrypt_each(const AesKey* keys, V (&state)[8]) {
        unrolled<8>([&](auto i) __attribute__((always_inline)) {
            state[i] = xor_(state[i], load(keys[i / 2].round_keys() + 0));
        });
        unrolled<9>([&](auto round) __attribute__((always_inline)) {
            unrolled<8>([&](auto i) __attribute__((always_inline)) {
                state[i] = _mm_aesenc_si128(state[i], load(keys[i / 2].round_keys() + round + 1));
            });
        });
        unrolled<8>([&](auto i) __attribute__((always_inline)) {
            state[i] = _mm_aesenclast_si128(state[i], load(keys[i / 2].round_keys() + 10));
        });
    }
};

// Word 0 of AESKEYGENASSIST is the substitution of word 1.
std::uint32_t substitute_word(std::uint32_t word) {
    const __m128i words = _mm_set1_epi32(static_cast<int>(word));
    return static_cast<std::uint32_t>(_mm_cvtsi128_si32(_mm_aeskeygenassist_si128(words, 0)));
}

}  // namespace

const SymmetricKernels& aesni_kernels() {
    static constexpr SymmetricKernels table = lane_kernels<AesniLane>("aesni", substitute_word);
    return table;
}

}  // namespace sphynx::crypto
#endif
