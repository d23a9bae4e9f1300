// The AES S-box as a Boolean circuit: inversion in the tower GF(((2^2)^2)^2), 36 ANDs, no table.
// Generic over the bit type: 64-bit words give the bit-sliced portable AES, circuit wires give a garbled AES.
// The change of basis is computed at compile time from the two field definitions rather than written down.
#pragma once

#include <array>
#include <cstdint>

namespace sphynx::crypto::sbox {

// Elements of the tower as integers: GF(4) = {0..3} with w = 2, w^2 = w + 1; GF(16) = GF(4)[z]/(z^2 + z + w);
// GF(256) = GF(16)[y]/(y^2 + y + nu). The high half of the bits is the coefficient of the newest root.
constexpr unsigned multiply4(unsigned a, unsigned b) {
    const unsigned a1 = a >> 1, a0 = a & 1, b1 = b >> 1, b0 = b & 1;
    const unsigned low = a0 & b0;
    return (((a0 ^ a1) & (b0 ^ b1)) ^ low) << 1 | (low ^ (a1 & b1));
}
constexpr unsigned multiply16(unsigned a, unsigned b) {
    const unsigned a1 = a >> 2, a0 = a & 3, b1 = b >> 2, b0 = b & 3;
    const unsigned low = multiply4(a0, b0), high = multiply4(a1, b1);
    return (multiply4(a0 ^ a1, b0 ^ b1) ^ low) << 2 | (low ^ multiply4(high, 2));
}

// A constant that makes y^2 + y + nu irreducible: no root in GF(16).
constexpr unsigned find_nu() {
    for (unsigned kNu = 1; kNu < 16; ++kNu) {
        bool root = false;
        for (unsigned y = 0; y < 16; ++y) root |= (multiply16(y, y) ^ y ^ kNu) == 0;
        if (!root) return kNu;
    }
    return 0;
}
constexpr unsigned kNu = find_nu();

constexpr unsigned multiply256(unsigned a, unsigned b) {
    const unsigned a1 = a >> 4, a0 = a & 15, b1 = b >> 4, b0 = b & 15;
    const unsigned low = multiply16(a0, b0), high = multiply16(a1, b1);
    return (multiply16(a0 ^ a1, b0 ^ b1) ^ low) << 4 | (low ^ multiply16(high, kNu));
}

// columns[i] is the image of bit i.
using LinearMap = std::array<std::uint8_t, 8>;

constexpr unsigned apply(const LinearMap& map, unsigned value) {
    unsigned image = 0;
    for (int i = 0; i < 8; ++i) image ^= (value >> i & 1) * map[i];
    return image;
}

// x -> a root of AES's polynomial x^8 + x^4 + x^3 + x + 1 in the tower: an isomorphism of the two fields.
constexpr LinearMap find_to_tower() {
    for (unsigned root = 2; root < 256; ++root) {
        LinearMap powers{};
        unsigned power = 1;
        for (int i = 0; i < 8; ++i, power = multiply256(power, root))
            powers[i] = static_cast<std::uint8_t>(power);
        if ((power ^ powers[4] ^ powers[3] ^ powers[1] ^ powers[0]) == 0) return powers;
    }
    return {};
}
constexpr LinearMap kToTower = find_to_tower();

// Back from the tower, followed by the S-box's affine map without its constant 0x63.
constexpr LinearMap find_from_tower() {
    LinearMap map{};
    for (int bit = 0; bit < 8; ++bit) {
        unsigned value = 0;
        while (apply(kToTower, value) != 1u << bit) ++value;
        unsigned image = 0;
        for (int turn = 0; turn < 5; ++turn) image ^= (value << turn | value >> (8 - turn)) & 255;
        map[bit] = static_cast<std::uint8_t>(image);
    }
    return map;
}
constexpr LinearMap kFromTower = find_from_tower();

template <class Bit, int n>
using Bits = std::array<Bit, n>;

template <class Bit, int n>
Bits<Bit, n> add(const Bits<Bit, n>& a, const Bits<Bit, n>& b) {
    Bits<Bit, n> sum = a;
    for (int i = 0; i < n; ++i) sum[i] = a[i] ^ b[i];
    return sum;
}

template <class Bit, int n>
Bits<Bit, n / 2> low_half(const Bits<Bit, n>& a) {
    Bits<Bit, n / 2> half{};
    for (int i = 0; i < n / 2; ++i) half[i] = a[i];
    return half;
}

template <class Bit, int n>
Bits<Bit, n / 2> high_half(const Bits<Bit, n>& a) {
    Bits<Bit, n / 2> half{};
    for (int i = 0; i < n / 2; ++i) half[i] = a[n / 2 + i];
    return half;
}

template <class Bit, int n>
Bits<Bit, 2 * n> join(const Bits<Bit, n>& low, const Bits<Bit, n>& high) {
    Bits<Bit, 2 * n> both{};
    for (int i = 0; i < n; ++i) both[i] = low[i], both[n + i] = high[i];
    return both;
}

// Multiplication by a public constant of the same field, as XORs.
template <class Bit, int n>
Bits<Bit, n> scale(const Bits<Bit, n>& a, unsigned constant) {
    Bits<Bit, n> product{};
    std::array<bool, n> set{};
    for (int i = 0; i < n; ++i) {
        const unsigned column = n == 2 ? multiply4(1u << i, constant) : multiply16(1u << i, constant);
        for (int j = 0; j < n; ++j) {
            if (!(column >> j & 1)) continue;
            product[j] = set[j] ? product[j] ^ a[i] : a[i];
            set[j] = true;
        }
    }
    return product;
}

// Karatsuba over each level: 3 ANDs in GF(4), 9 in GF(16).
template <class Bit, int n>
Bits<Bit, n> multiply(const Bits<Bit, n>& a, const Bits<Bit, n>& b) {
    if constexpr (n == 1) {
        return {a[0] & b[0]};
    } else {
        const auto low = multiply<Bit, n / 2>(low_half<Bit, n>(a), low_half<Bit, n>(b));
        const auto high = multiply<Bit, n / 2>(high_half<Bit, n>(a), high_half<Bit, n>(b));
        const auto cross = multiply<Bit, n / 2>(add<Bit, n / 2>(low_half<Bit, n>(a), high_half<Bit, n>(a)),
                                                add<Bit, n / 2>(low_half<Bit, n>(b), high_half<Bit, n>(b)));
        if constexpr (n == 2) {
            return join<Bit, 1>(add<Bit, 1>(low, high), add<Bit, 1>(cross, low));
        } else {
            return join<Bit, n / 2>(add<Bit, n / 2>(low, scale<Bit, n / 2>(high, 2)),
                                    add<Bit, n / 2>(cross, low));
        }
    }
}

// Squaring is linear: the square of each basis element, added up.
template <class Bit, int n>
Bits<Bit, n> square(const Bits<Bit, n>& a) {
    Bits<Bit, n> result{};
    std::array<bool, n> set{};
    for (int i = 0; i < n; ++i) {
        const unsigned column = n == 2 ? multiply4(1u << i, 1u << i) : multiply16(1u << i, 1u << i);
        for (int j = 0; j < n; ++j) {
            if (!(column >> j & 1)) continue;
            result[j] = set[j] ? result[j] ^ a[i] : a[i];
            set[j] = true;
        }
    }
    return result;
}

// 1/(a1 t + a0) = (a1 t + (a0 + a1)) / norm, norm = a1^2 c + a1 a0 + a0^2, for t^2 = t + c. 0 goes to 0.
template <class Bit, int n>
Bits<Bit, n> invert(const Bits<Bit, n>& a) {
    if constexpr (n == 2) {
        return square<Bit, 2>(a);  // a^3 = 1 in GF(4)
    } else {
        constexpr unsigned c = n == 4 ? 2 : kNu;
        const auto a0 = low_half<Bit, n>(a), a1 = high_half<Bit, n>(a);
        const auto cross = add<Bit, n / 2>(multiply<Bit, n / 2>(a1, a0), square<Bit, n / 2>(a0));
        const auto norm = add<Bit, n / 2>(scale<Bit, n / 2>(square<Bit, n / 2>(a1), c), cross);
        const auto inverse = invert<Bit, n / 2>(norm);
        return join<Bit, n / 2>(multiply<Bit, n / 2>(add<Bit, n / 2>(a0, a1), inverse),
                                multiply<Bit, n / 2>(a1, inverse));
    }
}

template <class Bit>
Bits<Bit, 8> map_bits(const LinearMap& map, const Bits<Bit, 8>& a) {
    Bits<Bit, 8> image{};
    std::array<bool, 8> set{};
    for (int i = 0; i < 8; ++i) {
        for (int j = 0; j < 8; ++j) {
            if (!(map[i] >> j & 1)) continue;
            image[j] = set[j] ? image[j] ^ a[i] : a[i];
            set[j] = true;
        }
    }
    return image;
}

// S(a); bits[0] is the lowest. Bit needs ^, & and ~ (the complement of every bit it carries).
template <class Bit>
Bits<Bit, 8> substitute(const Bits<Bit, 8>& a) {
    Bits<Bit, 8> image = map_bits<Bit>(kFromTower, invert<Bit, 8>(map_bits<Bit>(kToTower, a)));
    for (int i = 0; i < 8; ++i) {
        if (0x63 >> i & 1) image[i] = ~image[i];
    }
    return image;
}

}  // namespace sphynx::crypto::sbox
