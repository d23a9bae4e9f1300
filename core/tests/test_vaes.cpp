// The loops for VAES on a CPU that has AES-NI and AVX2 only: its instructions, two blocks at a time, are made of
// AES-NI's. Everything else is the file that ships, held against the portable path. Emulators are no help: QEMU 7.2
// takes the bytes of the lower block for both.
#if defined(__x86_64__)
#include <immintrin.h>

namespace {

template <class Round>
__m256i for_each_block(__m256i state, __m256i key, const Round& round) {
    const __m128i low = round(_mm256_castsi256_si128(state), _mm256_castsi256_si128(key));
    const __m128i high = round(_mm256_extracti128_si256(state, 1), _mm256_extracti128_si256(key, 1));
    return _mm256_set_m128i(high, low);
}
__m256i two_rounds(__m256i state, __m256i key) {
    return for_each_block(state, key, [](__m128i x, __m128i k) { return _mm_aesenc_si128(x, k); });
}
__m256i two_last_rounds(__m256i state, __m256i key) {
    return for_each_block(state, key, [](__m128i x, __m128i k) { return _mm_aesenclast_si128(x, k); });
}

}  // namespace

#define _mm256_aesenc_epi128 two_rounds
#define _mm256_aesenclast_epi128 two_last_rounds
#define vaes_kernels vaes_kernels_of_aesni
#include "crypto/kernels_vaes.cpp"

#include <cstring>
#include <random>
#include <vector>

#include "check.h"
#include "cpu.h"

using namespace sphynx;
using namespace sphynx::crypto;

namespace {

using Blocks = std::vector<Block>;
constexpr std::uint64_t kBeforeWrap = ~std::uint64_t{0} - 8;  // a counter that wraps on the way

Blocks random_blocks(std::size_t count, unsigned seed) {
    std::mt19937_64 generator(seed);
    Blocks blocks(count);
    for (Block& block : blocks) block = {generator(), generator()};
    return blocks;
}

std::vector<Blocks> streams(const SymmetricKernels& kernels, std::size_t count) {
    std::vector<AesKey> keys;
    for (std::uint64_t key = 0; key < 16; ++key) keys.emplace_back(Block{key, 2});
    const Block counter{__builtin_bswap64(41), __builtin_bswap64(kBeforeWrap)};
    const Blocks in = random_blocks(count, 1), tweaks = random_blocks(count, 3);
    Blocks encrypted(count), drawn(count), hashed(count), bit0 = in, bit1 = random_blocks(count, 2),
                                                          total(count), rows(4 * count), all(count);
    kernels.encrypt(keys[0], in.data(), encrypted.data(), count);
    kernels.counter_stream(keys[0], counter, drawn.data(), count);
    kernels.hash(keys[0], in.data(), tweaks.data(), hashed.data(), count);
    kernels.sum_four_streams(keys.data(), counter, bit0.data(), bit1.data(), total.data(), count);
    kernels.sum_sixteen_streams(keys.data(), counter, rows.data(), all.data(), count);
    return {encrypted, drawn, hashed, bit0, bit1, total, rows, all};
}

std::vector<Blocks> gates(const SymmetricKernels& kernels, std::size_t count) {
    const AesKey key({1, 2});
    std::vector<Blocks> rows;
    for (unsigned row = 0; row < 6; ++row) rows.push_back(random_blocks(count, row));
    // Of A and B, by one difference for all instances.
    const Blocks tweaks_a = random_blocks(count, 6);
    Blocks tweaks_b = tweaks_a;
    for (Block& tweak : tweaks_b) tweak = tweak ^ Block { 0x76543, 21 };
    const AndTweaks tweaks{tweaks_a.data(), tweaks_b.data()};
    Blocks sum(count), garbler(count), evaluator(count), out(count), seen_sum(count), seen(count);
    AndOperands in{rows[0].data(), rows[1].data(), rows[2].data(), rows[3].data(),
                   rows[4].data(), rows[5].data(), sum.data()};
    kernels.garble_and(key, {0x1234567, 89}, tweaks, in, garbler, evaluator, out);
    in.sum = seen_sum.data();
    kernels.evaluate_and(key, tweaks, in, garbler, evaluator, seen);
    return {sum, garbler, evaluator, out, seen_sum, seen};
}

}  // namespace

int main() {
    if (!hardware_features().aesni || !hardware_features().avx2) return 0;
    const SymmetricKernels& emulated = vaes_kernels_of_aesni();
    CHECK(std::strcmp(emulated.name, "vaes") == 0);
    for (const std::size_t count : {0, 1, 2, 3, 4, 5, 7, 15, 16, 17, 31, 32, 33, 64, 100}) {
        CHECK(streams(emulated, count) == streams(portable_kernels(), count));
        CHECK(gates(emulated, count) == gates(portable_kernels(), count));
    }
    for (const std::uint32_t word : {0u, 1u, 0x01234567u, 0x89abcdefu, ~0u})
        CHECK(emulated.substitute_word(word) == portable_kernels().substitute_word(word));
    return test_result();
}
#else
int main() {
    return 0;
}
#endif
