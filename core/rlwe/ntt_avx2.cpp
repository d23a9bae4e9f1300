// AVX2: eight butterflies at a time. The three shortest layers of the transforms work on eight blocks of eight
// values, transposed, so that butterflies are between whole vectors there too. Products are written out, because
// the compiler does not find vpmuldq for them: a 64-bit lane takes one product, so even and odd coefficients go in
// separate vectors.
#include "rlwe/ntt.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include "rlwe/block_products.h"
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

// modulus.h's multiply on eight 32-bit lanes.
__m256i multiply8(__m256i a, __m256i w, __m256i wq, __m256i p) {
    const __m256i half = _mm256_set1_epi64x(std::int64_t{1} << 30);
    const __m256i evens = _mm256_srli_epi64(_mm256_add_epi64(_mm256_mul_epi32(a, wq), half), 31);
    const __m256i odds = _mm256_slli_epi64(_mm256_add_epi64(_mm256_mul_epi32(odd(a), odd(wq)), half), 1);
    const __m256i quotient = _mm256_blend_epi32(evens, odds, 0xAA);
    return _mm256_sub_epi32(_mm256_mullo_epi32(a, w), _mm256_mullo_epi32(quotient, p));
}

void store(std::int32_t* to, __m256i x) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), x);
}

// modulus.h's reduction of a lazy value to a centred one.
class Centre {
  public:
    explicit Centre(const Modulus& modulus)
        : p_(_mm256_set1_epi32(modulus.p())),
          half_(_mm256_set1_epi32(1 << (modulus.bits() - 1))),
          bits_(_mm_cvtsi32_si128(modulus.bits())) {}

    __m256i operator()(__m256i x) const {
        const __m256i quotient = _mm256_sra_epi32(_mm256_add_epi32(x, half_), bits_);
        return _mm256_sub_epi32(x, _mm256_mullo_epi32(quotient, p_));
    }
    void all(std::int32_t* values, int n) const {
        for (int j = 0; j < n; j += 8) store(values + j, (*this)(load(values + j)));
    }

  private:
    __m256i p_, half_;
    __m128i bits_;
};

// A layer's butterflies at distances of eight and more: butterfly(low, high, w, wq) changes both vectors.
template <class Butterfly>
void long_layer(std::int32_t* values, const std::vector<std::int32_t>& root,
                const std::vector<std::int32_t>& quotient, int blocks, int length,
                const Butterfly& butterfly) {
    for (int block = 0; block < blocks; ++block) {
        const auto at = static_cast<std::size_t>(blocks + block);
        const __m256i w = _mm256_set1_epi32(root[at]), wq = _mm256_set1_epi32(quotient[at]);
        std::int32_t* const first = values + 2 * block * length;
        for (int j = 0; j < length; j += 8) {
            __m256i low = load(first + j), high = load(first + j + length);
            butterfly(low, high, w, wq);
            store(first + j, low);
            store(first + j + length, high);
        }
    }
}

// This and short_layer are inlined with constant indices, so that the eight vectors stay in registers between them.
SPHYNX_INLINE void transpose(__m256i (&v)[8]) {
    __m256i pairs[8], quads[8];
    for (int i = 0; i < 8; i += 2) {
        pairs[i] = _mm256_unpacklo_epi32(v[i], v[i + 1]);
        pairs[i + 1] = _mm256_unpackhi_epi32(v[i], v[i + 1]);
    }
    for (int i = 0; i < 8; i += 4) {
        quads[i] = _mm256_unpacklo_epi64(pairs[i], pairs[i + 2]);
        quads[i + 1] = _mm256_unpackhi_epi64(pairs[i], pairs[i + 2]);
        quads[i + 2] = _mm256_unpacklo_epi64(pairs[i + 1], pairs[i + 3]);
        quads[i + 3] = _mm256_unpackhi_epi64(pairs[i + 1], pairs[i + 3]);
    }
    for (int i = 0; i < 4; ++i) {
        v[i] = _mm256_permute2x128_si256(quads[i], quads[i + 4], 0x20);
        v[i + 4] = _mm256_permute2x128_si256(quads[i], quads[i + 4], 0x31);
    }
}

