// Every kernel of every path against schoolbook arithmetic and against the portable path, bit for bit.
#include "rlwe/ntt.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "check.h"
#include "cpu.h"

using namespace sphynx::rlwe;

namespace {

std::vector<std::int32_t> random_residues(std::mt19937& generator, const Modulus& modulus, int n) {
    std::vector<std::int32_t> values(static_cast<std::size_t>(n));
    for (auto& v : values)
        v = static_cast<std::int32_t>(generator() % static_cast<unsigned>(modulus.p())) - modulus.p() / 2;
    return values;
}

std::int32_t canonical(std::int64_t value, std::int32_t p) {
    return static_cast<std::int32_t>((value % p + p) % p);
}

void check_schoolbook(const Kernels& kernels, int bits) {
    constexpr int n = 64;
    std::int32_t prime;
    largest_ntt_primes(bits, n, 1, &prime);
    const NttTable table(prime, n);
    std::mt19937 generator(1);
    auto a = random_residues(generator, table.modulus, n), b = random_residues(generator, table.modulus, n);
    std::vector<std::int64_t> expected(n, 0);
    for (int i = 0; i < n; ++i) {
        for (int j = 0; j < n; ++j) {
            const std::int64_t product = static_cast<std::int64_t>(a[i]) * b[j] % prime;
            expected[(i + j) % n] += i + j < n ? product : -product;
        }
    }
    std::vector<std::int32_t> product(n, 0);
    kernels.forward(a.data(), table);
    kernels.forward(b.data(), table);
    kernels.multiply_add(a.data(), b.data(), table.modulus, n, product.data());
    kernels.inverse(product.data(), table);
    for (int i = 0; i < n; ++i) {
        CHECK(table.modulus.canonical(product[i]) == canonical(expected[i], prime));
        CHECK(std::abs(product[i]) <= 0.54 * prime);
    }
}

// Extreme inputs reach the largest lazy values; results must stay centred, agree between paths, and invert.
void check_paths_agree(const Kernels& kernels, int n, int bits) {
    std::int32_t prime;
    largest_ntt_primes(bits, n, 1, &prime);
    const NttTable table(prime, n);
    std::mt19937 generator(2);
    for (int pattern = 0; pattern < 5; ++pattern) {
        auto input = random_residues(generator, table.modulus, n);
        if (pattern == 1) input.assign(input.size(), prime);
        if (pattern == 2) input.assign(input.size(), -prime);
        if (pattern == 3) {
            for (auto& v : input) v = generator() % 2 ? prime : -prime;
        }
        if (pattern == 4) input.assign(input.size(), prime / 2);
        auto ours = input, portable = input;
        kernels.forward(ours.data(), table);
        portable_kernels().forward(portable.data(), table);
        CHECK(ours == portable);
        for (const auto v : ours) CHECK(std::abs(v) <= 0.54 * prime);
        kernels.inverse(ours.data(), table);
        portable_kernels().inverse(portable.data(), table);
        CHECK(ours == portable);
        for (std::size_t i = 0; i < input.size(); ++i)
            CHECK(canonical(ours[i], prime) == canonical(input[i], prime));
    }
}

// Sums of products for replies that lie apart, begun at zero and at what was there.
void check_product_sums(const Kernels& kernels, int bits, std::size_t inputs, std::size_t replies,
                        int distinct) {
    std::int32_t prime;
    largest_ntt_primes(bits, 4096, 1, &prime);
    const Modulus modulus(prime);
    std::mt19937 generator(3);
    const auto extreme = static_cast<std::int32_t>(0.54 * prime);
    const auto each = static_cast<std::size_t>(distinct), run = kBlock / each;
    const std::size_t weight_stride = inputs * each + 5, out_stride = kBlock + 3;
    for (const bool at_bound : {false, true}) {
        const auto draw = [&](std::int32_t bound) {
            return at_bound ? bound : static_cast<std::int32_t>(generator() % prime) - prime / 2;
        };
        std::vector<std::int32_t> weights(replies * weight_stride), values(2 * inputs * kBlock);
        std::vector<std::int32_t> before(2 * replies * out_stride);
        for (auto& w : weights) w = draw(extreme);
        for (auto& v : values) v = draw(-extreme);
        for (auto& b : before) b = draw(-extreme);
        for (const bool adds : {false, true}) {
            auto ours = before, portable = before;
            BlockProducts block{weights.data(), weight_stride, distinct,    values.data(), inputs,
                                replies,        adds,          ours.data(), out_stride};
            kernels.product_sums(block, modulus);
            block.out = portable.data();
            portable_kernels().product_sums(block, modulus);
            CHECK(ours == portable);
            for (std::size_t sum = 0; sum < 2 * replies; ++sum) {
                const std::int32_t* own = weights.data() + sum / 2 * weight_stride;
                const std::int32_t* half = values.data() + sum % 2 * inputs * kBlock;
                for (std::size_t lane = 0; lane < kBlock; ++lane) {
                    const std::size_t at = sum * out_stride + lane;
                    std::int64_t expected = adds ? before[at] : 0;
                    for (std::size_t i = 0; i < inputs; ++i)
                        expected +=
                            std::int64_t{own[i * each + lane / run]} * half[i * kBlock + lane] % prime;
                    CHECK(canonical(ours[at], prime) == canonical(expected, prime));
                    CHECK(std::abs(ours[at]) <= extreme);
                }
                for (std::size_t gap = kBlock; gap < out_stride; ++gap)
                    CHECK(ours[sum * out_stride + gap] == before[sum * out_stride + gap]);
            }
        }
    }
}

// An odd length takes the vector loop and its tail.
void check_multiply_add(const Kernels& kernels, int bits, std::size_t length) {
    std::int32_t prime;
    largest_ntt_primes(bits, 4096, 1, &prime);
    const Modulus modulus(prime);
    std::mt19937 generator(3);
    const auto extreme = static_cast<std::int32_t>(0.54 * prime);
    std::vector<std::int32_t> a(length), b(length), sum(length);
    for (std::size_t j = 0; j < length; ++j) {
        const auto draw = [&](std::int32_t bound) {
            return j < length / 2 ? bound : static_cast<std::int32_t>(generator() % prime) - prime / 2;
        };
        a[j] = draw(extreme), b[j] = draw(-extreme), sum[j] = draw(-prime);
    }
    auto ours = sum, portable = sum;
    kernels.multiply_add(a.data(), b.data(), modulus, length, ours.data());
    portable_kernels().multiply_add(a.data(), b.data(), modulus, length, portable.data());
    CHECK(ours == portable);
    for (std::size_t j = 0; j < length; ++j)
        CHECK(canonical(ours[j], prime) == canonical(std::int64_t{a[j]} * b[j] % prime + sum[j], prime));
}

// The loops over residues, against the portable path and against 64-bit remainders: edge values, then random ones, in a
// length that leaves a tail to vectors.
void check_residue_loops(const Kernels& kernels, int bits) {
    std::int32_t prime;
    largest_ntt_primes(bits, 64, 1, &prime);
    const Modulus modulus(prime);
    std::mt19937 generator(4);
    const auto any_word = [&] { return static_cast<std::int32_t>(generator()); };
    const auto centred = [&](std::int32_t x) { return std::abs(x) <= 0.54 * prime; };
    constexpr std::int32_t lowest = std::numeric_limits<std::int32_t>::min();
    const std::vector<std::int32_t> edges{0,      -1,        1,          lowest,         ~lowest,  prime,
                                          -prime, prime / 2, -prime / 2, lowest + prime, 1 << bits};
    std::vector<std::int32_t> low, high;  // every edge with every other
    for (const auto a : edges) {
        for (const auto b : edges) low.push_back(a), high.push_back(b);
    }
    while (low.size() < 1019) low.push_back(any_word()), high.push_back(any_word());
    const std::size_t count = low.size();

    for (const std::int32_t value : {1, 2, prime / 2, prime - 1, any_word() & (prime / 2)}) {
        const Factor factor = modulus.factor(value);
        std::vector<std::int32_t> ours(count), portable(count);
        kernels.multiply_wide(low.data(), high.data(), factor, modulus, count, ours.data());
        portable_kernels().multiply_wide(low.data(), high.data(), factor, modulus, count, portable.data());
        CHECK(ours == portable);
        for (std::size_t j = 0; j < count; ++j) {
            const auto r = static_cast<std::int64_t>((static_cast<std::uint64_t>(high[j]) << 32) |
                                                     static_cast<std::uint32_t>(low[j]));
            CHECK(canonical(ours[j], prime) == canonical(r % prime * value, prime) && centred(ours[j]));
        }

        std::vector<std::int32_t> x(count), y(count);  // differences that fit, up to the largest
        for (std::size_t j = 0; j < count; ++j) x[j] = low[j] >> 1, y[j] = high[j] >> 1;
        ours = portable = x;
        kernels.subtract_multiply(y.data(), factor, modulus, count, ours.data());
        portable_kernels().subtract_multiply(y.data(), factor, modulus, count, portable.data());
        CHECK(ours == portable);
        for (std::size_t j = 0; j < count; ++j) {
            const std::int64_t difference = std::int64_t{x[j]} - y[j];
            CHECK(canonical(ours[j], prime) == canonical(difference % prime * value, prime) &&
                  centred(ours[j]));
        }
    }

    std::vector<std::int32_t> sum(count), addend(count);
    for (std::size_t j = 0; j < count; ++j)
        sum[j] = low[j] % (2 * prime + 1), addend[j] = high[j] % (2 * prime + 1);
    auto ours = sum, portable = sum;
    kernels.add(addend.data(), modulus, count, ours.data());
    portable_kernels().add(addend.data(), modulus, count, portable.data());
    CHECK(ours == portable);
    for (std::size_t j = 0; j < count; ++j)
        CHECK(canonical(ours[j], prime) == canonical(std::int64_t{sum[j]} + addend[j], prime) &&
              centred(ours[j]));
}

// Rounding to the ring against 128-bit integers, and against the portable path: edge values, then random ones.
void check_round(const Kernels& kernels, int ring_bits, int primes) {
    std::vector<std::int32_t> prime(static_cast<std::size_t>(primes));
    largest_ntt_primes(28, 64, primes, prime.data());
    std::vector<RoundingTerm> terms;
    std::mt19937 generator(5);
    for (const auto p : prime) {
        RoundingTerm term{Modulus(p), {}, {}};
        term.cofactor_inverse = term.modulus.factor(static_cast<std::int32_t>(generator()) & (p / 2));
        for (auto& digit : term.reciprocal) digit = static_cast<std::uint32_t>(generator());
        terms.push_back(term);
    }
    const std::size_t count = RoundingMemory::kMost - 3, stride = count + 7;
    std::vector<std::int32_t> x(stride * prime.size());
    for (std::size_t i = 0; i < prime.size(); ++i) {
        const std::int32_t edges[] = {0, 1, -1, prime[i] / 2, -(prime[i] / 2)};
        for (std::size_t j = 0; j < stride; ++j)
            x[i * stride + j] =
                j < 125
                    ? edges[j /
                            (i % 3 == 0   ? 1
                             : i % 3 == 1 ? 5
                                          : 25) %
                            5]
                    : static_cast<std::int32_t>(generator() % static_cast<unsigned>(prime[i])) - prime[i] / 2;
    }
    RoundingMemory memory;
    std::vector<std::uint64_t> ours(count), portable(count);
    kernels.round(x.data(), stride, terms.data(), terms.size(), ring_bits, count, memory, ours.data());
    portable_kernels().round(x.data(), stride, terms.data(), terms.size(), ring_bits, count, memory,
                             portable.data());
    CHECK(ours == portable);
    __extension__ typedef unsigned __int128 Wide;
    for (std::size_t j = 0; j < count; ++j) {
        Wide sum = Wide{1} << (127 - ring_bits);
        for (std::size_t i = 0; i < prime.size(); ++i) {
            const auto& digit = terms[i].reciprocal;
            const auto y = static_cast<std::uint64_t>(canonical(
                std::int64_t{x[i * stride + j]} * terms[i].cofactor_inverse.value % prime[i], prime[i]));
            sum += (Wide{y * ((std::uint64_t{digit[4]} << 32) | digit[3])} << 64) +
                   Wide{y} * ((std::uint64_t{digit[2]} << 32) | digit[1]) + ((y * digit[0]) >> 32);
        }
        CHECK(ours[j] == static_cast<std::uint64_t>(sum >> (128 - ring_bits)));
    }
}

}  // namespace

