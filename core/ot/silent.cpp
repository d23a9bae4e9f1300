#include "ot/silent.h"

#include <algorithm>
#include <bit>
#include <stdexcept>

#include "bits/transpose.h"
#include "crypto/blake2b.h"
#include "crypto/field.h"
#include "ot/correlated_tree.h"
#include "ot/silent_check.h"
#include "secret.h"
#include "threads.h"

namespace sphynx::ot {
namespace {

constexpr unsigned kMostDepth = 24;

// Results of a batch from number `first` on, as many trees at a time as the code takes rows; leaves_of(tree, leaves) makes
// a tree's.
template <class Leaves>
void make_results(const SilentShape& shape, const SilentBatch& batch, std::size_t first, BlockSpan out,
                  unsigned threads, const Leaves& leaves_of) {
    const std::size_t size = std::size_t{1} << shape.depth, last = first + out.size(),
                      first_tree = first / size;
    const std::size_t tile = std::max<std::size_t>(kLpnTile / size, 1);
    parallel_ranges((last + size - 1) / size - first_tree, 1, threads,
                    [&](std::size_t begin_tree, std::size_t end_tree) {
                        std::vector<Block> partly;
                        for (std::size_t tree = first_tree + begin_tree; tree < first_tree + end_tree;) {
                            const std::size_t begin = std::max(first, tree * size);
                            const std::size_t end_of_tile = std::min(tree + tile, first_tree + end_tree);
                            std::size_t end = begin;
                            for (; tree < end_of_tile; ++tree) {
                                const std::size_t end_of_tree = std::min(last, (tree + 1) * size);
                                const BlockSpan to = out.subspan(end - first, end_of_tree - end);
                                if (to.size() == size) {
                                    leaves_of(tree, to);
                                } else {
                                    partly.resize(size);
                                    leaves_of(tree, partly);
                                    std::copy_n(&partly[end - tree * size], to.size(), to.data());
                                }
                                end = end_of_tree;
                            }
                            batch.code.add_rows(BlockView(batch.seeds).first(shape.secret), begin,
                                                out.subspan(begin - first, end - begin));
                        }
                        zeroise(partly.data(), partly.size() * sizeof(Block));
                    });
}

// The polynomial over all leaves of a batch.
template <class Leaves>
Block sum_leaves(const SilentShape& shape, const LeafPolynomial& polynomial, unsigned threads,
                 const Leaves& leaves_of) {
    std::vector<Block> trees(shape.trees);
    parallel_ranges(shape.trees, 1, threads, [&](std::size_t begin, std::size_t end) {
        std::vector<Block> leaves(std::size_t{1} << shape.depth);
        for (std::size_t tree = begin; tree < end; ++tree) {
            leaves_of(tree, leaves);
            trees[tree] = polynomial.of_tree(leaves);
        }
        zeroise(leaves.data(), leaves.size() * sizeof(Block));
    });
    return polynomial.of_batch(trees);
}

// Hands parts of an extension to take(batch, first result, count, first OT) and drops what is used up.
template <class Batches, class Take>
void take_results(const SilentShape& shape, Batches& batches, std::size_t count, const Take& take) {
    for (std::size_t ot = 0; ot < count;) {
        auto& batch = batches.front();
        const std::size_t part = std::min(count - ot, shape.usable() - batch.used);
        take(batch, batch.used, part, ot);
        batch.used += part;
        ot += part;
        // The last one has the seeds of the next.
        if (batch.used == shape.usable() && batches.size() > 1) batches.pop_front();
    }
}

void require_available(std::size_t count, std::size_t available) {
    if (count > available) throw std::invalid_argument("silent OT: fewer OTs are available; refill first");
}

struct BatchKeys {
    Block code, tree;
};

BatchKeys keys_of_batch(Block session, std::uint64_t number) {
    crypto::Blake2b hash(sizeof(BatchKeys), "sphynx silent batch");
    hash.update(&session, sizeof session);
    hash.update(number);
    BatchKeys keys;
    hash.finish(&keys);
    return keys;
}

}  // namespace

void SilentShape::require_valid() const {
    constexpr std::size_t most = std::size_t{1} << 32;
    if (depth < 1 || depth > kMostDepth || trees < 1 || trees > most >> depth || secret < 1 ||
        secret >= most || samples() <= seeds()) {
        throw std::invalid_argument("silent OT: a batch of this shape is not larger than its seeds");
    }
    if (secret % kLpnRowWeight != 0 || !std::has_single_bit(secret / kLpnRowWeight)) {
        throw std::invalid_argument("silent OT: a secret has ten regions of a power of two of entries each");
    }
}

SilentBatch::SilentBatch(const SilentShape& shape, Block session, std::uint64_t number,
                         std::vector<Block> own_seeds)
    : seeds(std::move(own_seeds)),
      code(keys_of_batch(session, number).code, shape.secret / kLpnRowWeight),
      tree_key(keys_of_batch(session, number).tree) {}

// --- sender ---------------------------------------------------------------------------------------------------

SilentSender::SilentSender(const SilentShape& shape, Block session, Block delta, BlockView q)
    : shape_(shape), session_(session), delta_(delta) {
    shape.require_valid();
    if (!delta.lowest_bit()) throw std::invalid_argument("silent OT: the lowest bit of delta must be 1");
    // t = q xor r delta = (q xor delta) xor (1 - r) delta: taken so, the lowest bit of q is 0, and that of t the choice.
    first_seeds_.assign(q.begin(), q.end());
    for (Block& seed : first_seeds_) seed ^= mask_of(seed.lo) & delta;
}

SilentSender::~SilentSender() {
    zeroise(&delta_, sizeof delta_);
    zeroise(first_seeds_.data(), first_seeds_.size() * sizeof(Block));
}

void SilentSender::leaves_of(const Batch& batch, std::size_t tree, BlockSpan leaves,
                             BlockSpan left_sums) const {
    Block root;
    crypto::expand_seed(batch.roots, 0, tree, &root, 1);
    expand_correlated_tree(batch.tree_key, root, delta_, leaves, left_sums);
}

void SilentSender::results(const Batch& batch, std::size_t first, BlockSpan out, unsigned threads) const {
    make_results(shape_, batch, first, out, threads, [&](std::size_t tree, BlockSpan leaves) {
        Block sums[kMostDepth];
        leaves_of(batch, tree, leaves, BlockSpan(sums).first(shape_.depth));
    });
}

void SilentSender::refill(crypto::Prg& prg, BlockSpan message, unsigned threads) {
    std::vector<Block> seeds = std::move(first_seeds_);
    if (!batches_.empty()) {
        seeds.resize(shape_.seeds());
        results(batches_.back(), shape_.usable(), seeds, threads);
        if (batches_.front().used == shape_.usable()) batches_.pop_front();
    }
    Batch& batch = batches_.emplace_back(shape_, session_, batch_count_++, std::move(seeds));
    batch.roots = crypto::AesKey(prg.block());
    const unsigned depth = shape_.depth;
    const Block* const masks = batch.seeds.data() + shape_.secret;
    parallel_ranges(shape_.trees, 1, threads, [&](std::size_t begin, std::size_t end) {
        std::vector<Block> leaves(std::size_t{1} << depth);
        for (std::size_t tree = begin; tree < end; ++tree) {
            const BlockSpan sums = message.subspan(tree * depth, depth);
            leaves_of(batch, tree, leaves, sums);
            for (unsigned level = 0; level < depth; ++level) sums[level] ^= masks[tree * depth + level];
        }
        zeroise(leaves.data(), leaves.size() * sizeof(Block));
    });
    alpha_ = silent_challenge(session_, batch_count_, message);
    available_ += shape_.usable();
}

Digest SilentSender::prove(Block masked, unsigned threads) const {
    if (batches_.empty()) throw std::invalid_argument("silent OT: a refill is proved after it");
    const Batch& batch = batches_.back();
    const LeafPolynomial polynomial(alpha_, shape_.depth);
    Block sum = sum_leaves(shape_, polynomial, threads, [&](std::size_t tree, BlockSpan leaves) {
        Block sums[kMostDepth];
        leaves_of(batch, tree, leaves, BlockSpan(sums).first(shape_.depth));
    });
    sum ^= field_element_of(BlockView(batch.seeds).last(SilentShape::kCheckOts));
    return silent_proof(session_, batch_count_, sum ^ crypto::field_product(masked, delta_));
}

void SilentSender::extend(BlockView corrections, BlockSpan q, unsigned threads) {
    const std::size_t count = q.size();
    require_available(count, available_);
    available_ -= count;
    take_results(shape_, batches_, count,
                 [&](const Batch& batch, std::size_t first, std::size_t part, std::size_t ot) {
                     results(batch, first, q.subspan(ot, part), threads);
                 });
    if (corrections.empty()) return;
    for (std::size_t first = 0; first < count; first += 64) {
        const Block& block = corrections[first / 128];
        const std::uint64_t bits = first % 128 ? block.hi : block.lo;
        const std::size_t ots = std::min<std::size_t>(64, count - first);
        for (std::size_t j = 0; j < ots; ++j) q[first + j] ^= mask_of(bits >> j) & delta_;
    }
}

// --- receiver -------------------------------------------------------------------------------------------------

SilentReceiver::SilentReceiver(const SilentShape& shape, bool checked, Block session, BlockView t)
    : shape_(shape), checked_(checked), session_(session) {
    shape.require_valid();
    first_seeds_.assign(t.begin(), t.end());
}

SilentReceiver::~SilentReceiver() {
    zeroise(first_seeds_.data(), first_seeds_.size() * sizeof(Block));
}

SilentReceiver::Batch::~Batch() {
    zeroise(known_sums.data(), known_sums.size() * sizeof(Block));
    zeroise(missing.data(), missing.size() * sizeof missing[0]);
}

void SilentReceiver::leaves_of(const Batch& batch, std::size_t tree, BlockSpan leaves) const {
    expand_without(batch.missing[tree], batch.tree_key,
                   BlockView(batch.known_sums).subspan(tree * shape_.depth, shape_.depth), leaves);
}

void SilentReceiver::results(const Batch& batch, std::size_t first, BlockSpan out, unsigned threads) const {
    make_results(shape_, batch, first, out, threads,
                 [&](std::size_t tree, BlockSpan leaves) { leaves_of(batch, tree, leaves); });
}

Block SilentReceiver::refill(BlockView message, unsigned threads) {
    if (is_waiting_ || has_refused_) {
        throw std::invalid_argument("silent OT: the refill before this one was not accepted");
    }
    std::vector<Block> seeds = std::move(first_seeds_);
    if (!batches_.empty()) {
        seeds.resize(shape_.seeds());
        results(batches_.back(), shape_.usable(), seeds, threads);
        if (batches_.front().used == shape_.usable()) batches_.pop_front();
    }
    Batch& batch = batches_.emplace_back(shape_, session_, batch_count_++, std::move(seeds));
    const Block* const masks = batch.seeds.data() + shape_.secret;
    batch.known_sums.resize(shape_.refill_blocks());
    for (std::size_t tree = 0, sum = 0; tree < shape_.trees; ++tree) {
        std::uint64_t missing = 0;
        for (unsigned level = 0; level < shape_.depth; ++level, ++sum) {
            batch.known_sums[sum] = message[sum] ^ masks[sum];
            missing = missing << 1 | (~masks[sum].lo & 1);
        }
        batch.missing.push_back(missing);
    }
    available_ += shape_.usable();
    if (!checked_) return {};
    is_waiting_ = true;
    return begin_check(batch, silent_challenge(session_, batch_count_, message), threads);
}

Block SilentReceiver::begin_check(const Batch& batch, Block alpha, unsigned threads) {
    const LeafPolynomial polynomial(alpha, shape_.depth);
    const BlockView masks = BlockView(batch.seeds).last(SilentShape::kCheckOts);
    std::vector<Block> noise;
    for (const std::uint64_t missing : batch.missing) noise.push_back(polynomial.of_leaf(missing));
    Block masked = polynomial.of_batch(noise);
    for (unsigned i = 0; i < SilentShape::kCheckOts; ++i) {
        (i < 64 ? masked.lo : masked.hi) ^= (masks[i].lo & 1) << (i % 64);
    }
    const Block sum = sum_leaves(shape_, polynomial, threads,
                                 [&](std::size_t tree, BlockSpan leaves) { leaves_of(batch, tree, leaves); });
    expected_ = silent_proof(session_, batch_count_, sum ^ field_element_of(masks));
    return masked;
}

bool SilentReceiver::accept(const Digest& proof) {
    if (!is_waiting_) throw std::invalid_argument("silent OT: a proof is accepted once for each refill");
    is_waiting_ = false;
    has_refused_ = public_value(difference(proof, expected_)) != 0;
    return !has_refused_;
}

void SilentReceiver::extend(WordSpan choices, bool random_choices, BlockSpan message, BlockSpan t,
                            unsigned threads) {
    const std::size_t count = t.size();
    require_available(count, available());
    available_ -= count;
    take_results(shape_, batches_, count,
                 [&](const Batch& batch, std::size_t first, std::size_t part, std::size_t ot) {
                     results(batch, first, t.subspan(ot, part), threads);
                 });
    for (std::size_t first = 0; first < count; first += 64) {
        const std::size_t ots = std::min<std::size_t>(64, count - first);
        std::uint64_t own = 0;  // choices that the OTs have
        for (std::size_t j = 0; j < ots; ++j) own |= (t[first + j].lo & 1) << j;
        std::uint64_t& word = choices[first / 64];
        if (random_choices) {
            word = own;
        } else {
            const std::uint64_t used = ~std::uint64_t{0} >> (64 - ots), bits = (own ^ word) & used;
            Block& block = message[first / 128];
            block = first % 128 == 0 ? Block{bits, 0} : Block{block.lo, bits};
        }
    }
}

}  // namespace sphynx::ot
