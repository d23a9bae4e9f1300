// The server's half of RLWE: sums of plaintext products over encrypted inputs, and replies that hide the
// weights.
//
// A reply is INTT(sum_i w_i ct_i + u pk) + (0, e1), switched to the reply primes, plus rho uniform in Z_q' on
// every coefficient of c0 that leaves; the server's share of coefficient j is -round(2^k rho_j / q'). u and
// e1 are fresh per reply. What the client sees is (uniform, pseudorandom): docs/rlwe.md. There is no way to
// write a reply without its mask.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "crypto/prg.h"
#include "rlwe/client.h"
#include "rlwe/params.h"

namespace sphynx::rlwe {

class PublicKey {
  public:
    PublicKey(std::shared_ptr<const Params> params, std::span<const std::uint8_t> wire);

    const Params& params() const { return *params_; }
    const RnsCodec& codec() const { return codec_; }
    const std::int32_t* half(int which) const { return which == 0 ? p0_.data() : p1_.data(); }

  private:
    std::shared_ptr<const Params> params_;
    RnsCodec codec_;
    std::vector<std::int32_t> p0_, p1_;  // NTT form, prime-major
};

// Parsed uploads, in NTT form and in blocks: per ciphertext [prime][block][c0 | c1][kBlock].
class Ciphertexts {
  public:
    Ciphertexts(std::shared_ptr<const Params> params, std::span<const std::uint8_t> wire, std::size_t count,
                unsigned threads);

    const Params& params() const { return *params_; }
    std::size_t count() const { return count_; }
    const std::int32_t* data(std::size_t i) const { return values_.data() + i * stride(); }

  private:
    std::size_t stride() const {
        return 2 * (params_->poly_size() + kBlock);
    }  // as sum_stride, for two halves

    std::shared_ptr<const Params> params_;
    std::size_t count_;
    std::vector<std::int32_t> values_;
};

// Plaintext polynomials in Z[Y], Y = X^(n/degree), transformed once. In NTT form such a polynomial has `degree` distinct
// values, each in a run of n/degree places one behind the other, and only these are kept:
// [prime][blocks that share values][reply][input][distinct of a block], read strictly in order. They may lie in memory
// that several processes share; such weights cannot be set.
class Weights {
  public:
    // degree: a power of two, 1 to n.
    Weights(std::shared_ptr<const Params> params, std::size_t replies, std::size_t inputs, int degree);

    // shared: what values() of equal weights held, count integers that outlive this object.
    Weights(std::shared_ptr<const Params> params, std::size_t replies, std::size_t inputs, int degree,
            const std::int32_t* shared, std::size_t count);

    Weights(Weights&&) = default;  // a vector that is moved keeps its place in memory

    // coefficients: of Y^0, Y^1, ...: `degree` signed integers, each below 2^20 in size. Different (reply, input) may be set from
    // different threads.
    void set(std::size_t reply, std::size_t input, const std::int32_t* coefficients);

    const Params& params() const { return *params_; }
    std::size_t replies() const { return replies_; }
    std::size_t inputs() const { return inputs_; }
    int degree() const { return degree_; }
    int distinct() const { return distinct_; }  // of a block
    std::size_t size() const {
        return static_cast<std::size_t>(degree_ * params_->primes()) * replies_ * inputs_;
    }
    std::size_t bytes() const { return size() * sizeof(std::int32_t); }
    const std::int32_t* values() const { return values_; }
    const std::int32_t* block(int prime, std::size_t block) const;  // of all replies

  private:
    std::shared_ptr<const Params> params_;
    std::size_t replies_, inputs_;
    int degree_, distinct_;
    std::vector<std::int32_t> own_;  // empty where the values are shared
    const std::int32_t* values_;
};

// Residues from one polynomial of a sum to the next. One cache line more than the polynomial has: polynomials
// of 2^k bytes back to back would all fall into the same few sets of the cache.
inline std::size_t sum_stride(const Params& params) {
    return params.poly_size() + kBlock;
}

// sum_i w_i ct_i for every tile and reply, NTT form: out[tile][reply][half], each [prime][n], sum_stride
// apart. inputs: tiles x weights.inputs() pointers from Ciphertexts::data.
void product_sums(const Weights& weights, const std::vector<const std::int32_t*>& inputs, std::size_t tiles,
                  unsigned threads, std::int32_t* out);

// Adds a fresh Enc(0), transforms back and switches to the reply primes, in place: c0 and c1 in coefficient
// form, stride n.
void refresh(const PublicKey& key, SeedStream& randomness, std::int32_t* c0, std::int32_t* c1);

// The whole answer. wire: tiles x used.reply_bytes; share: tiles x used.total() ring elements.
void respond(const PublicKey& key, const Weights& weights, const std::vector<const std::int32_t*>& inputs,
             std::size_t tiles, const UsedCoefficients& used, crypto::Prg& prg, unsigned threads,
             std::uint8_t* wire, std::uint64_t* share);

}  // namespace sphynx::rlwe
