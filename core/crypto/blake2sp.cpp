#include "crypto/blake2sp.h"

#include <algorithm>
#include <bit>

#include "cpu.h"
#include "crypto/blake2s_lanes.h"

#if defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace sphynx::crypto {
namespace {

// Digest and inner bytes, fanout and depth of the tree; a node's number and height are in words 2 and 3.
constexpr std::uint32_t kDigestBytes = kBlake2spBytes, kLeaves = kBlake2spLeaves;
constexpr std::uint32_t kParameters[4] = {kDigestBytes | kLeaves << 16 | 2 << 24, 0, 0, kDigestBytes << 24};
constexpr std::uint32_t kOnRoot = 1 << 16, kSet = ~std::uint32_t{0};

struct OneLane {
    using V = std::uint32_t;
    template <int n>
    static V rotated(V x) {
        return std::rotr(x, n);
    }
    static V all(std::uint32_t number) { return number; }
};

// Four leaves by whatever vectors of 128 bits the CPU has at least.
struct FourLanes {
    typedef std::uint32_t V __attribute__((vector_size(16)));
    static constexpr std::size_t kWidth = 4;

    static V all(std::uint32_t number) { return V{} + number; }
    template <int n>
    static V rotated(V x) {
#if defined(__aarch64__)
        if constexpr (n == 16) {
            return reinterpret_cast<V>(vrev32q_u16(vreinterpretq_u16_u32(reinterpret_cast<uint32x4_t>(x))));
        } else if constexpr (n == 8) {
            const uint8x16_t places = {1, 2, 3, 0, 5, 6, 7, 4, 9, 10, 11, 8, 13, 14, 15, 12};
            return reinterpret_cast<V>(vqtbl1q_u8(reinterpret_cast<uint8x16_t>(x), places));
        } else {
            const auto own = reinterpret_cast<uint32x4_t>(x);
            return reinterpret_cast<V>(vsriq_n_u32(vshlq_n_u32(own, 32 - n), own, n));
        }
#else
        return (x >> n) | (x << (32 - n));
#endif
    }
    static void words_of(const std::uint8_t* blocks, V (&words)[16]) {
        std::uint32_t own[kWidth][16];
        std::memcpy(own, blocks, sizeof own);
        for (int i = 0; i < 16; ++i) words[i] = V{own[0][i], own[1][i], own[2][i], own[3][i]};
    }
};

// The blocks of one node, of which only the root's and each leaf's last ones come this way.
class Node {
  public:
    Node(const std::uint32_t (&state)[8], std::uint64_t hashed_bytes, bool is_last)
        : hashed_bytes_(hashed_bytes), last_node_(is_last ? kSet : 0) {
        std::copy_n(state, 8, state_);
    }
    // The whole block, or the last one of the node, which may be shorter.
    void take(const std::uint8_t* bytes, std::size_t count, bool is_last) {
        std::uint32_t words[16] = {};
        if (count) std::memcpy(words, bytes, count);
        hashed_bytes_ += count;
        blake2s_compress<OneLane>(state_, words, hashed_bytes_, is_last ? kSet : 0, is_last ? last_node_ : 0);
    }
    const std::uint32_t* digest() const { return state_; }

  private:
    std::uint32_t state_[8];
    std::uint64_t hashed_bytes_;
    std::uint32_t last_node_;
};

const Blake2spKernels& blake2sp_kernels() {
#if defined(__x86_64__)
    const CpuFeatures& cpu = usable_features();
    if (cpu.avx512) return avx512_blake2sp();
    if (cpu.avx2) return avx2_blake2sp();
#endif
    return portable_blake2sp();
}

std::uint32_t first_state(int word, std::size_t leaf) {
    const std::uint32_t number = word == 2 ? static_cast<std::uint32_t>(leaf) : 0;
    return kBlake2sInitial[word] ^ (word < 4 ? kParameters[word] : 0) ^ number;
}

}  // namespace

const Blake2spKernels& portable_blake2sp() {
    static constexpr Blake2spKernels table = {"portable", absorb_stripes<FourLanes>};
    return table;
}

void blake2sp(const void* message, std::size_t count, void* digest) {
    const auto* bytes = static_cast<const std::uint8_t*>(message);
    constexpr std::size_t block = kBlake2sBlockBytes, stripe = kBlake2spStripeBytes;
    std::uint32_t state[8][kBlake2spLeaves];
    for (int i = 0; i < 8; ++i) {
        for (std::size_t leaf = 0; leaf < kBlake2spLeaves; ++leaf) state[i][leaf] = first_state(i, leaf);
    }
    // Every leaf has a block after these.
    const std::size_t full = count > stripe - block ? (count - (stripe - block) - 1) / stripe : 0;
    blake2sp_kernels().absorb(state, bytes, full, 0);

    std::uint32_t digests[kBlake2spLeaves][8], of_root[8];
    for (std::size_t leaf = 0; leaf < kBlake2spLeaves; ++leaf) {
        std::uint32_t own[8];
        for (int i = 0; i < 8; ++i) own[i] = state[i][leaf];
        Node node(own, block * full, leaf + 1 == kBlake2spLeaves);
        for (std::size_t at = std::min(count, stripe * full + block * leaf);;) {
            const std::size_t taken = std::min(block, count - at), next = at + stripe;
            node.take(bytes + at, taken, next >= count);
            if (next >= count) break;
            at = next;
        }
        std::copy_n(node.digest(), 8, digests[leaf]);
    }
    for (int i = 0; i < 8; ++i) of_root[i] = first_state(i, 0) ^ (i == 3 ? kOnRoot : 0);
    Node root(of_root, 0, true);
    std::uint8_t all[sizeof digests];
    std::memcpy(all, digests, sizeof all);
    for (std::size_t at = 0; at < sizeof all; at += block)
        root.take(all + at, block, at + block == sizeof all);
    std::memcpy(digest, root.digest(), kBlake2spBytes);
}

const char* blake2sp_path_name() {
    return blake2sp_kernels().name;
}

}  // namespace sphynx::crypto
