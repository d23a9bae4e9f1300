// Sixteen butterflies at a time, two layers in a pass over the values. The four shortest layers work on sixteen blocks
// of eight values, eight in either half of a vector: at distance 8 between blocks, then transposed within the halves, so
// that butterflies are between whole vectors there too.
#include "rlwe/transform_avx512.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include "rlwe/ntt_generic.h"

namespace sphynx::rlwe::avx512 {
namespace {

using Table = std::vector<std::int32_t>;

SPHYNX_INLINE __m512i load(const std::int32_t* from) {
    return _mm512_loadu_si512(from);
}

SPHYNX_INLINE void store(std::int32_t* to, __m512i x) {
    _mm512_storeu_si512(to, x);
}

SPHYNX_INLINE __m512i odd(__m512i x) {
    return _mm512_srli_epi64(x, 32);
}

struct Root {
    __m512i value, quotient, odd_quotient;
};

SPHYNX_INLINE Root everywhere(std::int32_t value, std::int32_t quotient) {
    const __m512i q = _mm512_set1_epi32(quotient);
    return {_mm512_set1_epi32(value), q, q};
}

SPHYNX_INLINE Root root_at(const Table& value, const Table& quotient, int at) {
    return everywhere(value[static_cast<std::size_t>(at)], quotient[static_cast<std::size_t>(at)]);
}

SPHYNX_INLINE __m512i halves(const std::int32_t* low, const std::int32_t* high) {
    const __m256i first = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(low));
    return _mm512_inserti64x4(_mm512_castsi256_si512(first),
                              _mm256_loadu_si256(reinterpret_cast<const __m256i*>(high)), 1);
}

// One root for the low half, another one for the high half.
SPHYNX_INLINE Root root_of_halves(const Table& value, const Table& quotient, int low, int high) {
    const auto both = [low, high](const Table& from) {
        return _mm512_mask_set1_epi32(_mm512_set1_epi32(from[static_cast<std::size_t>(low)]), 0xFF00,
                                      from[static_cast<std::size_t>(high)]);
    };
    const __m512i q = both(quotient);
    return {both(value), q, q};
}

// modulus.h's arithmetic on sixteen lanes.
class Lanes {
  public:
    explicit Lanes(const Modulus& modulus)
        : p_(_mm512_set1_epi32(modulus.p())),
          half_(_mm512_set1_epi32(1 << (modulus.bits() - 1))),
          rounding_(_mm512_set1_epi64(std::int64_t{1} << 30)),
          bits_(_mm_cvtsi32_si128(modulus.bits())) {}

    SPHYNX_MEMBER __m512i multiply(__m512i a, const Root& root) const {
        const __m512i even_products = _mm512_mul_epi32(a, root.quotient);
        const __m512i odd_products = _mm512_mul_epi32(odd(a), root.odd_quotient);
        const __m512i evens = _mm512_srli_epi64(_mm512_add_epi64(even_products, rounding_), 31);
        const __m512i odds = _mm512_slli_epi64(_mm512_add_epi64(odd_products, rounding_), 1);
        const __m512i quotient = _mm512_mask_blend_epi32(0xAAAA, evens, odds);
        return _mm512_sub_epi32(_mm512_mullo_epi32(a, root.value), _mm512_mullo_epi32(quotient, p_));
    }
    SPHYNX_MEMBER __m512i centre(__m512i x) const {
        const __m512i quotient = _mm512_sra_epi32(_mm512_add_epi32(x, half_), bits_);
        return _mm512_sub_epi32(x, _mm512_mullo_epi32(quotient, p_));
    }
    SPHYNX_MEMBER void forward(__m512i& low, __m512i& high, const Root& root) const {
        const __m512i t = multiply(high, root);
        high = _mm512_sub_epi32(low, t);
        low = _mm512_add_epi32(low, t);
    }
    template <bool kReduces>
    SPHYNX_MEMBER void inverse(__m512i& low, __m512i& high, const Root& root) const {
        const __m512i difference = _mm512_sub_epi32(low, high);
        low = _mm512_add_epi32(low, high);
        if constexpr (kReduces) low = centre(low);
        high = multiply(difference, root);
    }

