#include "rlwe/client.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "rlwe/bitpack.h"
#include "threads.h"

namespace sphynx::rlwe {

using crypto::AesKey;

void UsedCoefficients::check(const Params& params) const {
    for (const std::uint32_t i : index) {
        if (i >= static_cast<std::uint32_t>(params.n()))
            throw std::invalid_argument("a used coefficient lies outside the polynomial");
    }
    for (const std::size_t c : count) {
        if (c > index.size()) throw std::invalid_argument("a reply uses more coefficients than are listed");
    }
}

std::size_t UsedCoefficients::total() const {
    std::size_t sum = 0;
    for (const std::size_t c : count) sum += c;
    return sum;
}

std::size_t UsedCoefficients::reply_bytes(const Params& params) const {
    std::size_t bytes = 0;
    for (const std::size_t c : count) bytes += params.reply_bytes(c);
    return bytes;
}

void expand_uniform(const Params& params, Block seed, std::int32_t* out) {
    const AesKey key(seed);
    const auto n = static_cast<std::size_t>(params.n());
    for (int i = 0; i < params.primes(); ++i) {
        SeedStream stream(key, static_cast<std::uint64_t>(i));
        sample_uniform(stream, params.modulus(i), n, out + static_cast<std::size_t>(i) * n);
    }
}

SecretKey::SecretKey(std::shared_ptr<const Params> params, crypto::Prg& prg)
    : params_(std::move(params)),
      codec_(*params_),
      secret_(params_->poly_size()),
      minus_secret_(params_->poly_size()) {
    const auto n = static_cast<std::size_t>(params_->n());
    SecretVector ternary(n);
    {
        const AesKey key(prg.block());
        SeedStream stream(key, 0);
        sample_ternary(stream, n, ternary.data());
    }
    for (int i = 0; i < params_->primes(); ++i) {
        std::int32_t* to = secret_.data() + static_cast<std::size_t>(i) * n;
        std::copy(ternary.begin(), ternary.end(), to);
        best_kernels().forward(to, params_->table(i));
    }
    std::transform(secret_.begin(), secret_.end(), minus_secret_.begin(), [](std::int32_t x) { return -x; });
}

void SecretKey::encrypt_one(const std::uint64_t* message, Block seed, SeedStream& errors,
                            std::uint8_t* out) const {
    const auto n = static_cast<std::size_t>(params_->n());
    const Kernels& kernels = best_kernels();
    std::vector<std::int32_t> uniform(params_->poly_size());
    expand_uniform(*params_, seed, uniform.data());
    SecretVector error(n), body(params_->poly_size());
    sample_error(errors, n, error.data());
    if (message != nullptr) codec_.encode(message, n, body.data());
    std::memcpy(out, &seed, sizeof seed);
    out += sizeof seed;
    for (int i = 0; i < params_->primes(); ++i) {
        const std::size_t at = static_cast<std::size_t>(i) * n;
        for (std::size_t j = 0; j < n; ++j) body[at + j] += error[j];
        kernels.forward(body.data() + at, params_->table(i));
        kernels.multiply_add(uniform.data() + at, minus_secret_.data() + at, params_->modulus(i), n,
                             body.data() + at);
        out = pack(body.data() + at, n, params_->modulus(i), out);
    }
}

void SecretKey::public_key(crypto::Prg& prg, std::uint8_t* out) const {
    const Block seed = prg.block();
    const AesKey key(prg.block());
    SeedStream errors(key, 0);
    encrypt_one(nullptr, seed, errors, out);
}

void SecretKey::encrypt(const std::uint64_t* message, std::size_t count, crypto::Prg& prg, unsigned threads,
                        std::uint8_t* out) const {
    std::vector<Block> seeds(count);
    prg.fill_blocks(seeds.data(), count);
    const AesKey error_key(prg.block());
    const auto n = static_cast<std::size_t>(params_->n());
    parallel_ranges(count, 1, threads, [&](std::size_t begin, std::size_t end) {
        for (std::size_t c = begin; c < end; ++c) {
            SeedStream errors(error_key, c);
            encrypt_one(message + c * n, seeds[c], errors, out + c * params_->upload_bytes());
        }
    });
}

void SecretKey::phase(const std::int32_t* c0, std::int32_t* c1, std::int32_t* out) const {
    const auto n = static_cast<std::size_t>(params_->n());
    const Kernels& kernels = best_kernels();
    for (int i = 0; i < params_->reply_primes(); ++i) {
        const std::size_t at = static_cast<std::size_t>(i) * n;
        const Modulus& modulus = params_->modulus(i);
        kernels.forward(c1 + at, params_->table(i));
        std::fill(out + at, out + at + n, 0);
        kernels.multiply_add(c1 + at, secret_.data() + at, modulus, n, out + at);
        kernels.inverse(out + at, params_->table(i));
        if (c0 != nullptr) kernels.add(c0 + at, modulus, n, out + at);
    }
}

void SecretKey::decrypt(std::span<const std::uint8_t> wire, const UsedCoefficients& used, std::size_t tiles,
                        unsigned threads, std::uint64_t* out) const {
    used.check(*params_);
    const std::size_t replies = used.count.size(), tile_bytes = used.reply_bytes(*params_);
    if (replies == 0 ? !wire.empty() : wire.size() / tile_bytes != tiles || wire.size() % tile_bytes != 0) {
        throw std::invalid_argument("the reply has " + std::to_string(wire.size()) + " bytes, expected " +
                                    std::to_string(tiles) + " x " + std::to_string(tile_bytes));
    }
    std::vector<std::size_t> wire_at(replies), out_at(replies);
    for (std::size_t j = 1; j < replies; ++j) {
        wire_at[j] = wire_at[j - 1] + params_->reply_bytes(used.count[j - 1]);
        out_at[j] = out_at[j - 1] + used.count[j - 1];
    }
    const auto n = static_cast<std::size_t>(params_->n());
    const auto kept = static_cast<std::size_t>(params_->reply_primes());
    parallel_ranges(tiles * replies, 1, threads, [&](std::size_t begin, std::size_t end) {
        std::vector<std::int32_t> c1(kept * n);
        SecretVector product(kept * n), selected(kept * used.index.size()), gathered(used.index.size());
        for (std::size_t task = begin; task < end; ++task) {
            const std::size_t tile = task / replies, j = task % replies, count = used.count[j];
            const std::uint8_t* in = wire.data() + tile * tile_bytes + wire_at[j];
            for (std::size_t i = 0; i < kept; ++i)
                in = unpack(in, n, params_->modulus(static_cast<int>(i)), c1.data() + i * n);
            phase(nullptr, c1.data(), product.data());
            for (std::size_t i = 0; i < kept; ++i) {
                const Modulus& modulus = params_->modulus(static_cast<int>(i));
                std::int32_t* c0 = selected.data() + i * count;
                in = unpack(in, count, modulus, c0);
                for (std::size_t u = 0; u < count; ++u) gathered[u] = product[i * n + used.index[u]];
                best_kernels().add(gathered.data(), modulus, count, c0);
            }
            codec_.round(selected.data(), count, out + tile * used.total() + out_at[j]);
        }
    });
}

}  // namespace sphynx::rlwe
