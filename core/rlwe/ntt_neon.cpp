// The transforms of ntt.h in NEON: a butterfly is mul, sqrdmulh, mls, add, sub on four lanes. The two
// shortest layers de-interleave 16 values (ld4) so that they too work between whole vectors.
#include "rlwe/ntt.h"

#if defined(__aarch64__)
#include <arm_neon.h>

#include "rlwe/block_products.h"
#include "rlwe/ntt_generic.h"

namespace sphynx::rlwe {
namespace {

// Products are meant to wrap, which only unsigned lanes may.
SPHYNX_INLINE int32x4_t wrap_product(int32x4_t a, int32x4_t b) {
    return vreinterpretq_s32_u32(vmulq_u32(vreinterpretq_u32_s32(a), vreinterpretq_u32_s32(b)));
}
SPHYNX_INLINE int32x4_t wrap_subtract_product(int32x4_t a, int32x4_t b, int32x4_t c) {
    return vreinterpretq_s32_u32(
        vmlsq_u32(vreinterpretq_u32_s32(a), vreinterpretq_u32_s32(b), vreinterpretq_u32_s32(c)));
}

SPHYNX_INLINE int32x4_t mul(int32x4_t a, int32x4_t w, int32x4_t wq, int32x4_t p) {
    return wrap_subtract_product(wrap_product(a, w), vqrdmulhq_s32(a, wq), p);
}

// a - p * round(a / 2^bits); the shift count is a vector because bits is known at run time only.
SPHYNX_INLINE int32x4_t reduce(int32x4_t a, int32x4_t minus_bits, int32x4_t p) {
    return wrap_subtract_product(a, vrshlq_s32(a, minus_bits), p);
}

SPHYNX_INLINE void butterfly(int32x4_t& low, int32x4_t& high, int32x4_t w, int32x4_t wq, int32x4_t p) {
    const int32x4_t t = mul(high, w, wq, p);
    high = vsubq_s32(low, t);
    low = vaddq_s32(low, t);
}

SPHYNX_INLINE void inverse_butterfly(int32x4_t& low, int32x4_t& high, int32x4_t w, int32x4_t wq,
                                     int32x4_t p) {
    const int32x4_t difference = vsubq_s32(low, high);
    low = vaddq_s32(low, high);
    high = mul(difference, w, wq, p);
}

// Two forward layers at once, on four rows `quarter` apart: half the loads and stores.
template <bool kReduce>
SPHYNX_INLINE void forward_pair(std::int32_t* values, const NttTable& table, int blocks, int quarter,
                                int32x4_t p, int32x4_t minus_bits) {
    for (int block = 0; block < blocks; ++block) {
        const auto first = static_cast<std::size_t>(blocks + block);
        const int32x4_t w0 = vdupq_n_s32(table.root[first]), q0 = vdupq_n_s32(table.root_quotient[first]);
        const int32x4_t w1 = vdupq_n_s32(table.root[2 * first]),
                        q1 = vdupq_n_s32(table.root_quotient[2 * first]);
        const int32x4_t w2 = vdupq_n_s32(table.root[2 * first + 1]),
                        q2 = vdupq_n_s32(table.root_quotient[2 * first + 1]);
        std::int32_t* row = values + 4 * block * quarter;
        for (int j = 0; j < quarter; j += 4) {
            int32x4_t a = vld1q_s32(row + j), b = vld1q_s32(row + quarter + j);
            int32x4_t c = vld1q_s32(row + 2 * quarter + j), d = vld1q_s32(row + 3 * quarter + j);
            butterfly(a, c, w0, q0, p);
            butterfly(b, d, w0, q0, p);
            butterfly(a, b, w1, q1, p);
            butterfly(c, d, w2, q2, p);
            if (kReduce) {
                a = reduce(a, minus_bits, p);
                b = reduce(b, minus_bits, p);
                c = reduce(c, minus_bits, p);
                d = reduce(d, minus_bits, p);
            }
            vst1q_s32(row + j, a);
            vst1q_s32(row + quarter + j, b);
            vst1q_s32(row + 2 * quarter + j, c);
            vst1q_s32(row + 3 * quarter + j, d);
        }
    }
}

// The last two forward layers (distances 2 and 1) with the final reduction.
SPHYNX_INLINE void forward_tail(std::int32_t* values, const NttTable& table, int32x4_t p,
                                int32x4_t minus_bits) {
    const int n = table.n;
    for (int block = 0; block < n / 4; block += 4) {
        int32x4x4_t v = vld4q_s32(values + 4 * block);
        const int32x4_t w0 = vld1q_s32(&table.root[static_cast<std::size_t>(n / 4 + block)]);
        const int32x4_t q0 = vld1q_s32(&table.root_quotient[static_cast<std::size_t>(n / 4 + block)]);
        const int32x4x2_t w = vld2q_s32(&table.root[static_cast<std::size_t>(n / 2 + 2 * block)]);
        const int32x4x2_t q = vld2q_s32(&table.root_quotient[static_cast<std::size_t>(n / 2 + 2 * block)]);
        butterfly(v.val[0], v.val[2], w0, q0, p);
        butterfly(v.val[1], v.val[3], w0, q0, p);
        butterfly(v.val[0], v.val[1], w.val[0], q.val[0], p);
        butterfly(v.val[2], v.val[3], w.val[1], q.val[1], p);
        for (auto& lane : v.val) lane = reduce(lane, minus_bits, p);
        vst4q_s32(values + 4 * block, v);
    }
}

// One layer alone, for an odd number of layers (n = 8192).
SPHYNX_INLINE void forward_first(std::int32_t* values, const NttTable& table, int32x4_t p) {
    const int length = table.n / 2;
    const int32x4_t w = vdupq_n_s32(table.root[1]), q = vdupq_n_s32(table.root_quotient[1]);
    for (int j = 0; j < length; j += 4) {
        int32x4_t low = vld1q_s32(values + j), high = vld1q_s32(values + length + j);
        butterfly(low, high, w, q, p);
        vst1q_s32(values + j, low);
        vst1q_s32(values + length + j, high);
    }
}

void forward(std::int32_t* values, const NttTable& table) {
    const int32x4_t p = vdupq_n_s32(table.modulus.p()), minus_bits = vdupq_n_s32(-table.modulus.bits());
    int blocks = 1, layer = 0;
    if (__builtin_ctz(static_cast<unsigned>(table.n)) % 2 == 1) {
        forward_first(values, table, p);
        blocks = 2;
        layer = 1;
    }
    for (int quarter = table.n / blocks / 4; quarter >= 4; blocks *= 4, quarter /= 4, layer += 2) {
        if (layer + 2 == generic::forward_lazy_layers(table.n)) {
            forward_pair<true>(values, table, blocks, quarter, p, minus_bits);
        } else {
            forward_pair<false>(values, table, blocks, quarter, p, minus_bits);
        }
    }
    forward_tail(values, table, p, minus_bits);
}

// The first two inverse layers (distances 1 and 2).
SPHYNX_INLINE void inverse_head(std::int32_t* values, const NttTable& table, int32x4_t p,
                                int32x4_t minus_bits) {
    const int n = table.n;
    for (int block = 0; block < n / 4; block += 4) {
        int32x4x4_t v = vld4q_s32(values + 4 * block);
        const int32x4_t w0 = vld1q_s32(&table.inverse_root[static_cast<std::size_t>(n / 4 + block)]);
        const int32x4_t q0 = vld1q_s32(&table.inverse_root_quotient[static_cast<std::size_t>(n / 4 + block)]);
        const int32x4x2_t w = vld2q_s32(&table.inverse_root[static_cast<std::size_t>(n / 2 + 2 * block)]);
        const int32x4x2_t q =
            vld2q_s32(&table.inverse_root_quotient[static_cast<std::size_t>(n / 2 + 2 * block)]);
        inverse_butterfly(v.val[0], v.val[1], w.val[0], q.val[0], p);
        inverse_butterfly(v.val[2], v.val[3], w.val[1], q.val[1], p);
        inverse_butterfly(v.val[0], v.val[2], w0, q0, p);
        inverse_butterfly(v.val[1], v.val[3], w0, q0, p);
        v.val[0] = reduce(v.val[0], minus_bits, p);
        v.val[1] = reduce(v.val[1], minus_bits, p);
        vst4q_s32(values + 4 * block, v);
    }
}

// Two inverse layers at distances `quarter` and 2 `quarter`; sums of the second are reduced.
SPHYNX_INLINE void inverse_pair(std::int32_t* values, const NttTable& table, int blocks, int quarter,
                                int32x4_t p, int32x4_t minus_bits) {
    for (int block = 0; block < blocks; ++block) {
        const auto first = static_cast<std::size_t>(blocks + block);
        const int32x4_t w0 = vdupq_n_s32(table.inverse_root[first]),
                        q0 = vdupq_n_s32(table.inverse_root_quotient[first]);
        const int32x4_t w1 = vdupq_n_s32(table.inverse_root[2 * first]);
        const int32x4_t q1 = vdupq_n_s32(table.inverse_root_quotient[2 * first]);
        const int32x4_t w2 = vdupq_n_s32(table.inverse_root[2 * first + 1]);
        const int32x4_t q2 = vdupq_n_s32(table.inverse_root_quotient[2 * first + 1]);
        std::int32_t* row = values + 4 * block * quarter;
        for (int j = 0; j < quarter; j += 4) {
            int32x4_t a = vld1q_s32(row + j), b = vld1q_s32(row + quarter + j);
            int32x4_t c = vld1q_s32(row + 2 * quarter + j), d = vld1q_s32(row + 3 * quarter + j);
            inverse_butterfly(a, b, w1, q1, p);
            inverse_butterfly(c, d, w2, q2, p);
            inverse_butterfly(a, c, w0, q0, p);
            inverse_butterfly(b, d, w0, q0, p);
            vst1q_s32(row + j, reduce(a, minus_bits, p));
            vst1q_s32(row + quarter + j, reduce(b, minus_bits, p));
            vst1q_s32(row + 2 * quarter + j, c);
            vst1q_s32(row + 3 * quarter + j, d);
        }
    }
}

SPHYNX_INLINE void inverse_last(std::int32_t* values, const NttTable& table, int32x4_t p,
                                int32x4_t minus_bits) {
    const int half = table.n / 2;
    const int32x4_t a = vdupq_n_s32(table.n_inverse.value), aq = vdupq_n_s32(table.n_inverse.quotient);
    const int32x4_t b = vdupq_n_s32(table.n_inverse_root.value),
                    bq = vdupq_n_s32(table.n_inverse_root.quotient);
    for (int j = 0; j < half; j += 4) {
        const int32x4_t low = vld1q_s32(values + j), high = vld1q_s32(values + half + j);
        vst1q_s32(values + j, reduce(mul(vaddq_s32(low, high), a, aq, p), minus_bits, p));
        vst1q_s32(values + half + j, reduce(mul(vsubq_s32(low, high), b, bq, p), minus_bits, p));
    }
}

// One inverse layer alone, for the layer that pairs leave over before the last.
SPHYNX_INLINE void inverse_single(std::int32_t* values, const NttTable& table, int blocks, int length,
                                  int32x4_t p) {
    for (int block = 0; block < blocks; ++block) {
        const auto at = static_cast<std::size_t>(blocks + block);
        const int32x4_t w = vdupq_n_s32(table.inverse_root[at]),
                        q = vdupq_n_s32(table.inverse_root_quotient[at]);
        std::int32_t* row = values + 2 * block * length;
        for (int j = 0; j < length; j += 4) {
            int32x4_t low = vld1q_s32(row + j), high = vld1q_s32(row + length + j);
            inverse_butterfly(low, high, w, q, p);
            vst1q_s32(row + j, low);
            vst1q_s32(row + length + j, high);
        }
    }
}

void inverse(std::int32_t* values, const NttTable& table) {
    const int32x4_t p = vdupq_n_s32(table.modulus.p()), minus_bits = vdupq_n_s32(-table.modulus.bits());
    inverse_head(values, table, p, minus_bits);
    int quarter = 4;
    for (; table.n / quarter >= 8; quarter *= 4) {
        inverse_pair(values, table, table.n / quarter / 4, quarter, p, minus_bits);
    }
    if (quarter < table.n / 2) inverse_single(values, table, table.n / quarter / 2, quarter, p);
    inverse_last(values, table, p, minus_bits);
}

SPHYNX_INLINE int32x4_t reduce_wide(int64x2_t low_pair, int64x2_t high_pair, int32x4_t two32,
                                    int32x4_t two32_quotient, int32x4_t p, int32x4_t minus_bits) {
    const int32x4_t low = vcombine_s32(vmovn_s64(low_pair), vmovn_s64(high_pair));
    const int32x4_t high = vcombine_s32(vrshrn_n_s64(low_pair, 32), vrshrn_n_s64(high_pair, 32));
    return reduce(vaddq_s32(mul(high, two32, two32_quotient, p), reduce(low, minus_bits, p)), minus_bits, p);
}

void multiply_add(const std::int32_t* a, const std::int32_t* b, const Modulus& modulus, std::size_t count,
                  std::int32_t* sum) {
    const int32x4_t p = vdupq_n_s32(modulus.p()), minus_bits = vdupq_n_s32(-modulus.bits());
    const int32x4_t two32 = vdupq_n_s32(modulus.two32().value),
                    two32_quotient = vdupq_n_s32(modulus.two32().quotient);
    std::size_t j = 0;
    for (; j + 4 <= count; j += 4) {
        const int32x4_t x = vld1q_s32(a + j), y = vld1q_s32(b + j), z = vld1q_s32(sum + j);
        const int64x2_t low = vmlal_s32(vmovl_s32(vget_low_s32(z)), vget_low_s32(x), vget_low_s32(y));
        const int64x2_t high = vmlal_high_s32(vmovl_high_s32(z), x, y);
        vst1q_s32(sum + j, reduce_wide(low, high, two32, two32_quotient, p, minus_bits));
    }
    generic::multiply_add(a + j, b + j, modulus, count - j, sum + j);
}

class NeonLanes {
  public:
    static constexpr int kSums = 2;
    static constexpr int kVectors = kBlock / 4;
    struct Values {
        int32x4_t vector[kVectors];
    };
    struct Sums {
        int64x2_t pair[2 * kVectors];
    };