  private:
    __m512i p_, half_, rounding_;
    __m128i bits_;
};

// Transposes eight vectors of eight lanes, in either half.
SPHYNX_INLINE void transpose(__m512i (&v)[8]) {
    const __m512i firsts = _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13),
                  seconds = _mm512_setr_epi64(2, 3, 10, 11, 6, 7, 14, 15);
    __m512i pairs[8], quads[8];
    for (int i = 0; i < 8; i += 2) {
        pairs[i] = _mm512_unpacklo_epi32(v[i], v[i + 1]);
        pairs[i + 1] = _mm512_unpackhi_epi32(v[i], v[i + 1]);
    }
    for (int i = 0; i < 8; i += 4) {
        quads[i] = _mm512_unpacklo_epi64(pairs[i], pairs[i + 2]);
        quads[i + 1] = _mm512_unpackhi_epi64(pairs[i], pairs[i + 2]);
        quads[i + 2] = _mm512_unpacklo_epi64(pairs[i + 1], pairs[i + 3]);
        quads[i + 3] = _mm512_unpackhi_epi64(pairs[i + 1], pairs[i + 3]);
    }
    for (int i = 0; i < 4; ++i) {
        v[i] = _mm512_permutex2var_epi64(quads[i], firsts, quads[i + 4]);
        v[i + 4] = _mm512_permutex2var_epi64(quads[i], seconds, quads[i + 4]);
    }
}

// A layer at distance 4, 2 or 1 of sixteen blocks of eight values from `block` on; t[j] holds value j of each.
template <int kLength, class Butterfly>
SPHYNX_INLINE void short_layer(__m512i (&t)[8], const Table& root, const Table& quotient, int block,
                               const Butterfly& butterfly) {
    constexpr int step = 4 / kLength;
    const int blocks = static_cast<int>(root.size()) / 7;
    const int first = (step - 1) * blocks + block * step;  // ntt.h, short_root
    for (int which = 0; which < step; ++which) {
        const int low = first + 8 * which, high = low + 8 * step;
        const __m512i q = halves(quotient.data() + low, quotient.data() + high);
        const Root own{halves(root.data() + low, root.data() + high), q, odd(q)};
        for (int j = 0; j < kLength; ++j)
            butterfly(t[which * 2 * kLength + j], t[which * 2 * kLength + j + kLength], own);
    }
}

SPHYNX_INLINE void load_blocks(const std::int32_t* from, __m512i (&t)[8]) {
    for (int i = 0; i < 8; ++i) t[i] = halves(from + 8 * i, from + 64 + 8 * i);
}

SPHYNX_INLINE void store_blocks(const __m512i (&t)[8], std::int32_t* to) {
    for (int i = 0; i < 8; ++i) {
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + 8 * i), _mm512_castsi512_si256(t[i]));
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + 64 + 8 * i), _mm512_extracti64x4_epi64(t[i], 1));
    }
}

// The layer at `length`, and that at half of it, in one pass.
template <bool kReduces>
void forward_pair(std::int32_t* values, const NttTable& table, const Lanes& lanes, int blocks, int length) {
    const int quarter = length / 2;
    for (int block = 0; block < blocks; ++block) {
        const Root outer = root_at(table.root, table.root_quotient, blocks + block),
                   low = root_at(table.root, table.root_quotient, 2 * (blocks + block)),
                   high = root_at(table.root, table.root_quotient, 2 * (blocks + block) + 1);
        std::int32_t* const first = values + 2 * block * length;
        for (std::int32_t* at = first; at < first + quarter; at += 16) {
            __m512i x[4];
            for (int i = 0; i < 4; ++i) x[i] = load(at + i * quarter);
            lanes.forward(x[0], x[2], outer);
            lanes.forward(x[1], x[3], outer);
            lanes.forward(x[0], x[1], low);
            lanes.forward(x[2], x[3], high);
            for (int i = 0; i < 4; ++i) store(at + i * quarter, kReduces ? lanes.centre(x[i]) : x[i]);
        }
    }
}

// The layer at `length`, whose sums are not reduced, and that at twice as much, whose are.
void inverse_pair(std::int32_t* values, const NttTable& table, const Lanes& lanes, int blocks, int length) {
    for (int block = 0; block < blocks / 2; ++block) {
        const Root low = root_at(table.inverse_root, table.inverse_root_quotient, blocks + 2 * block),
                   high = root_at(table.inverse_root, table.inverse_root_quotient, blocks + 2 * block + 1),
                   outer = root_at(table.inverse_root, table.inverse_root_quotient, blocks / 2 + block);
        std::int32_t* const first = values + 4 * block * length;
        for (std::int32_t* at = first; at < first + length; at += 16) {
            __m512i x[4];
            for (int i = 0; i < 4; ++i) x[i] = load(at + i * length);
            lanes.inverse<false>(x[0], x[1], low);
            lanes.inverse<false>(x[2], x[3], high);
            lanes.inverse<true>(x[0], x[2], outer);
            lanes.inverse<true>(x[1], x[3], outer);
            for (int i = 0; i < 4; ++i) store(at + i * length, x[i]);
        }
    }
}

