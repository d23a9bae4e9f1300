// Bit-sliced AES on 64-bit words, four blocks at a time: plane[b] holds bit b of all 64 bytes, byte 16 j + i
// being byte i of block j. Constant time on any CPU: only XOR, AND, NOT and fixed shifts touch the data.
#include <cstring>

#include "crypto/general_registers.h"
#include "crypto/lanes.h"
#include "crypto/sbox.h"

namespace sphynx::crypto {
namespace {

using Planes = std::array<std::uint64_t, 8>;

// Bit 8 r + c becomes bit 8 c + r.
std::uint64_t transpose_8x8(std::uint64_t x) {
    std::uint64_t t = (x ^ (x >> 7)) & 0x00aa00aa00aa00aa;
    x ^= t ^ (t << 7);
    t = (x ^ (x >> 14)) & 0x0000cccc0000cccc;
    x ^= t ^ (t << 14);
    t = (x ^ (x >> 28)) & 0x00000000f0f0f0f0;
    return x ^ t ^ (t << 28);
}

Planes to_planes(const Block* blocks) {
    std::uint64_t words[8];
    std::memcpy(words, blocks, sizeof words);
    Planes planes{};
    for (int word = 0; word < 8; ++word) {
        const std::uint64_t rows = transpose_8x8(words[word]);
        for (int bit = 0; bit < 8; ++bit) planes[bit] |= (rows >> (8 * bit) & 0xff) << (8 * word);
    }
    return planes;
}

void from_planes(const Planes& planes, Block* blocks) {
    std::uint64_t words[8];
    for (int word = 0; word < 8; ++word) {
        std::uint64_t rows = 0;
        for (int bit = 0; bit < 8; ++bit) rows |= (planes[bit] >> (8 * word) & 0xff) << (8 * bit);
        words[word] = transpose_8x8(rows);
    }
    std::memcpy(blocks, words, sizeof words);
}

// Byte 4 c + r of the result is byte 4 (c + r) + r: a rotation by 4 r inside each 16-bit group.
std::uint64_t shift_rows(std::uint64_t x) {
    std::uint64_t shifted = x & 0x1111111111111111;
    shifted |= (x >> 4 & 0x0222022202220222) | (x << 12 & 0x2000200020002000);
    shifted |= (x >> 8 & 0x0044004400440044) | (x << 8 & 0x4400440044004400);
    shifted |= (x >> 12 & 0x0008000800080008) | (x << 4 & 0x8880888088808880);
    return shifted;
}

// Byte r of each column becomes byte r + 1 (rows read downwards), and r + 2.
std::uint64_t next_row(std::uint64_t x) {
    return (x >> 1 & 0x7777777777777777) | (x << 3 & 0x8888888888888888);
}
std::uint64_t opposite_row(std::uint64_t x) {
    return (x >> 2 & 0x3333333333333333) | (x << 2 & 0xcccccccccccccccc);
}

// b_r = 2 (a_r + a_{r+1}) + a_{r+1} + a_{r+2} + a_{r+3}
Planes mix_columns(const Planes& a) {
    Planes pair, mixed;
    for (int bit = 0; bit < 8; ++bit) pair[bit] = a[bit] ^ next_row(a[bit]);
    for (int bit = 0; bit < 8; ++bit) {
        std::uint64_t doubled = pair[(bit + 7) & 7];
        if (bit == 1 || bit == 3 || bit == 4) doubled ^= pair[7];
        mixed[bit] = doubled ^ next_row(a[bit]) ^ opposite_row(pair[bit]);
    }
    return mixed;
}

struct PortableLane : GeneralRegisters {
    static constexpr std::size_t kWidth = 1;
    using Side = GeneralRegisters;

    struct Key {
        Planes round[11];
        explicit Key(const AesKey& key) {
            for (int i = 0; i < 11; ++i) {
                const Block copies[4] = {key.round_keys()[i], key.round_keys()[i], key.round_keys()[i],
                                         key.round_keys()[i]};
                round[i] = to_planes(copies);
            }
        }
        ~Key() { zeroise(round, sizeof round); }
    };

    static V from_side(V value) { return value; }
    static V select(V mask, V a, V b) { return b ^ (mask & (a ^ b)); }

    template <class Work>
    static void rounds(const Key& key, V (&state)[4], const Work& work) {
        encrypt_four(key, state);
        unrolled<8>(work);
    }
    template <class Work = NoWork>
    static void encrypt(const Key& key, V (&state)[8], const Work& work = {}) {
        encrypt_four(key, state);
        encrypt_four(key, state + 4);
        unrolled<8>(work);
    }
    static void encrypt_each(const AesKey* keys, V (&state)[8]) {
        for (int i = 0; i < 4; ++i) {
            V padded[4] = {state[2 * i], state[2 * i + 1], {}, {}};
            encrypt_four(Key(keys[i]), padded);
            state[2 * i] = padded[0], state[2 * i + 1] = padded[1];
        }
    }
    static void encrypt_four(const Key& key, V* state) {
        Planes planes = to_planes(state);
        for (int bit = 0; bit < 8; ++bit) planes[bit] ^= key.round[0][bit];
        for (int round = 1; round <= 10; ++round) {
            planes = sbox::substitute<std::uint64_t>(planes);
            for (std::uint64_t& plane : planes) plane = shift_rows(plane);
            if (round < 10) planes = mix_columns(planes);
            for (int bit = 0; bit < 8; ++bit) planes[bit] ^= key.round[round][bit];
        }
        from_planes(planes, state);
    }
};

std::uint32_t substitute_word(std::uint32_t word) {
    const Planes bytes =
        sbox::substitute<std::uint64_t>(to_planes(std::array<Block, 4>{Block{word, 0}}.data()));
    std::array<Block, 4> blocks;
    from_planes(bytes, blocks.data());
    return static_cast<std::uint32_t>(blocks[0].lo);
}

}  // namespace

const SymmetricKernels& portable_kernels() {
    static constexpr SymmetricKernels table = lane_kernels<PortableLane>("portable", substitute_word);
    return table;
}

}  // namespace sphynx::crypto
