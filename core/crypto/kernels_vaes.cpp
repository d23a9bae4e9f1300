// VAES with AVX2: two blocks per register, twice the blocks per instruction of AES-NI.
#if defined(__x86_64__)
#include <immintrin.h>

#include "crypto/lanes.h"

namespace sphynx::crypto {
namespace {

struct VaesLane {
    using V = __m256i;
    static constexpr std::size_t kWidth = 2;
    using Side = VaesLane;

    struct Key {
        V round[11];
        explicit Key(const AesKey& key) {
            for (int i = 0; i < 11; ++i) {
                round[i] = _mm256_broadcastsi128_si256(
                    _mm_loadu_si128(reinterpret_cast<const __m128i*>(key.round_keys() + i)));
            }
        }
    };

    static V load(const Block* from) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)); }
    static void store(Block* to, V value) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), value); }

    static V counters(std::uint64_t high, std::uint64_t low) {
        const std::uint64_t next_low = low + 1;
        const std::uint64_t next_high = high + (next_low == 0);
        return _mm256_set_epi64x(static_cast<long long>(__builtin_bswap64(next_low)),
                                 static_cast<long long>(__builtin_bswap64(next_high)),
                                 static_cast<long long>(__builtin_bswap64(low)),
                                 static_cast<long long>(__builtin_bswap64(high)));
    }

    static V xor_(V a, V b) { return _mm256_xor_si256(a, b); }
    static V and_(V a, V b) { return _mm256_and_si256(a, b); }
    static V broadcast(Block block) {
        return _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(&block)));
    }
    static V mixed(V x, V tweak) {
        const V high_only = _mm256_set_epi64x(-1, 0, -1, 0);
        return _mm256_xor_si256(_mm256_shuffle_epi32(x, 0x4e),
                                _mm256_xor_si256(_mm256_and_si256(x, high_only), tweak));
    }
    static void pin(V& value) { __asm__ volatile("" : "+x"(value)); }
    static void hand_over(V& to, V value) { pin(to = value); }
    static V from_side(V value) { return value; }
    static void forget(auto&) {}
    static V select(V mask, V a, V b) { return _mm256_blendv_epi8(b, a, mask); }
    static V colour_mask(V x) {
        return _mm256_srai_epi32(_mm256_slli_epi32(_mm256_shuffle_epi32(x, 0), 31), 31);
    }

    template <int n, class Work>
    [[gnu::always_inline]] static void rounds(const Key& key, V (&state)[n], const Work& work) {
        for (V& block : state) block = _mm256_xor_si256(block, key.round[0]);
        unrolled<9>([&](auto round) __attribute__((always_inline)) {
            for (V& block : state) block = _mm256_aesenc_epi128(block, key.round[round + 1]);
            if constexpr (round < 8) work(round);
        });
        for (V& block : state) block = _mm256_aesenclast_epi128(block, key.round[10]);
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
                state[i] = _mm256_aesenc_epi128(state[i], broadcast(keys[i / 2].round_keys()[round + 1]));
            });
        });
        unrolled<8>([&](auto i) __attribute__((always_inline)) {
            state[i] = _mm256_aesenclast_epi128(state[i], broadcast(keys[i / 2].round_keys()[10]));
        });
    }
};

std::uint32_t substitute_word(std::uint32_t word) {
    const __m128i words = _mm_set1_epi32(static_cast<int>(word));
    return static_cast<std::uint32_t>(_mm_cvtsi128_si32(_mm_aeskeygenassist_si128(words, 0)));
}

}  // namespace

const SymmetricKernels& vaes_kernels() {
    static constexpr SymmetricKernels table = lane_kernels<VaesLane>("vaes", substitute_word);
    return table;
}

}  // namespace sphynx::crypto
#endif