    explicit NeonLanes(const Modulus& modulus)
        : p_(vdupq_n_s32(modulus.p())),
          minus_bits_(vdupq_n_s32(-modulus.bits())),
          two32_(vdupq_n_s32(modulus.two32().value)),
          two32_quotient_(vdupq_n_s32(modulus.two32().quotient)) {}

    SPHYNX_MEMBER static Values load_values(const std::int32_t* values) {
        Values loaded;
        for (int v = 0; v < kVectors; ++v) loaded.vector[v] = vld1q_s32(values + 4 * v);
        return loaded;
    }
    SPHYNX_MEMBER static Sums begin(const std::int32_t* before) {
        Sums sums;
        for (int v = 0; v < kVectors; ++v) {
            const int32x4_t start = before == nullptr ? vdupq_n_s32(0) : vld1q_s32(before + 4 * v);
            sums.pair[2 * v] = vmovl_s32(vget_low_s32(start));
            sums.pair[2 * v + 1] = vmovl_high_s32(start);
        }
        return sums;
    }
    // Each distinct value stands for a run of lanes.
    template <int kDistinct>
    SPHYNX_MEMBER static void add(Sums& sums, const std::int32_t* weights, const Values& values) {
        for (int v = 0; v < kVectors; ++v) {
            const int32x4_t x = values.vector[v];
            int64x2_t &low = sums.pair[2 * v], &high = sums.pair[2 * v + 1];
            if constexpr (kDistinct == 16) {
                const int32x4_t w = vld1q_s32(weights + 4 * v);
                low = vmlal_s32(low, vget_low_s32(w), vget_low_s32(x));
                high = vmlal_high_s32(high, w, x);
            } else {
                low = vmlal_n_s32(low, vget_low_s32(x), weights[4 * v * kDistinct / kBlock]);
                high = vmlal_high_n_s32(high, x, weights[(4 * v + 2) * kDistinct / kBlock]);
            }
        }
    }
    SPHYNX_MEMBER void reduce(const Sums& sums, std::int32_t* out) const {
        for (int v = 0; v < kVectors; ++v)
            vst1q_s32(out + 4 * v, reduce_wide(sums.pair[2 * v], sums.pair[2 * v + 1], two32_,
                                               two32_quotient_, p_, minus_bits_));
    }

  private:
    int32x4_t p_, minus_bits_, two32_, two32_quotient_;
};

// The last four are plain loops: the compiler makes vectors of them.
const Kernels kNeon{"neon",
                    forward,
                    inverse,
                    multiply_add,
                    product_sums_of<NeonLanes>,
                    generic::add,
                    generic::subtract_multiply,
                    generic::multiply_wide,
                    generic::round};
}  // namespace

const Kernels& neon_kernels() {
    return kNeon;
}

}  // namespace sphynx::rlwe
#endif
