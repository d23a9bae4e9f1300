// All eight leaves in vectors of 256 bits; rotations by whole bytes are shuffles.
#if defined(__x86_64__)
#include "crypto/blake2s_x86.h"

namespace sphynx::crypto {
namespace {

struct Avx2Lanes : EightLanes {
    template <int n>
    [[gnu::always_inline]] static V rotated(V x) {
        if constexpr (n == 16) return shuffled(x, 2, 3, 0, 1);
        if constexpr (n == 8) return shuffled(x, 1, 2, 3, 0);
        return (x >> n) | (x << (32 - n));
    }

  private:
    [[gnu::always_inline]] static V shuffled(V x, int a, int b, int c, int d) {
        const int first = a | b << 8 | c << 16 | d << 24, step = 0x04040404;
        const __m128i places = _mm_setr_epi32(first, first + step, first + 2 * step, first + 3 * step);
        return (V)_mm256_shuffle_epi8((__m256i)x, _mm256_broadcastsi128_si256(places));
    }
};

}  // namespace

const Blake2spKernels& avx2_blake2sp() {
    static constexpr Blake2spKernels table = {"avx2", absorb_stripes<Avx2Lanes>};
    return table;
}

}  // namespace sphynx::crypto
#endif