// A layer at distance 4, 2 or 1 for values 8 block .. 8 block + 63, in either direction: t[j] holds value j of eight
// blocks, and t[j] is paired with t[j + length]. A block has one root, then two, then four.
template <int kLength, class Butterfly>
SPHYNX_INLINE void short_layer(__m256i (&t)[8], const std::vector<std::int32_t>& root,
                               const std::vector<std::int32_t>& quotient, int block,
                               const Butterfly& butterfly) {
    constexpr int step = 4 / kLength;
    const int blocks = static_cast<int>(root.size()) / 7;
    const int first =
        (step - 1) * blocks + block * step;  // layers before have 1 + 2 + .. roots of each block
    for (int which = 0; which < step; ++which) {
        const __m256i w = load(root.data() + first + 8 * which),
                      wq = load(quotient.data() + first + 8 * which);
        for (int j = 0; j < kLength; ++j)
            butterfly(t[which * 2 * kLength + j], t[which * 2 * kLength + j + kLength], w, wq);
    }
}

void forward(std::int32_t* values, const NttTable& table) {
    const __m256i p = _mm256_set1_epi32(table.modulus.p());
    const Centre centre(table.modulus);
    const auto butterfly = [&](__m256i& low, __m256i& high, __m256i w, __m256i wq) {
        const __m256i t = multiply8(high, w, wq, p);
        high = _mm256_sub_epi32(low, t);
        low = _mm256_add_epi32(low, t);
    };
    int layer = 0;
    for (int blocks = 1, length = table.n / 2; length >= 8; blocks *= 2, length /= 2) {
        long_layer(values, table.root, table.root_quotient, blocks, length, butterfly);
        if (++layer == generic::forward_lazy_layers(table.n)) centre.all(values, table.n);
    }
    for (int block = 0; block < table.n / 8; block += 8) {
        __m256i t[8];
        for (int i = 0; i < 8; ++i) t[i] = load(values + 8 * (block + i));
        transpose(t);
        short_layer<4>(t, table.short_root, table.short_root_quotient, block, butterfly);
        short_layer<2>(t, table.short_root, table.short_root_quotient, block, butterfly);
        short_layer<1>(t, table.short_root, table.short_root_quotient, block, butterfly);
        for (auto& x : t) x = centre(x);
        transpose(t);
        for (int i = 0; i < 8; ++i) store(values + 8 * (block + i), t[i]);
    }
}

