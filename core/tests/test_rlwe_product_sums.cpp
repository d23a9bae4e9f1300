// Sums of products over more inputs than a lazy sum takes and more tiles than are copied at a time, in every kind of
// subring, on one thread and on three, against 64-bit remainders.
#include <cstdint>
#include <random>
#include <vector>

#include "check.h"
#include "cpu.h"
#include "rlwe/server.h"

using namespace sphynx;
using namespace sphynx::rlwe;

namespace {

std::int64_t canonical(std::int64_t x, std::int64_t p) {
    return (x % p + p) % p;
}

void check(std::size_t inputs, std::size_t replies, std::size_t tiles, int degree, unsigned threads) {
    const auto params = Params::for_ring(32);
    const auto n = static_cast<std::size_t>(params->n());
    std::mt19937 generator(6);
    // Weights as they are kept; which polynomials they are the values of does not matter here.
    std::vector<std::int32_t> kept(static_cast<std::size_t>(degree * params->primes()) * replies * inputs);
    for (auto& w : kept) w = static_cast<std::int32_t>(generator() % (1u << 22)) - (1 << 21);
    const Weights weights(params, replies, inputs, degree, kept.data(), kept.size());
    // Few ciphertexts, each of which is an input at many places.
    std::vector<std::vector<std::int32_t>> ciphertexts(7, std::vector<std::int32_t>(2 * params->poly_size()));
    for (auto& ciphertext : ciphertexts) {
        for (auto& c : ciphertext) c = static_cast<std::int32_t>(generator() % (1u << 22)) - (1 << 21);
    }
    std::vector<const std::int32_t*> pointers;
    for (std::size_t i = 0; i < tiles * inputs; ++i) pointers.push_back(ciphertexts[generator() % 7].data());

    std::vector<std::int32_t> out(tiles * replies * 2 * sum_stride(*params));
    product_sums(weights, pointers, tiles, threads, out.data());
    const auto distinct = static_cast<std::size_t>(weights.distinct());
    for (int sample = 0; sample < 200; ++sample) {
        const std::size_t tile = generator() % tiles, reply = generator() % replies, half = generator() % 2,
                          at = generator() % params->poly_size();
        const auto prime = static_cast<int>(at / n);
        const std::int64_t p = params->modulus(prime).p();
        const std::size_t block = at / kBlock, lane = at % kBlock;
        const std::int32_t* own = weights.block(prime, block % params->blocks()) + reply * inputs * distinct;
        std::int64_t expected = 0;
        for (std::size_t i = 0; i < inputs; ++i) {
            const std::int64_t w = own[i * distinct + lane * distinct / kBlock];
            expected += w * pointers[tile * inputs + i][(2 * block + half) * kBlock + lane] % p;
        }
        const std::int32_t sum = out[((tile * replies + reply) * 2 + half) * sum_stride(*params) + at];
        CHECK(canonical(sum, p) == canonical(expected, p));
    }
}

}  // namespace

int main() {
    for (const CpuFeatures& features : features_to_test()) {
        const LimitFeatures limit(features);
        for (const int degree : {1, 256, 1024, 4096}) check(3, 5, 2, degree, 1);
        check(300, 3, 5, 64, 3);  // more than kLazyProducts
        check(40, 9, 33, 128, 3);
        check(257, 1, 1, 512, 1);
    }
    return test_result();
}