// The last layer of all, scaled by 1/n, and where `with_one_before` that at half of its distance before it.
template <bool kWithOneBefore>
void inverse_end(std::int32_t* values, const NttTable& table, const Lanes& lanes) {
    const Root sums = everywhere(table.n_inverse.value, table.n_inverse.quotient),
               differences = everywhere(table.n_inverse_root.value, table.n_inverse_root.quotient),
               low = root_at(table.inverse_root, table.inverse_root_quotient, 2),
               high = root_at(table.inverse_root, table.inverse_root_quotient, 3);
    const int quarter = table.n / 4;
    for (std::int32_t* at = values; at < values + quarter; at += 16) {
        __m512i x[4];
        for (int i = 0; i < 4; ++i) x[i] = load(at + i * quarter);
        if constexpr (kWithOneBefore) {
            lanes.inverse<false>(x[0], x[1], low);
            lanes.inverse<false>(x[2], x[3], high);
        }
        for (int i = 0; i < 2; ++i) {
            const __m512i sum = _mm512_add_epi32(x[i], x[i + 2]),
                          difference = _mm512_sub_epi32(x[i], x[i + 2]);
            store(at + i * quarter, lanes.centre(lanes.multiply(sum, sums)));
            store(at + (i + 2) * quarter, lanes.centre(lanes.multiply(difference, differences)));
        }
    }
}

void forward_short(std::int32_t* values, const NttTable& table, const Lanes& lanes) {
    const auto butterfly = [&lanes](__m512i& low, __m512i& high, const Root& root) {
        lanes.forward(low, high, root);
    };
    for (int block = 0; block < table.n / 8; block += 16) {
        __m512i t[8];
        load_blocks(values + 8 * block, t);
        const int at = table.n / 16 + block / 2;
        for (int i = 0; i < 4; ++i)
            butterfly(t[2 * i], t[2 * i + 1],
                      root_of_halves(table.root, table.root_quotient, at + i, at + 4 + i));
        transpose(t);
        short_layer<4>(t, table.short_root, table.short_root_quotient, block, butterfly);
        short_layer<2>(t, table.short_root, table.short_root_quotient, block, butterfly);
        short_layer<1>(t, table.short_root, table.short_root_quotient, block, butterfly);
        for (auto& x : t) x = lanes.centre(x);
        transpose(t);
        store_blocks(t, values + 8 * block);
    }
}

void inverse_short(std::int32_t* values, const NttTable& table, const Lanes& lanes) {
    const Table &root = table.inverse_root, &quotient = table.inverse_root_quotient;
    const auto butterfly = [&lanes](__m512i& low, __m512i& high, const Root& own) {
        lanes.inverse<false>(low, high, own);
    };
    const auto reducing = [&lanes](__m512i& low, __m512i& high, const Root& own) {
        lanes.inverse<true>(low, high, own);
    };
    for (int block = 0; block < table.n / 8; block += 16) {
        __m512i t[8];
        load_blocks(values + 8 * block, t);
        transpose(t);
        short_layer<1>(t, table.short_inverse_root, table.short_inverse_root_quotient, block, butterfly);
        short_layer<2>(t, table.short_inverse_root, table.short_inverse_root_quotient, block, reducing);
        short_layer<4>(t, table.short_inverse_root, table.short_inverse_root_quotient, block, butterfly);
        transpose(t);
        const int at = table.n / 16 + block / 2;
        for (int i = 0; i < 4; ++i)
            reducing(t[2 * i], t[2 * i + 1], root_of_halves(root, quotient, at + i, at + 4 + i));
        store_blocks(t, values + 8 * block);
    }
}

}  // namespace

void forward(std::int32_t* values, const NttTable& table) {
    const Lanes lanes(table.modulus);
    int layer = 0, blocks = 1, length = table.n / 2;
    if (__builtin_ctz(static_cast<unsigned>(table.n)) % 2 !=
        0) {  // an odd number of layers down to distance 16
        const Root root = root_at(table.root, table.root_quotient, 1);
        for (std::int32_t* at = values; at < values + length; at += 16) {
            __m512i low = load(at), high = load(at + length);
            lanes.forward(low, high, root);
            store(at, low);
            store(at + length, high);
        }
        layer = 1, blocks = 2, length /= 2;
    }
    for (; length >= 32; blocks *= 4, length /= 4) {
        layer += 2;
        if (layer == generic::forward_lazy_layers(table.n))
            forward_pair<true>(values, table, lanes, blocks, length);
        else
            forward_pair<false>(values, table, lanes, blocks, length);
    }
    forward_short(values, table, lanes);
}

void inverse(std::int32_t* values, const NttTable& table) {
    const Lanes lanes(table.modulus);
    inverse_short(values, table, lanes);
    int length = 16, blocks = table.n / 32;
    for (; blocks >= 4; blocks /= 4, length *= 4) inverse_pair(values, table, lanes, blocks, length);
    if (blocks == 2)
        inverse_end<true>(values, table, lanes);
    else
        inverse_end<false>(values, table, lanes);
}

}  // namespace sphynx::rlwe::avx512
#endif