int main() {
    std::set<std::string> tested;
    for (const sphynx::CpuFeatures& features : sphynx::features_to_test()) {
        const sphynx::LimitFeatures limit(features);
        const Kernels& kernels = best_kernels();
        if (!tested.insert(kernels.name).second) continue;
        for (const int bits : {20, 23, 27, 28}) check_schoolbook(kernels, bits);
        for (const int bits : {23, 27, 28}) check_paths_agree(kernels, 4096, bits);
        for (const int n : {1024, 2048, 8192}) check_paths_agree(kernels, n, 28);
        for (const int bits : {20, 23, 27, 28}) check_residue_loops(kernels, bits);
        for (const int ring_bits : {8, 32, 39, 63, 64}) {
            for (const int primes : {1, 3, 4, 15}) check_round(kernels, ring_bits, primes);
        }
        for (const int bits : {23, 28}) {
            for (const int distinct : {1, 2, 4, 8, kBlock}) {
                for (const std::size_t replies : {1, 2, 3, 7, 8, 17})
                    check_product_sums(kernels, bits, 5, replies, distinct);
                check_product_sums(kernels, bits, kLazyProducts, 3, distinct);
            }
            for (const std::size_t length : {1, 13, 1021}) check_multiply_add(kernels, bits, length);
        }
    }
    CHECK_THROWS(Modulus(3 << 20));
    CHECK_THROWS(NttTable(268369921, 4095));
    return test_result();
}
