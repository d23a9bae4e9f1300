// Whether the receiver's trees are what the sender got of them (Roy, eprint 2022/192, the consistency check of its
// punctured trees): a corrupted level sum would give the sender other leaves for one value of a bit of delta.
//
//   leaf x of tree i    tag, seed = BLAKE2b(session, i, x, leaf), 32 and 16 bytes; streams run on the seed
//   sent, once          the sum of the tags of each tree, and a BLAKE2b of all tags of all trees
//
// The sender computes all tags but one of a tree, gets that one from the sum, and compares the hash. Both digests have
// 256 bits, so a receiver is bound to one tag for each leaf, and to one leaf for each tag, before delta is used: a check
// that passes says that the sender's leaves are those. It passes for a corrupted sum if, and only if, delta has the
// bits that the receiver guessed. The missing leaf's tag says nothing of its seed.
#pragma once

#include "crypto/blake2b.h"
#include "views.h"

namespace sphynx::ot {

struct Digest {
    Block words[2] = {};

    friend Digest operator^(const Digest& a, const Digest& b) {
        return {{a.words[0] ^ b.words[0], a.words[1] ^ b.words[1]}};
    }
    // 0 if equal; without a branch, for digests of secrets.
    friend std::uint64_t difference(const Digest& a, const Digest& b) {
        const Digest c = a ^ b;
        return c.words[0].lo | c.words[0].hi | c.words[1].lo | c.words[1].hi;
    }
};

static_assert(sizeof(Digest) == 32);

class TreeCheck {
  public:
    explicit TreeCheck(Block session);

    // Replaces the leaves of the next tree by seeds; the receiver's. Returns the sum of its tags.
    Digest seal(BlockSpan leaves);

    // The same for the sender, whose leaf y is x xor `missing`, y = 0 unknown and left as it is. No branch or address
    // depends on `missing`.
    void open(BlockSpan leaves, unsigned missing, const Digest& sum);

    Digest all_tags();  // once, after the last tree

  private:
    Digest tag_and_seed(Block& leaf, std::size_t x) const;
    void add(std::span<const Digest> tags);

    Block session_;
    std::size_t tree_ = 0;
    crypto::Blake2b all_;
};

}  // namespace sphynx::ot