void inverse(std::int32_t* values, const NttTable& table) {
    const __m256i p = _mm256_set1_epi32(table.modulus.p());
    const Centre centre(table.modulus);
    // Sums are reduced in every second layer, those at distances 2, 8, 32, ...
    const auto butterfly = [&](__m256i& low, __m256i& high, __m256i w, __m256i wq) {
        const __m256i difference = _mm256_sub_epi32(low, high);
        low = _mm256_add_epi32(low, high);
        high = multiply8(difference, w, wq, p);
    };
    const auto reducing = [&](__m256i& low, __m256i& high, __m256i w, __m256i wq) {
        butterfly(low, high, w, wq);
        low = centre(low);
    };
    for (int block = 0; block < table.n / 8; block += 8) {
        __m256i t[8];
        for (int i = 0; i < 8; ++i) t[i] = load(values + 8 * (block + i));
        transpose(t);
        short_layer<1>(t, table.short_inverse_root, table.short_inverse_root_quotient, block, butterfly);
        short_layer<2>(t, table.short_inverse_root, table.short_inverse_root_quotient, block, reducing);
        short_layer<4>(t, table.short_inverse_root, table.short_inverse_root_quotient, block, butterfly);
        transpose(t);
        for (int i = 0; i < 8; ++i) store(values + 8 * (block + i), t[i]);
    }
    bool reduces = true;
    for (int length = 8, blocks = table.n / 16; blocks > 1; length *= 2, blocks /= 2, reduces = !reduces) {
        if (reduces)
            long_layer(values, table.inverse_root, table.inverse_root_quotient, blocks, length, reducing);
        else
            long_layer(values, table.inverse_root, table.inverse_root_quotient, blocks, length, butterfly);
    }
    const __m256i a = _mm256_set1_epi32(table.n_inverse.value),
                  aq = _mm256_set1_epi32(table.n_inverse.quotient);
    const __m256i b = _mm256_set1_epi32(table.n_inverse_root.value),
                  bq = _mm256_set1_epi32(table.n_inverse_root.quotient);
    for (int j = 0; j < table.n / 2; j += 8) {
        const __m256i low = load(values + j), high = load(values + j + table.n / 2);
        store(values + j, centre(multiply8(_mm256_add_epi32(low, high), a, aq, p)));
        store(values + j + table.n / 2, centre(multiply8(_mm256_sub_epi32(low, high), b, bq, p)));
    }
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

class Avx2Lanes {
  public:
    static constexpr int kSums = 2;
    static constexpr int kVectors = kBlock / 8;
    struct Values {
        __m256i evens[kVectors], odds[kVectors];  // lanes
    };
    using Sums = Values;  // 64-bit, of these lanes

    explicit Avx2Lanes(const Modulus& modulus) : reducer_(modulus) {}

    SPHYNX_MEMBER static Values load_values(const std::int32_t* values) {
        Values loaded;
        for (int v = 0; v < kVectors; ++v) {
            loaded.evens[v] = load(values + 8 * v);
            loaded.odds[v] = odd(loaded.evens[v]);
        }
        return loaded;
    }
    SPHYNX_MEMBER static Sums begin(const std::int32_t* before) {
        const __m256i one = _mm256_set1_epi64x(1);  // a product with it extends the sign
        Sums sums;
        for (int v = 0; v < kVectors; ++v) {
            const __m256i start = before == nullptr ? _mm256_setzero_si256() : load(before + 8 * v);
            sums.evens[v] = _mm256_mul_epi32(start, one);
            sums.odds[v] = _mm256_mul_epi32(odd(start), one);
        }
        return sums;
    }
    // Each distinct value stands for a run of lanes, which from two on is the same for odd ones.
    template <int kDistinct>
    SPHYNX_MEMBER static void add(Sums& sums, const std::int32_t* weights, const Values& values) {
        for (int v = 0; v < kVectors; ++v) {
            const __m256i w = spread<kDistinct>(weights, v);
            const __m256i w_odd = kDistinct == kBlock ? odd(w) : w;
            sums.evens[v] = _mm256_add_epi64(sums.evens[v], _mm256_mul_epi32(w, values.evens[v]));
            sums.odds[v] = _mm256_add_epi64(sums.odds[v], _mm256_mul_epi32(w_odd, values.odds[v]));
        }
    }
    SPHYNX_MEMBER void reduce(const Sums& sums, std::int32_t* out) const {
        for (int v = 0; v < kVectors; ++v) reducer_.store(sums.evens[v], sums.odds[v], out + 8 * v);
    }

  private:
    template <int kDistinct>
    SPHYNX_MEMBER static __m256i spread(const std::int32_t* weights, int vector) {
        if constexpr (kDistinct == 16) {
            return load(weights + 8 * vector);
        } else if constexpr (kDistinct == 8) {
            return _mm256_cvtepi32_epi64(
                _mm_loadu_si128(reinterpret_cast<const __m128i*>(weights + 4 * vector)));
        } else if constexpr (kDistinct == 4) {
            const std::int32_t* pair = weights + 2 * vector;
            return _mm256_set_epi64x(pair[1], pair[1], pair[0], pair[0]);
        } else {
            return _mm256_set1_epi32(weights[vector * kDistinct / 2]);
        }
    }

    Reducer reducer_;
};

// The last four are plain loops: the compiler makes vectors of them, for which the baseline has no 32-bit products.
const Kernels kAvx2{"avx2",
                    forward,
                    inverse,
                    multiply_add,
                    product_sums_of<Avx2Lanes>,
                    generic::add,
                    generic::subtract_multiply,
                    generic::multiply_wide,
                    generic::round};
}  // namespace

const Kernels& avx2_kernels() {
    return kAvx2;
}

}  // namespace sphynx::rlwe
#endif
