// AVX-512: sixteen draws at a time, of which those below the prime are put side by side.
#if defined(__x86_64__)
#include <immintrin.h>

#include "rlwe/sample.h"
#include "secret.h"

namespace sphynx::rlwe {

Taken take_uniform_avx512(const std::uint64_t* words, std::size_t draws, const Modulus& modulus,
                          std::size_t room, std::int32_t* out) {
    constexpr std::size_t lanes = 16;
    const __m512i p = _mm512_set1_epi32(modulus.p()), half = _mm512_set1_epi32(modulus.p() / 2),
                  mask = _mm512_set1_epi32((1 << modulus.bits()) - 1);
    Taken taken;
    for (; taken.draws + lanes <= draws && taken.kept + lanes <= room; taken.draws += lanes) {
        const __m512i draw = _mm512_and_si512(_mm512_loadu_si512(words + taken.draws / 2), mask);
        const __m512i over = _mm512_srai_epi32(_mm512_sub_epi32(half, draw), 31);
        const __m512i centred = _mm512_sub_epi32(draw, _mm512_and_si512(p, over));
        const __mmask16 kept = public_value(_mm512_cmplt_epi32_mask(draw, p));
        _mm512_storeu_si512(out + taken.kept, _mm512_maskz_compress_epi32(kept, centred));
        taken.kept += static_cast<std::size_t>(__builtin_popcount(kept));
    }
    return taken;
}

}  // namespace sphynx::rlwe
#endif
