// Ring elements as small signed or unsigned limbs, so that dot-product instructions can multiply them.
//
// v = sum_l limb_l 2^(bits l) modulo 2^64. Signed forms are balanced: adding half to every digit and flipping
// its top bit gives digits in [-half, half), carries included, in two instructions for the whole word.
#pragma once

#include <cstdint>

namespace sphynx::ring {

enum class LimbForm : std::uint8_t {
    signed8,    // SDOT
    unsigned8,  // VPDPBUSD
    signed16,   // VPMADDWD, VPDPWSSD
};

constexpr int limb_bits(LimbForm form) {
    return form == LimbForm::signed16 ? 16 : 8;
}
constexpr int limb_bytes(LimbForm form) {
    return limb_bits(form) / 8;
}
constexpr int limb_count(LimbForm form, int ring_bits) {
    return (ring_bits + limb_bits(form) - 1) / limb_bits(form);
}

// The word whose little-endian bytes (or 16-bit halves) are the limbs.
template <class T>
constexpr T limbs_of(T value, LimbForm form) {
    constexpr T top8 = static_cast<T>(0x8080808080808080u), top16 = static_cast<T>(0x8000800080008000u);
    switch (form) {
        case LimbForm::signed8:
            return static_cast<T>((value + top8) ^ top8);
        case LimbForm::signed16:
            return static_cast<T>((value + top16) ^ top16);
        default:
            return value;
    }
}

}  // namespace sphynx::ring
