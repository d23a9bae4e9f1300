#include "ot/tree_check.h"

#include <cstring>
#include <vector>

namespace sphynx::ot {

TreeCheck::TreeCheck(Block session) : session_(session), all_(sizeof(Digest), "sphynx OT trees") {
    all_.update(&session_, sizeof session_);
}

Digest TreeCheck::tag_and_seed(Block& leaf, std::size_t x) const {
    std::uint8_t digest[sizeof(Digest) + sizeof(Block)];
    crypto::Blake2b hash(sizeof digest, "sphynx OT leaf");
    hash.update(&session_, sizeof session_);
    hash.update(tree_);
    hash.update(x);
    hash.update(&leaf, sizeof leaf);
    hash.finish(digest);
    Digest tag;
    std::memcpy(static_cast<void*>(&tag), digest, sizeof tag);
    std::memcpy(static_cast<void*>(&leaf), digest + sizeof tag, sizeof leaf);
    zeroise(digest, sizeof digest);
    return tag;
}

void TreeCheck::add(std::span<const Digest> tags) {
    all_.update(tags.data(), tags.size_bytes());
    ++tree_;
}

Digest TreeCheck::seal(BlockSpan leaves) {
    std::vector<Digest> tags(leaves.size());
    Digest sum;
    for (std::size_t x = 0; x < leaves.size(); ++x) sum = sum ^ (tags[x] = tag_and_seed(leaves[x], x));
    add(tags);
    zeroise(tags.data(), tags.size() * sizeof(Digest));
    return sum;
}

void TreeCheck::open(BlockSpan leaves, unsigned missing, const Digest& sum) {
    std::vector<Digest> tags(leaves.size());
    tags[0] = sum;
    for (std::size_t y = 1; y < leaves.size(); ++y)
        tags[0] = tags[0] ^ (tags[y] = tag_and_seed(leaves[y], y ^ missing));
    // From the order of y to that of x = y xor missing: for each bit that is set the halves change places.
    for (unsigned place = 0; std::size_t{1} << place < tags.size(); ++place) {
        const std::size_t bit = std::size_t{1} << place;
        const Block mask = mask_of(missing >> place);
        for (std::size_t y = 0; y < tags.size(); ++y) {
            if (y & bit) continue;
            for (int word = 0; word < 2; ++word) {
                const Block change = mask & (tags[y].words[word] ^ tags[y | bit].words[word]);
                tags[y].words[word] ^= change;
                tags[y | bit].words[word] ^= change;
            }
        }
    }
    add(tags);
    zeroise(tags.data(), tags.size() * sizeof(Digest));
}

Digest TreeCheck::all_tags() {
    Digest digest;
    all_.finish(&digest);
    return digest;
}

}  // namespace sphynx::ot
