// AVX2: the transforms are the generic loops, which the compiler vectorises; products are written out,
// because it does not find vpmuldq for them. A 64-bit lane takes one product: even and odd coefficients go in
// separate vectors.
#include "rlwe/ntt.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include "rlwe/ntt_generic.h"

namespace sphynx::rlwe {
namespace {

__m256i load(const std::int32_t* from) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}

__m256i odd(__m256i x) {
    return _mm256_srli_epi64(x, 32);
}

// modulus.h's reduce_wide on 64-bit lanes, the result in their low halves; bit for bit the portable result.
class Reducer {
  public:
    explicit Reducer(const Modulus& modulus)
        : p_(_mm256_set1_epi64x(modulus.p())),
          two32_(_mm256_set1_epi64x(modulus.two32().value)),
          two32_quotient_(_mm256_set1_epi64x(modulus.two32().quotient)),
          half_(_mm256_set1_epi64x(std::int64_t{1} << (modulus.bits() - 1))),
          bits_(_mm_cvtsi32_si128(modulus.bits())) {}

    __m256i operator()(__m256i a) const {
        const __m256i rounded = _mm256_add_epi64(a, _mm256_set1_epi64x(std::int64_t{1} << 31));
        const __m256i high = _mm256_srli_epi64(rounded, 32);
        const __m256i low = _mm256_sub_epi64(a, _mm256_slli_epi64(high, 32));  // sign-extended: |low| <= 2^31
        const __m256i estimate = _mm256_mul_epi32(high, two32_quotient_);
        const __m256i quotient =
            _mm256_srli_epi64(_mm256_add_epi64(estimate, _mm256_set1_epi64x(std::int64_t{1} << 30)), 31);
        const __m256i product =
            _mm256_sub_epi32(_mm256_mul_epi32(high, two32_), _mm256_mul_epi32(quotient, p_));
        // AVX2 has no arithmetic 64-bit shift: shift a value made positive by 2^40, whose quotient leaves the
        // low half by wrapping when 2^40 >> bits is subtracted again.
        const __m256i offset = _mm256_set1_epi64x(std::int64_t{1} << 40);
        const __m256i steps =
            _mm256_sub_epi64(_mm256_srl_epi64(_mm256_add_epi64(_mm256_add_epi64(low, half_), offset), bits_),
                             _mm256_srl_epi64(offset, bits_));
        const __m256i centred = _mm256_sub_epi32(low, _mm256_mul_epi32(steps, p_));
        const __m256i sum = _mm256_add_epi32(product, centred);
        const __m256i last = _mm256_sra_epi32(_mm256_add_epi32(sum, half_), bits_);
        return _mm256_sub_epi32(sum, _mm256_mul_epi32(last, p_));
    }

    // Even and odd lanes reduced and put back in order.
    void store(__m256i even_sums, __m256i odd_sums, std::int32_t* to) const {
        const __m256i evens = (*this)(even_sums), odds = _mm256_slli_epi64((*this)(odd_sums), 32);
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm256_blend_epi32(evens, odds, 0xAA));
    }

  private:
    __m256i p_, two32_, two32_quotient_, half_;
    __m128i bits_;
};

void forward(std::int32_t* values, const NttTable& table) {
    generic::forward(values, table);
}

void inverse(std::int32_t* values, const NttTable& table) {
    generic::inverse(values, table);
}

void multiply_add(const std::int32_t* a, const std::int32_t* b, const Modulus& modulus, std::size_t count,
                  std::int32_t* sum) {
    const Reducer reduce(modulus);
    const __m256i one = _mm256_set1_epi64x(1);  // mul_epi32 by one extends the sign
    std::size_t j = 0;
    for (; j + 8 <= count; j += 8) {
        const __m256i x = load(a + j), y = load(b + j), z = load(sum + j);
        const __m256i evens = _mm256_add_epi64(_mm256_mul_epi32(x, y), _mm256_mul_epi32(z, one));
        const __m256i odds =
            _mm256_add_epi64(_mm256_mul_epi32(odd(x), odd(y)), _mm256_mul_epi32(odd(z), one));
        reduce.store(evens, odds, sum + j);
    }
    generic::multiply_add(a + j, b + j, modulus, count - j, sum + j);
}

void product_sum(const std::int32_t* weights, const std::int32_t* const* ciphertexts, std::size_t offset,
                 std::size_t count, const Modulus& modulus, std::int32_t* out0, std::int32_t* out1) {
    constexpr int kVectors = kBlock / 8;
    const Reducer reduce(modulus);
    const __m256i one = _mm256_set1_epi64x(1);
    for (std::size_t start = 0; start < count; start += kLazyProducts) {
        const std::size_t stop = count - start < kLazyProducts ? count : start + kLazyProducts;
        __m256i sums[2][kVectors][2];  // [half][vector][even, odd]
        for (int v = 0; v < kVectors; ++v) {
            for (int h = 0; h < 2; ++h) {
                const __m256i before =
                    start == 0 ? _mm256_setzero_si256() : load((h == 0 ? out0 : out1) + 8 * v);
                sums[h][v][0] = _mm256_mul_epi32(before, one);
                sums[h][v][1] = _mm256_mul_epi32(odd(before), one);
            }
        }
        for (std::size_t i = start; i < stop; ++i) {
            const std::int32_t* c = ciphertexts[i] + offset;
            for (int v = 0; v < kVectors; ++v) {
                const __m256i w = load(weights + i * kBlock + 8 * v), w_odd = odd(w);
                for (int h = 0; h < 2; ++h) {
                    const __m256i x = load(c + h * kBlock + 8 * v);
                    sums[h][v][0] = _mm256_add_epi64(sums[h][v][0], _mm256_mul_epi32(w, x));
                    sums[h][v][1] = _mm256_add_epi64(sums[h][v][1], _mm256_mul_epi32(w_odd, odd(x)));
                }
            }
        }
        for (int v = 0; v < kVectors; ++v) {
            reduce.store(sums[0][v][0], sums[0][v][1], out0 + 8 * v);
            reduce.store(sums[1][v][0], sums[1][v][1], out1 + 8 * v);
        }
    }
}

const Kernels kAvx2{"avx2", forward, inverse, multiply_add, product_sum};
}  // namespace

const Kernels& avx2_kernels() {
    return kAvx2;
}

}  // namespace sphynx::rlwe
#endif
