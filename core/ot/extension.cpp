#include "ot/extension.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <stdexcept>

#include "bits/transpose.h"
#include "crypto/blake2sp.h"
#include "crypto/hash.h"
#include "crypto/kernels.h"
#include "crypto/prg.h"
#include "crypto/tweaks.h"
#include "ot/punctured_tree.h"
#include "ot/row_check.h"
#include "secret.h"
#include "threads.h"

namespace sphynx::ot {

using crypto::AesKey;

namespace {

constexpr std::size_t kTile =
    8;  // column blocks that go through all trees together: 1,024 OTs, 16 KB of rows

// rows[b * count ..] = the sum of the streams of all leaves whose index has bit b, u = the sum of all. The
// index runs like a binary counter: `pending[l]` is the sum over the last finished left subtree of height l.
// Leaf 0 adds to u only: the sender, who lacks it and wants no u (nullptr), may have any key in its place.
void sum_streams(const crypto::SymmetricKernels& kernels, const AesKey* leaves, unsigned depth, Block salt,
                 std::uint64_t column_block, std::size_t count, Block* rows, Block* u) {
    const Block counter = {salt.lo, __builtin_bswap64(column_block)};
    Block pending[9][kTile];
    Block current[kTile];
    if (depth == 4) {
        kernels.sum_sixteen_streams(leaves, counter, rows, u != nullptr ? u : current, count);
        zeroise(current, sizeof current);
        return;
    }
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

// Cuts an extension of so many column blocks into tiles and hands each to work(first column block, column blocks, OTs,
// hashes, memory): room for the rows of a tile, wiped at the end. Hashes of all tiles add up in `total`, where there is one.
template <class Work>
void for_tiles(std::size_t column_blocks, std::size_t count, Block alpha, RowHashes* total, unsigned threads,
               const Work& work) {
    std::mutex adding;
    parallel_ranges(column_blocks, kTile, threads, [&](std::size_t begin, std::size_t end) {
        RowHashes hashes(alpha, begin, column_blocks - 1);
        Block memory[128 * kTile];
        for (std::size_t column = begin; column < end; column += kTile) {
            const std::size_t columns = std::min(kTile, end - column);
            const std::size_t before = std::min(count, 128 * column);
            work(column, columns, std::min(count - before, 128 * columns), hashes, memory);
        }
        zeroise(memory, sizeof memory);
        if (total == nullptr) return;
        const std::lock_guard alone(adding);
        *total ^= hashes;
    });
}

void store_transposed(BlockView rows, BlockSpan out) {
    const std::size_t columns = rows.size() / 128;
    if (out.size() == rows.size()) {
        bits::transpose_rows_to_blocks(rows.data(), columns, out.data());
    } else {
        Block padded[128 * kTile];
        bits::transpose_rows_to_blocks(rows.data(), columns, padded);
        std::copy_n(padded, out.size(), out.data());
        zeroise(padded, sizeof padded);
    }
}

constexpr std::size_t kHashGrain = 1024;

// Cuts `count` OTs and hands each part to work(key, tweaks, first OT, OTs); the tweak of OT j is j R.
template <class Work>
void for_tweaked(Block r, std::size_t count, unsigned threads, const Work& work) {
    constexpr std::size_t most = 256;
    constexpr std::uint64_t stream = 1;  // garbling takes the keys of its gates from stream 0 of the same R
    Block raw;
    crypto::expand_seed(AesKey(r), stream, 0, &raw, 1);
    const AesKey key(raw);
    const crypto::Tweaks tweaks(r);
    parallel_ranges(count, kHashGrain, threads, [&](std::size_t begin, std::size_t end) {
        Block own[most];
        for (std::size_t first = begin; first < end; first += most) {
            const std::size_t ots = std::min(most, end - first);
            tweaks.fill(first, own, ots);
            work(key, own, first, ots);
        }
    });
}

constexpr std::size_t kRowCheckBlocks = 3;  // h(r), and a digest

std::size_t column_blocks_of(std::size_t count, bool checked) {
    return (count + 127) / 128 + (checked ? 1 : 0);
}

}  // namespace

std::size_t setup_blocks(unsigned k, bool checked) {
    const std::size_t trees = (kBaseOtCount + k - 1) / k;
    return 2 * kBaseOtCount + 1 + (checked ? 2 * trees + 2 : 0);
}

std::size_t extension_message_blocks(unsigned k, std::size_t count, bool random_choices, bool checked) {
    const std::size_t sent_trees = (kBaseOtCount + k - 1) / k - (random_choices ? 1 : 0);
    return sent_trees * column_blocks_of(count, checked) + (checked ? kRowCheckBlocks : 0);
}

LeafStreams::LeafStreams(unsigned parameter, bool is_checked) : k(parameter), checked(is_checked) {
    if (k < 1 || k > 8) throw std::invalid_argument("OT extension: the SoftSpoken parameter is 1 to 8");
    for (unsigned row = 0; row < kBaseOtCount; row += k) {
        depths.push_back(std::min<unsigned>(k, kBaseOtCount - row));
    }
}

void LeafStreams::bind(ByteView said) {
    crypto::Blake2b hash(sizeof context_, "sphynx OT session");
    hash.update(&context_, sizeof context_);
    hash.update(said.data(), said.size());
    hash.finish(&context_);
}

Block LeafStreams::challenge(std::size_t count, bool random_choices, BlockView sent) const {
    crypto::Blake2b hash(sizeof(Block), "sphynx OT extension");
    hash.update(&context_, sizeof context_);
    hash.update(extensions);
    hash.update(count);
    hash.update(random_choices);
    // The message is public and long: by a hash that takes it eight blocks at a time.
    std::uint8_t of_message[crypto::kBlake2spBytes];
    crypto::blake2sp(sent.data(), sent.size_bytes(), of_message);
    hash.update(of_message, sizeof of_message);
    Block alpha;
    hash.finish(&alpha);
    return alpha;
}

void LeafStreams::begin_session(Block drawn) {
    session_ = drawn;
    early_tweaks_ = AesKey(drawn);
}

Block LeafStreams::early_tweak() const {
    const Block index = {extensions, 0};
    Block tweak;
    crypto::aes_encrypt(early_tweaks_, &index, &tweak, 1);
    return tweak;
}

OtReceiver::OtReceiver(unsigned k, bool checked, BlockView base_pairs, crypto::Prg& prg, BlockSpan setup)
    : streams_(k, checked) {
    const Block session = setup[2 * kBaseOtCount] = prg.block();
    Block* digests = setup.data() + 2 * kBaseOtCount + 1;  // of each tree, then of all
    streams_.begin_session(session);
    TreeCheck check(session);
    std::size_t row = 0;
    for (std::size_t tree = 0; tree < streams_.trees(); ++tree) {
        const unsigned depth = streams_.depths[tree];
        Block sums[16];
        std::vector<Block> leaves =
            expand_tree(prg.block(), streams_.salt(tree), BlockSpan(sums).first(2 * depth));
        if (checked) digests = std::copy_n(check.seal(leaves).words, 2, digests);
        for (const Block& leaf : leaves) streams_.leaves.emplace_back(leaf);
        zeroise(leaves.data(), leaves.size() * sizeof(Block));
        // On choice delta_b the sender must learn the sum of the children on the other side.
        for (unsigned bit = 0; bit < depth; ++bit, ++row) {
            setup[2 * row] = sums[2 * bit + 1] ^ base_pairs[2 * row];
            setup[2 * row + 1] = sums[2 * bit] ^ base_pairs[2 * row + 1];
        }
        zeroise(sums, sizeof sums);
    }
    if (!checked) return;
    std::copy_n(check.all_tags().words, 2, digests);
    streams_.bind(bytes_of(setup));
    mask_choices_ = AesKey(prg.block());
}

// Two passes: alpha is known when the whole message is. Until then rows stay where their t will be; those of tiles that
// are not all OTs have a place of their own.
void OtReceiver::extend(WordSpan choices, bool random_choices, BlockSpan message, BlockSpan t,
                        unsigned threads) {
    const crypto::SymmetricKernels& kernels = crypto::symmetric_kernels();
    const bool checked = streams_.checked;
    const std::size_t count = t.size(), sent_trees = streams_.trees() - (random_choices ? 1 : 0);
    const std::size_t column_blocks = column_blocks_of(count, checked);
    const std::size_t whole_tiles = count / (128 * kTile) * kTile;  // in column blocks
    std::vector<Block> r(column_blocks), last_rows(128 * (column_blocks - whole_tiles));
    const auto rows_at = [&](std::size_t column) {
        return column < whole_tiles ? t.data() + 128 * column
                                    : last_rows.data() + 128 * (column - whole_tiles);
    };
    if (!random_choices) {
        std::memcpy(static_cast<void*>(r.data()), choices.data(), choices.size_bytes());
        const Block number = {streams_.extensions, 0};
        if (checked) crypto::aes_encrypt(mask_choices_, &number, &r.back(), 1);
    }
    for_tiles(column_blocks, count, {}, nullptr, threads,
              [&](std::size_t column, std::size_t columns, std::size_t, RowHashes&, Block*) {
                  Block u[kTile];
                  Block *out = message.data() + sent_trees * column, *row = rows_at(column);
                  Block* const chosen = r.data() + column;
                  const AesKey* leaves = streams_.leaves.data();
                  for (std::size_t tree = 0; tree < streams_.trees(); ++tree) {
                      const unsigned depth = streams_.depths[tree];
                      sum_streams(kernels, leaves, depth, streams_.salt(tree),
                                  streams_.next_column_block + column, columns, row, u);
                      if (tree == 0 && random_choices) {
                          std::copy_n(u, columns, chosen);
                      } else {
                          for (std::size_t j = 0; j < columns; ++j) *out++ = u[j] ^ chosen[j];
                      }
                      leaves += std::size_t{1} << depth;
                      row += depth * columns;
                  }
                  zeroise(u, sizeof u);
              });
    const std::size_t sent_blocks = sent_trees * column_blocks;
    const Block alpha =
        checked ? streams_.challenge(count, random_choices, message.first(sent_blocks)) : Block{};
    RowHashes total(alpha, 0, column_blocks - 1);
    for_tiles(
        column_blocks, count, alpha, checked ? &total : nullptr, threads,
        [&](std::size_t column, std::size_t columns, std::size_t ots, RowHashes& hashes, Block* memory) {
            const BlockSpan rows(memory, 128 * columns);
            std::copy_n(rows_at(column), rows.size(), memory);
            if (checked) hashes.add(rows, BlockView(r).subspan(column, columns));
            // Columns that only the check needs hold no OT, and t ends before them.
            if (ots > 0) store_transposed(rows, t.subspan(128 * column, ots));
        });
    if (checked) {
        message[sent_blocks] = total.of_choices();
        std::copy_n(total.digest_of_rows({}).words, 2, &message[sent_blocks + 1]);
    }
    if (random_choices) {
        // Bits past the last OT stay zero, as in every plane.
        std::memcpy(choices.data(), r.data(), choices.size_bytes());
        if (count % 64) choices[count / 64] &= (std::uint64_t{1} << (count % 64)) - 1;
    }
    zeroise(r.data(), r.size() * sizeof(Block));
    zeroise(last_rows.data(), last_rows.size() * sizeof(Block));
    streams_.next_column_block += column_blocks;
    ++streams_.extensions;
}

void hash_received(Block r, BlockSpan t, unsigned threads) {
    for_tweaked(r, t.size(), threads,
                [t](const AesKey& key, const Block* tweaks, std::size_t first, std::size_t ots) {
                    crypto::hash_blocks(key, &t[first], tweaks, &t[first], ots);
                });
}

OtSender::OtSender(unsigned k, bool checked, Block delta, BlockView base_keys, BlockView setup)
    : streams_(k, checked), delta_(delta) {
    if (!delta.lowest_bit()) throw std::invalid_argument("OT extension: the lowest bit of delta must be 1");
    const Block session = setup[2 * kBaseOtCount];
    const auto digest = [tags = setup.subspan(2 * kBaseOtCount + 1)](std::size_t tree) -> Digest {
        return {{tags[2 * tree], tags[2 * tree + 1]}};
    };
    streams_.begin_session(session);
    TreeCheck check(session);
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
        std::vector<Block> leaves =
            expand_punctured_tree(index, streams_.salt(tree), BlockView(sums).first(depth));
        if (checked) check.open(leaves, index, digest(tree));
        for (const Block& leaf : leaves) streams_.leaves.emplace_back(leaf);
        zeroise(leaves.data(), leaves.size() * sizeof(Block));
        zeroise(sums, sizeof sums);
    }
    if (!checked) return;
    has_refused_ = public_value(difference(check.all_tags(), digest(streams_.trees()))) != 0;
    streams_.bind(bytes_of(setup));
}

bool OtSender::extend(bool random_choices, BlockView message, BlockSpan q, unsigned threads) {
    if (has_refused_) return false;
    const crypto::SymmetricKernels& kernels = crypto::symmetric_kernels();
    const bool checked = streams_.checked;
    const std::size_t count = q.size(), sent_trees = streams_.trees() - (random_choices ? 1 : 0);
    const std::size_t column_blocks = column_blocks_of(count, checked),
                      sent_blocks = sent_trees * column_blocks;
    const Block alpha =
        checked ? streams_.challenge(count, random_choices, message.first(sent_blocks)) : Block{};
    RowHashes total(alpha, 0, column_blocks - 1);
    for_tiles(column_blocks, count, alpha, checked ? &total : nullptr, threads,
              [&](std::size_t column, std::size_t columns, std::size_t ots, RowHashes& hashes, Block* rows) {
                  const Block* in = message.data() + sent_trees * column;
                  const AesKey* leaves = streams_.leaves.data();
                  unsigned row = 0;
                  for (std::size_t tree = 0; tree < streams_.trees(); ++tree) {
                      const unsigned depth = streams_.depths[tree];
                      sum_streams(kernels, leaves, depth, streams_.salt(tree),
                                  streams_.next_column_block + column, columns, rows + row * columns,
                                  nullptr);
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
                  const BlockView all_rows(rows, 128 * columns);
                  if (checked) hashes.add(all_rows, {});
                  if (ots > 0) store_transposed(all_rows, q.subspan(128 * column, ots));
              });
    streams_.next_column_block += column_blocks;
    ++streams_.extensions;
    if (!checked) return true;
    const BlockView sent = message.subspan(sent_blocks);
    Block corrections[kCheckRows];
    for (std::size_t b = 0; b < kCheckRows; ++b) corrections[b] = mask_of(delta_.bit(b)) & sent[0];
    has_refused_ = public_value(difference(total.digest_of_rows(corrections), {{sent[1], sent[2]}})) != 0;
    zeroise(corrections, sizeof corrections);
    if (has_refused_) zeroise(q.data(), q.size_bytes());
    return !has_refused_;
}

void OtSender::hash(Block r, BlockView q, BlockSpan zeros, BlockSpan ones, unsigned threads) const {
    for_tweaked(r, q.size(), threads,
                [&](const AesKey& key, const Block* tweaks, std::size_t first, std::size_t ots) {
                    for (std::size_t j = first; j < first + ots; ++j) ones[j] = q[j] ^ delta_;
                    crypto::hash_blocks(key, &ones[first], tweaks, &ones[first], ots);
                    crypto::hash_blocks(key, &q[first], tweaks, &zeros[first], ots);
                });
}

}  // namespace sphynx::ot
