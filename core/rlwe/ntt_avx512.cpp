// AVX-512: transforms, products and their sums on sixteen lanes, even and odd coefficients of products in separate
// vectors; all else as in AVX2.
#include "rlwe/ntt.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include "rlwe/block_products.h"
#include "rlwe/ntt_generic.h"
#include "rlwe/transform_avx512.h"

namespace sphynx::rlwe {

const Kernels& avx2_kernels();  // ntt_avx2.cpp

namespace {

class Avx512Lanes {
  public:
    static constexpr int kSums = 8;
    struct Values {
        __m512i evens, odds;  // lanes
    };
    using Sums = Values;  // 64-bit, of these lanes

    explicit Avx512Lanes(const Modulus& modulus)
        : p_(_mm512_set1_epi64(modulus.p())),
          two32_(_mm512_set1_epi64(modulus.two32().value)),
          two32_quotient_(_mm512_set1_epi64(modulus.two32().quotient)),
          half_(_mm512_set1_epi64(std::int64_t{1} << (modulus.bits() - 1))),
          bits_(_mm_cvtsi32_si128(modulus.bits())) {}

    SPHYNX_MEMBER static Values load_values(const std::int32_t* values) {
        const __m512i loaded = _mm512_loadu_si512(values);
        return {loaded, _mm512_srli_epi64(loaded, 32)};
    }
    SPHYNX_MEMBER static Sums begin(const std::int32_t* before) {
        if (before == nullptr) return {_mm512_setzero_si512(), _mm512_setzero_si512()};
        const __m512i start = _mm512_loadu_si512(before);
        return {_mm512_srai_epi64(_mm512_slli_epi64(start, 32), 32), _mm512_srai_epi64(start, 32)};
    }
    // Each distinct value stands for a run of lanes, which from two on is the same for odd ones.
    template <int kDistinct>
    SPHYNX_MEMBER static void add(Sums& sums, const std::int32_t* weights, const Values& values) {
        const __m512i w = spread<kDistinct>(weights);
        const __m512i w_odd = kDistinct == kBlock ? _mm512_srli_epi64(w, 32) : w;
        sums.evens = _mm512_add_epi64(sums.evens, _mm512_mul_epi32(w, values.evens));
        sums.odds = _mm512_add_epi64(sums.odds, _mm512_mul_epi32(w_odd, values.odds));
    }
    SPHYNX_MEMBER void reduce(const Sums& sums, std::int32_t* out) const {
        const __m512i odds = _mm512_slli_epi64(centre(sums.odds), 32);
        _mm512_storeu_si512(out, _mm512_mask_blend_epi32(0xAAAA, centre(sums.evens), odds));
    }

  private:
    template <int kDistinct>
    SPHYNX_MEMBER static __m512i spread(const std::int32_t* weights) {
        if constexpr (kDistinct == 16) {
            return _mm512_loadu_si512(weights);
        } else if constexpr (kDistinct == 8) {
            return _mm512_cvtepi32_epi64(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(weights)));
        } else if constexpr (kDistinct == 4) {
            const __m128i four = _mm_loadu_si128(reinterpret_cast<const __m128i*>(weights));
            return _mm512_permutexvar_epi32(_mm512_set_epi32(3, 3, 3, 3, 2, 2, 2, 2, 1, 1, 1, 1, 0, 0, 0, 0),
                                            _mm512_castsi128_si512(four));
        } else if constexpr (kDistinct == 2) {
            return _mm512_mask_set1_epi32(_mm512_set1_epi32(weights[0]), 0xFF00, weights[1]);
        } else {
            return _mm512_set1_epi32(weights[0]);
        }
    }

    // modulus.h's reduce_wide on 64-bit lanes, the result in their low halves; bit for bit the portable result.
    SPHYNX_MEMBER __m512i centre(__m512i a) const {
        const __m512i high =
            _mm512_srli_epi64(_mm512_add_epi64(a, _mm512_set1_epi64(std::int64_t{1} << 31)), 32);
        const __m512i low = _mm512_sub_epi64(a, _mm512_slli_epi64(high, 32));  // sign-extended: |low| <= 2^31
        const __m512i estimate = _mm512_mul_epi32(high, two32_quotient_);
        const __m512i quotient =
            _mm512_srli_epi64(_mm512_add_epi64(estimate, _mm512_set1_epi64(std::int64_t{1} << 30)), 31);
        const __m512i product =
            _mm512_sub_epi32(_mm512_mul_epi32(high, two32_), _mm512_mul_epi32(quotient, p_));
        const __m512i steps = _mm512_sra_epi64(_mm512_add_epi64(low, half_), bits_);
        const __m512i sum = _mm512_add_epi32(product, _mm512_sub_epi32(low, _mm512_mul_epi32(steps, p_)));
        const __m512i last = _mm512_sra_epi32(_mm512_add_epi32(sum, half_), bits_);
        return _mm512_sub_epi32(sum, _mm512_mul_epi32(last, p_));
    }

    __m512i p_, two32_, two32_quotient_, half_;
    __m128i bits_;
};

void forward(std::int32_t* values, const NttTable& table) {
    (table.n < avx512::kMinTransform ? avx2_kernels().forward : avx512::forward)(values, table);
}

void inverse(std::int32_t* values, const NttTable& table) {
    (table.n < avx512::kMinTransform ? avx2_kernels().inverse : avx512::inverse)(values, table);
}

void multiply_add(const std::int32_t* a, const std::int32_t* b, const Modulus& modulus, std::size_t count,
                  std::int32_t* sum) {
    const Avx512Lanes lanes(modulus);
    const std::size_t whole = count / kBlock * kBlock;
    for (std::size_t j = 0; j < whole; j += kBlock) {
        auto sums = Avx512Lanes::begin(sum + j);
        Avx512Lanes::add<kBlock>(sums, a + j, Avx512Lanes::load_values(b + j));
        lanes.reduce(sums, sum + j);
    }
    generic::multiply_add(a + whole, b + whole, modulus, count - whole, sum + whole);
}

Kernels with_wider_lanes(Kernels kernels) {
    kernels.name = "avx512";
    kernels.forward = forward;
    kernels.inverse = inverse;
    kernels.multiply_add = multiply_add;
    kernels.subtract_multiply = generic::subtract_multiply;
    kernels.multiply_wide = generic::multiply_wide;
    kernels.round = generic::round;
    kernels.product_sums = product_sums_of<Avx512Lanes>;
    return kernels;
}

}  // namespace

const Kernels& avx512_kernels() {
    static const Kernels kernels = with_wider_lanes(avx2_kernels());
    return kernels;
}

}  // namespace sphynx::rlwe
#endif
