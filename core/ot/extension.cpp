#include "ot/extension.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "bits/transpose.h"
#include "crypto/hash.h"
#include "crypto/kernels.h"
#include "crypto/prg.h"
#include "crypto/tweaks.h"
#include "ot/punctured_tree.h"
#include "threads.h"

namespace sphynx {
namespace {

constexpr std::size_t tile = 8;  // column blocks that go through all trees together: 1,024 OTs, 16 KB of rows

// rows[b * count ..] = the sum of the streams of all leaves whose index has bit b, u = the sum of all. The
// index runs like a binary counter: `pending[l]` is the sum over the last finished left subtree of height l.
// Leaf 0 adds to u only: the sender, who lacks it and wants no u (nullptr), may have any key in its place.
void sum_streams(const SymmetricKernels& kernels, const AesKey* leaves, unsigned depth, Block salt,
                 std::uint64_t column_block, std::size_t count, Block* rows, Block* u) {
    const Block counter = {salt.lo, __builtin_bswap64(column_block)};
    Block pending[9][tile];
    Block current[tile];
    std::fill_n(rows, depth * count, Block{});
    const unsigned first_level =
        depth >= 2 ? 2 : 0;  // levels below it are summed in registers, four leaves at a time
    for (unsigned subtree = 0; subtree < 1u << (depth - first_level); ++subtree) {
        if (first_level == 2) {
            kernels.sum_four_streams(leaves + 4 * subtree, counter, rows, rows + count, current, count);
        } else {
            if (subtree == 0 && u == nullptr) {
                std::fill_n(current, count, Block{});
            } else {
                kernels.counter_stream(leaves[subtree], counter, current, count);
            }
        }
        unsigned level = 0;
        for (; subtree >> level & 1; ++level) {
            Block *row = rows + (first_level + level) * count, *left = pending[level];
            for (std::size_t j = 0; j < count; ++j) {
                row[j] ^= current[j];
                current[j] ^= left[j];
            }
        }
        std::memcpy(pending[level], current, count * sizeof(Block));
    }
    if (u != nullptr) std::memcpy(u, current, count * sizeof(Block));
    zeroise(current, sizeof current);
    zeroise(pending, (depth - first_level + 1) * sizeof pending[0]);
}

// Cuts an extension into tiles and hands each to work(first column block, column blocks, first OT, OTs).
template <class Work>
void for_tiles(std::size_t count, unsigned threads, const Work& work) {
    const std::size_t column_blocks = (count + 127) / 128;
    parallel_ranges(column_blocks, tile, threads, [&](std::size_t begin, std::size_t end) {
        for (std::size_t column = begin; column < end; column += tile) {
            const std::size_t columns = std::min(tile, end - column);
            work(column, columns, std::min(count - 128 * column, 128 * columns));
        }
    });
}

void store_transposed(const Block* rows, std::size_t columns, std::size_t count, Block* out) {
    if (count == 128 * columns) {
        transpose_rows_to_blocks(rows, columns, out);
    } else {
        Block padded[128 * tile];
        transpose_rows_to_blocks(rows, columns, padded);
        std::copy_n(padded, count, out);
        zeroise(padded, sizeof padded);
    }
}

constexpr std::size_t hash_grain = 1024;

// Cuts `count` OTs and hands each part to work(key, tweaks, first OT, OTs); the tweak of OT j is j R.
template <class Work>
void for_tweaked(Block r, std::size_t count, unsigned threads, const Work& work) {
    constexpr std::size_t most = 256;
    constexpr std::uint64_t stream = 1;  // garbling takes the keys of its gates from stream 0 of the same R
    Block raw;
    expand_seed(AesKey(r), stream, 0, &raw, 1);
    const AesKey key(raw);
    const Tweaks tweaks(r);
    parallel_ranges(count, hash_grain, threads, [&](std::size_t begin, std::size_t end) {
        Block own[most];
        for (std::size_t first = begin; first < end; first += most) {
            const std::size_t ots = std::min(most, end - first);
            tweaks.fill(first, own, ots);
            work(key, own, first, ots);
        }
    });
}

}  // namespace

std::size_t extension_message_blocks(unsigned k, std::size_t count, bool random_choices) {
    return ((base_ot_count + k - 1) / k - (random_choices ? 1 : 0)) * ((count + 127) / 128);
}

LeafStreams::LeafStreams(unsigned parameter) : k(parameter) {
    if (k < 1 || k > 8) throw std::invalid_argument("OT extension: the SoftSpoken parameter is 1 to 8");
    for (unsigned row = 0; row < base_ot_count; row += k) {
        depths.push_back(std::min<unsigned>(k, base_ot_count - row));
    }
}

void LeafStreams::begin_session(Block drawn) {
    session_ = drawn;
    early_tweaks_ = AesKey(drawn);
}

Block LeafStreams::early_tweak() const {
    const Block index = {extensions, 0};
    Block tweak;
    aes_encrypt(early_tweaks_, &index, &tweak, 1);
    return tweak;
}

OtReceiver::OtReceiver(unsigned k, const Block* base_pairs, Prg& prg, Block* setup) : streams_(k) {
    setup[2 * base_ot_count] = prg.block();
    streams_.begin_session(setup[2 * base_ot_count]);
    std::size_t row = 0;
    for (std::size_t tree = 0; tree < streams_.trees(); ++tree) {
        const unsigned depth = streams_.depths[tree];
        Block sums[16];
        std::vector<Block> leaves = expand_tree(prg.block(), depth, streams_.salt(tree), sums);
        for (const Block& leaf : leaves) streams_.leaves.emplace_back(leaf);
        zeroise(leaves.data(), leaves.size() * sizeof(Block));
        // On choice delta_b the sender must learn the sum of the children on the other side.
        for (unsigned bit = 0; bit < depth; ++bit, ++row) {
            setup[2 * row] = sums[2 * bit + 1] ^ base_pairs[2 * row];
            setup[2 * row + 1] = sums[2 * bit] ^ base_pairs[2 * row + 1];
        }
        zeroise(sums, sizeof sums);
    }
}

void OtReceiver::extend(std::size_t count, std::uint64_t* choices, bool random_choices, Block* message,
                        Block* t, unsigned threads) {
    const SymmetricKernels& kernels = symmetric_kernels();
    const std::size_t sent_trees = streams_.trees() - (random_choices ? 1 : 0);
    for_tiles(count, threads, [&](std::size_t column, std::size_t columns, std::size_t ots) {
        Block rows[128 * tile], u[tile], chosen[tile] = {};
        Block* out = message + sent_trees * column;
        if (!random_choices)
            std::memcpy(static_cast<void*>(chosen), choices + 2 * column, 8 * plane_words(ots));
        const AesKey* leaves = streams_.leaves.data();
        Block* row = rows;
        for (std::size_t tree = 0; tree < streams_.trees(); ++tree) {
            const unsigned depth = streams_.depths[tree];
            sum_streams(kernels, leaves, depth, streams_.salt(tree), streams_.next_column_block + column,
                        columns, row, u);
            if (tree == 0 && random_choices) {
                std::copy_n(u, columns, chosen);
            } else {
                for (std::size_t j = 0; j < columns; ++j) *out++ = u[j] ^ chosen[j];
            }
            leaves += std::size_t{1} << depth;
            row += depth * columns;
        }
        store_transposed(rows, columns, ots, t + 128 * column);
        if (random_choices) {
            // Bits past the last OT stay zero, as in every plane.
            std::uint64_t* words = choices + 2 * column;
            std::memcpy(words, chosen, 8 * plane_words(ots));
            if (ots % 64) words[ots / 64] &= (std::uint64_t{1} << (ots % 64)) - 1;
        }
        zeroise(rows, sizeof rows);
        zeroise(u, sizeof u);
        zeroise(chosen, sizeof chosen);
    });
    streams_.next_column_block += (count + 127) / 128;
    ++streams_.extensions;
}

void hash_received(Block r, Block* t, std::size_t count, unsigned threads) {
    for_tweaked(r, count, threads,
                [t](const AesKey& key, const Block* tweaks, std::size_t first, std::size_t ots) {
                    hash_blocks(key, t + first, tweaks, t + first, ots);
                });
}

OtSender::OtSender(unsigned k, Block delta, const Block* base_keys, const Block* setup)
    : streams_(k), delta_(delta) {
    if (!delta.lowest_bit()) throw std::invalid_argument("OT extension: the lowest bit of delta must be 1");
    streams_.begin_session(setup[2 * base_ot_count]);
    unsigned row = 0;
    for (std::size_t tree = 0; tree < streams_.trees(); ++tree) {
        const unsigned depth = streams_.depths[tree];
        Block sums[8];
        unsigned index = 0;
        for (unsigned bit = 0; bit < depth; ++bit, ++row) {
            const std::uint64_t chosen = delta.bit(row);
            index |= static_cast<unsigned>(chosen) << bit;
            const Block difference = setup[2 * row] ^ setup[2 * row + 1];
            sums[bit] = setup[2 * row] ^ (mask_of(chosen) & difference) ^ base_keys[row];
        }
        std::vector<Block> leaves = expand_punctured_tree(index, depth, streams_.salt(tree), sums);
        for (const Block& leaf : leaves) streams_.leaves.emplace_back(leaf);
        zeroise(leaves.data(), leaves.size() * sizeof(Block));
        zeroise(sums, sizeof sums);
    }
}

void OtSender::extend(std::size_t count, bool random_choices, const Block* message, Block* q,
                      unsigned threads) {
    const SymmetricKernels& kernels = symmetric_kernels();
    const std::size_t sent_trees = streams_.trees() - (random_choices ? 1 : 0);
    for_tiles(count, threads, [&](std::size_t column, std::size_t columns, std::size_t ots) {
        Block rows[128 * tile];
        const Block* in = message + sent_trees * column;
        const AesKey* leaves = streams_.leaves.data();
        unsigned row = 0;
        for (std::size_t tree = 0; tree < streams_.trees(); ++tree) {
            const unsigned depth = streams_.depths[tree];
            sum_streams(kernels, leaves, depth, streams_.salt(tree), streams_.next_column_block + column,
                        columns, rows + row * columns, nullptr);
            leaves += std::size_t{1} << depth;
            if (tree == 0 && random_choices) {  // r = u_0: nothing to correct
                row += depth;
                continue;
            }
            for (unsigned bit = 0; bit < depth; ++bit, ++row) {
                const Block mask = mask_of(delta_.bit(row));
                for (std::size_t j = 0; j < columns; ++j) rows[row * columns + j] ^= mask & in[j];
            }
            in += columns;
        }
        store_transposed(rows, columns, ots, q + 128 * column);
        zeroise(rows, sizeof rows);
    });
    streams_.next_column_block += (count + 127) / 128;
    ++streams_.extensions;
}

void OtSender::hash(Block r, const Block* q, std::size_t count, Block* zeros, Block* ones,
                    unsigned threads) const {
    for_tweaked(r, count, threads,
                [&](const AesKey& key, const Block* tweaks, std::size_t first, std::size_t ots) {
                    for (std::size_t j = first; j < first + ots; ++j) ones[j] = q[j] ^ delta_;
                    hash_blocks(key, ones + first, tweaks, ones + first, ots);
                    hash_blocks(key, q + first, tweaks, zeros + first, ots);
                });
}

}  // namespace sphynx
