#include "rlwe/server.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>

#include "rlwe/bitpack.h"
#include "threads.h"

namespace sphynx::rlwe {

namespace {
void require_length(std::span<const std::uint8_t> wire, std::size_t count, std::size_t each,
                    const char* what) {
    if (each == 0 || wire.size() / each != count || wire.size() % each != 0) {
        throw std::invalid_argument(std::string(what) + " has " + std::to_string(wire.size()) +
                                    " bytes, expected " + std::to_string(count) + " x " +
                                    std::to_string(each));
    }
}

// One seeded pair: the seed's uniform half and the packed half, both prime-major.
void parse_pair(const Params& params, const std::uint8_t* in, std::int32_t* packed_half,
                std::int32_t* seeded_half) {
    Block seed;
    std::memcpy(&seed, in, sizeof seed);
    in += sizeof seed;
    expand_uniform(params, seed, seeded_half);
    const auto n = static_cast<std::size_t>(params.n());
    for (int i = 0; i < params.primes(); ++i)
        in = unpack(in, n, params.modulus(i), packed_half + static_cast<std::size_t>(i) * n);
}
}  // namespace

PublicKey::PublicKey(std::shared_ptr<const Params> params, std::span<const std::uint8_t> wire)
    : params_(std::move(params)), codec_(*params_), p0_(params_->poly_size()), p1_(params_->poly_size()) {
    require_length(wire, 1, params_->public_key_bytes(), "the public key");
    parse_pair(*params_, wire.data(), p0_.data(), p1_.data());
}

Ciphertexts::Ciphertexts(std::shared_ptr<const Params> params, std::span<const std::uint8_t> wire,
                         std::size_t count, unsigned threads)
    : params_(std::move(params)), count_(count) {
    require_length(wire, count, params_->upload_bytes(), "the upload");
    const std::size_t size = params_->poly_size();
    values_.resize(count * stride());
    parallel_ranges(count, 1, threads, [&](std::size_t begin, std::size_t end) {
        std::vector<std::int32_t> c0(size), c1(size);
        for (std::size_t i = begin; i < end; ++i) {
            parse_pair(*params_, wire.data() + i * params_->upload_bytes(), c0.data(), c1.data());
            std::int32_t* to = values_.data() + i * stride();
            for (std::size_t at = 0; at < size; at += kBlock) {
                to = std::copy_n(c0.data() + at, kBlock, to);
                to = std::copy_n(c1.data() + at, kBlock, to);
            }
        }
    });
}

namespace {
void require_sizes(const Params& params, std::size_t replies, std::size_t inputs, int degree) {
    if (replies == 0 || inputs == 0 || replies > (std::size_t{1} << 20) || inputs > (std::size_t{1} << 20)) {
        throw std::invalid_argument("weights need 1 to 2^20 replies and inputs");
    }
    if (degree < 1 || degree > params.n() || (degree & (degree - 1)) != 0)
        throw std::invalid_argument("the degree of weights must be a power of two, 1 to n");
}

// Distinct values of a block of kBlock places.
int distinct_of(const Params& params, int degree) {
    return std::max(1, degree / (params.n() / kBlock));
}
}  // namespace

Weights::Weights(std::shared_ptr<const Params> params, std::size_t replies, std::size_t inputs, int degree)
    : params_(std::move(params)),
      replies_(replies),
      inputs_(inputs),
      degree_(degree),
      distinct_(distinct_of(*params_, degree)) {
    require_sizes(*params_, replies, inputs, degree);
    own_.resize(size());
    values_ = own_.data();
}

Weights::Weights(std::shared_ptr<const Params> params, std::size_t replies, std::size_t inputs, int degree,
                 const std::int32_t* shared, std::size_t count)
    : params_(std::move(params)),
      replies_(replies),
      inputs_(inputs),
      degree_(degree),
      distinct_(distinct_of(*params_, degree)),
      values_(shared) {
    require_sizes(*params_, replies, inputs, degree);
    if (count != size()) throw std::invalid_argument("shared weights have another size");
}

void Weights::set(std::size_t reply, std::size_t input, const std::int32_t* coefficients) {
    if (own_.empty()) throw std::invalid_argument("shared weights cannot be set");
    if (reply >= replies_ || input >= inputs_) throw std::out_of_range("no such weight polynomial");
    for (int j = 0; j < degree_; ++j) {
        if (coefficients[j] <= -(1 << 20) || coefficients[j] >= (1 << 20))
            throw std::invalid_argument("a weight exceeds 20 bits");
    }
    // Below the smallest degree that has a transform: in a ring of that degree, in powers of one of its powers.
    const int degree = std::max(degree_, kMinDegree), step = degree / degree_;
    const auto each = static_cast<std::size_t>(distinct_), runs = static_cast<std::size_t>(degree_) / each;
    std::vector<std::int32_t> transformed(static_cast<std::size_t>(degree));
    for (int i = 0; i < params_->primes(); ++i) {
        std::fill(transformed.begin(), transformed.end(), 0);
        for (int j = 0; j < degree_; ++j) transformed[static_cast<std::size_t>(j * step)] = coefficients[j];
        best_kernels().forward(transformed.data(), params_->subring_table(i, degree));
        const std::int32_t* from = transformed.data();
        for (std::size_t run = 0; run < runs; ++run) {
            std::int32_t* to =
                own_.data() +
                (((static_cast<std::size_t>(i) * runs + run) * replies_ + reply) * inputs_ + input) * each;
            for (std::size_t j = 0; j < each; ++j, from += step) to[j] = *from;
        }
    }
}

const std::int32_t* Weights::block(int prime, std::size_t block) const {
    const auto each = static_cast<std::size_t>(distinct_), runs = static_cast<std::size_t>(degree_) / each;
    const std::size_t run = block * runs / params_->blocks();
    return values_ + (static_cast<std::size_t>(prime) * runs + run) * replies_ * inputs_ * each;
}

void refresh(const PublicKey& key, SeedStream& randomness, std::int32_t* c0, std::int32_t* c1) {
    const Params& params = key.params();
    const Kernels& kernels = best_kernels();
    const auto n = static_cast<std::size_t>(params.n());
    SecretVector ternary(n), transformed(n), error(n);
    sample_ternary(randomness, n, ternary.data());
    sample_error(randomness, n, error.data());
    for (int i = 0; i < params.primes(); ++i) {
        const std::size_t at = static_cast<std::size_t>(i) * n;
        const Modulus& modulus = params.modulus(i);
        std::copy(ternary.begin(), ternary.end(), transformed.begin());
        kernels.forward(transformed.data(), params.table(i));
        kernels.multiply_add(transformed.data(), key.half(0) + at, modulus, n, c0 + at);
        kernels.multiply_add(transformed.data(), key.half(1) + at, modulus, n, c1 + at);
        kernels.inverse(c0 + at, params.table(i));
        kernels.inverse(c1 + at, params.table(i));
        kernels.add(error.data(), modulus, n, c1 + at);
    }
    key.codec().switch_down(c0, n);
    key.codec().switch_down(c1, n);
}

namespace {
// Masks and writes the used coefficients of c0, after all of c1; the share is what undoes the mask.
std::uint8_t* mask_and_pack(const Params& params, const RnsCodec& codec, SeedStream& randomness,
                            std::span<const std::uint32_t> used, const std::int32_t* c0,
                            const std::int32_t* c1, std::uint8_t* out, std::uint64_t* share) {
    const auto n = static_cast<std::size_t>(params.n());
    const auto kept = static_cast<std::size_t>(params.reply_primes());
    SecretVector rho(kept * used.size());
    std::vector<std::int32_t> masked(used.size());
    for (std::size_t i = 0; i < kept; ++i)
        out = pack(c1 + i * n, n, params.modulus(static_cast<int>(i)), out);
    for (std::size_t i = 0; i < kept; ++i) {
        const Modulus& modulus = params.modulus(static_cast<int>(i));
        std::int32_t* mask = rho.data() + i * used.size();
        sample_uniform(randomness, modulus, used.size(), mask);
        for (std::size_t u = 0; u < used.size(); ++u)
            masked[u] = modulus.reduce(c0[i * n + used[u]] + mask[u]);
        out = pack(masked.data(), used.size(), modulus, out);
    }
    codec.round(rho.data(), used.size(), share);
    for (std::size_t u = 0; u < used.size(); ++u) share[u] = (0 - share[u]) & params.ring_mask();
    return out;
}
}  // namespace

void respond(const PublicKey& key, const Weights& weights, const std::vector<const std::int32_t*>& inputs,
             std::size_t tiles, const UsedCoefficients& used, crypto::Prg& prg, unsigned threads,
             std::uint8_t* wire, std::uint64_t* share) {
    const Params& params = key.params();
    used.check(params);
    const std::size_t replies = weights.replies(), stride = sum_stride(params);
    if (used.count.size() != replies)
        throw std::invalid_argument("the used coefficients are listed for another number of replies");
    // Every sum is written before it is read: zeros would be a pass over memory more.
    const auto sums = std::make_unique_for_overwrite<std::int32_t[]>(tiles * replies * 2 * stride);
    product_sums(weights, inputs, tiles, threads, sums.get());

    std::vector<std::size_t> wire_at(replies), share_at(replies);
    for (std::size_t j = 1; j < replies; ++j) {
        wire_at[j] = wire_at[j - 1] + params.reply_bytes(used.count[j - 1]);
        share_at[j] = share_at[j - 1] + used.count[j - 1];
    }
    const crypto::AesKey randomness_key(prg.block());
    parallel_ranges(tiles * replies, 1, threads, [&](std::size_t begin, std::size_t end) {
        for (std::size_t task = begin; task < end; ++task) {
            const std::size_t tile = task / replies, j = task % replies;
            SeedStream randomness(randomness_key, task);
            std::int32_t* c0 = sums.get() + task * 2 * stride;
            refresh(key, randomness, c0, c0 + stride);
            mask_and_pack(params, key.codec(), randomness, {used.index.data(), used.count[j]}, c0,
                          c0 + stride, wire + tile * used.reply_bytes(params) + wire_at[j],
                          share + tile * used.total() + share_at[j]);
        }
    });
}

}  // namespace sphynx::rlwe
