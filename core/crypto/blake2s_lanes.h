// BLAKE2s's compression, generic over how many blocks are compressed side by side; each kernels' file instantiates it
// in its own unnamed namespace, as lanes.h says. A Lane offers
//   V, width           32-bit words of `width` leaves; +, ^ and copies of one number by Lane::all
//   rotated<n>(x)      each word rotated right
//   words_of(blocks)   the words of `width` neighbouring blocks: word j of all of them is out[j]
#pragma once

#include <cstring>

#include "crypto/blake2_order.h"
#include "crypto/blake2sp.h"

namespace sphynx::crypto {

constexpr std::size_t kBlake2sBlockBytes = 64, kBlake2spLeaves = 8;
constexpr std::size_t kBlake2spStripeBytes = kBlake2spLeaves * kBlake2sBlockBytes;

constexpr std::uint32_t kBlake2sInitial[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                              0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

struct Blake2spKernels {
    const char* name;
    // Compresses so many stripes, none of them the last of a leaf, into state[word][leaf]; `hashed_bytes` by each leaf.
    void (*absorb)(std::uint32_t (*state)[kBlake2spLeaves], const std::uint8_t* stripes, std::size_t count,
                   std::uint64_t hashed_bytes);
};

const Blake2spKernels& portable_blake2sp();
const Blake2spKernels& avx2_blake2sp();    // x86-64 only
const Blake2spKernels& avx512_blake2sp();  // x86-64 only

template <class Lane>
[[gnu::always_inline]] inline void blake2s_mix(typename Lane::V* v, int a, int b, int c, int d,
                                               typename Lane::V x, typename Lane::V y) {
    v[a] = v[a] + v[b] + x;
    v[d] = Lane::template rotated<16>(v[d] ^ v[a]);
    v[c] = v[c] + v[d];
    v[b] = Lane::template rotated<12>(v[b] ^ v[c]);
    v[a] = v[a] + v[b] + y;
    v[d] = Lane::template rotated<8>(v[d] ^ v[a]);
    v[c] = v[c] + v[d];
    v[b] = Lane::template rotated<7>(v[b] ^ v[c]);
}

// `hashed_bytes` with this block; the flags are all ones for the last block, and for that of a tree's last node.
template <class Lane>
[[gnu::always_inline]] inline void blake2s_compress(typename Lane::V (&state)[8],
                                                    const typename Lane::V (&words)[16],
                                                    std::uint64_t hashed_bytes, std::uint32_t last_block,
                                                    std::uint32_t last_node) {
    typename Lane::V v[16];
    for (int i = 0; i < 8; ++i) v[i] = state[i], v[i + 8] = Lane::all(kBlake2sInitial[i]);
    v[12] = Lane::all(kBlake2sInitial[4] ^ static_cast<std::uint32_t>(hashed_bytes));
    v[13] = Lane::all(kBlake2sInitial[5] ^ static_cast<std::uint32_t>(hashed_bytes >> 32));
    v[14] = Lane::all(kBlake2sInitial[6] ^ last_block);
    v[15] = Lane::all(kBlake2sInitial[7] ^ last_node);
#pragma GCC unroll 10
    for (int round = 0; round < 10; ++round) {
        const std::uint8_t* s = kBlake2WordOf[round];
        blake2s_mix<Lane>(v, 0, 4, 8, 12, words[s[0]], words[s[1]]);
        blake2s_mix<Lane>(v, 1, 5, 9, 13, words[s[2]], words[s[3]]);
        blake2s_mix<Lane>(v, 2, 6, 10, 14, words[s[4]], words[s[5]]);
        blake2s_mix<Lane>(v, 3, 7, 11, 15, words[s[6]], words[s[7]]);
        blake2s_mix<Lane>(v, 0, 5, 10, 15, words[s[8]], words[s[9]]);
        blake2s_mix<Lane>(v, 1, 6, 11, 12, words[s[10]], words[s[11]]);
        blake2s_mix<Lane>(v, 2, 7, 8, 13, words[s[12]], words[s[13]]);
        blake2s_mix<Lane>(v, 3, 4, 9, 14, words[s[14]], words[s[15]]);
    }
    for (int i = 0; i < 8; ++i) state[i] = state[i] ^ v[i] ^ v[i + 8];
}

template <class Lane>
void absorb_stripes(std::uint32_t (*state)[kBlake2spLeaves], const std::uint8_t* stripes, std::size_t count,
                    std::uint64_t hashed_bytes) {
    for (; count; --count, stripes += kBlake2spStripeBytes) {
        hashed_bytes += kBlake2sBlockBytes;
        for (std::size_t leaf = 0; leaf < kBlake2spLeaves; leaf += Lane::kWidth) {
            typename Lane::V own[8], words[16];
            for (int i = 0; i < 8; ++i) std::memcpy(&own[i], &state[i][leaf], sizeof own[i]);
            Lane::words_of(stripes + kBlake2sBlockBytes * leaf, words);
            blake2s_compress<Lane>(own, words, hashed_bytes, 0, 0);
            for (int i = 0; i < 8; ++i) std::memcpy(&state[i][leaf], &own[i], sizeof own[i]);
        }
    }
}

}  // namespace sphynx::crypto
