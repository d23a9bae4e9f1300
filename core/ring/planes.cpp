#include "ring/planes.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace sphynx::ring {

namespace {

// One image row of one channel into every plane. Limb is the type of one limb, kLimbs how many there are.
template <class T, class Limb, int kLimbs>
void scatter_row(const T* from, int count, LimbForm form, std::size_t channels, std::uint8_t* to,
                 std::size_t plane_bytes) {
    for (int x = 0; x < count; ++x) {
        const T word = limbs_of(from[x], form);
        for (int l = 0; l < kLimbs; ++l) {
            const Limb limb = static_cast<Limb>(word >> (8 * sizeof(Limb) * l));
            std::memcpy(to + static_cast<std::size_t>(l) * plane_bytes +
                            static_cast<std::size_t>(x) * channels * sizeof(Limb),
                        &limb, sizeof limb);
        }
    }
}

template <class T, class Limb>
using ScatterRow = void (*)(const T*, int, LimbForm, std::size_t, std::uint8_t*, std::size_t);

template <class T, class Limb>
ScatterRow<T, Limb> scatter_row_for(int limbs) {
    switch (limbs) {
        case 1:
            return scatter_row<T, Limb, 1>;
        case 2:
            return scatter_row<T, Limb, 2>;
        case 3:
            return scatter_row<T, Limb, 3>;
        case 4:
            return scatter_row<T, Limb, 4>;
        default:
            break;
    }
    if constexpr (sizeof(T) > 4 * sizeof(Limb)) {
        switch (limbs) {
            case 5:
                return scatter_row<T, Limb, 5>;
            case 6:
                return scatter_row<T, Limb, 6>;
            case 7:
                return scatter_row<T, Limb, 7>;
            default:
                return scatter_row<T, Limb, 8>;
        }
    }
    return scatter_row<T, Limb, 4>;
}

using Vector8 = std::uint8_t __attribute__((vector_size(16)));
using Vector16 = std::uint16_t __attribute__((vector_size(16)));

inline void interleave(Vector8 a, Vector8 b, Vector8& low, Vector8& high) {
    low = __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    high = __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
}
inline void interleave(Vector16 a, Vector16 b, Vector16& low, Vector16& high) {
    low = __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
    high = __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
}

// As many channels as a vector has limbs, times the pixels in 16 bytes: a square transpose by rounds of
// interleaving, whose output row (pixel, limb) holds neighbouring channels.
template <class T, class Limb>
struct Block {
    static constexpr int kChannels = 16 / sizeof(Limb);
    static constexpr int kPixels = 16 / sizeof(T);
    using Vector = std::conditional_t<sizeof(Limb) == 1, Vector8, Vector16>;

    static void scatter(const T* from, std::size_t channel_stride, LimbForm form, int limbs, std::uint8_t* to,
                        std::size_t pixel_bytes, std::size_t plane_bytes) {
        Vector rows[kChannels], next[kChannels];
        for (int c = 0; c < kChannels; ++c) {
            T words[kPixels];
            for (int x = 0; x < kPixels; ++x)
                words[x] = limbs_of(from[static_cast<std::size_t>(c) * channel_stride + x], form);
            std::memcpy(&rows[c], words, sizeof words);
        }
#pragma GCC unroll 4
        for (int round = 1; round < kChannels; round *= 2) {
            for (int c = 0; c < kChannels / 2; ++c)
                interleave(rows[c], rows[c + kChannels / 2], next[2 * c], next[2 * c + 1]);
            std::memcpy(rows, next, sizeof rows);
        }
        constexpr int limbs_per_word = sizeof(T) / sizeof(Limb);
        for (int x = 0; x < kPixels; ++x) {
            for (int l = 0; l < limbs; ++l) {
                std::memcpy(to + static_cast<std::size_t>(l) * plane_bytes +
                                static_cast<std::size_t>(x) * pixel_bytes,
                            &rows[x * limbs_per_word + l], 16);
            }
        }
    }
};

// Byte limbs of one image row, two to four channels: two rounds of interleaving bring the channels of each
// limb together.
template <class T, int kChannels>
void scatter_few(const T* from, std::size_t channel_stride, int count, LimbForm form, int limbs,
                 std::uint8_t* to, std::size_t pixel_bytes, std::size_t plane_bytes) {
    constexpr int pixels = 16 / sizeof(T);
    for (int x = 0; x < count; x += pixels) {
        const auto at = static_cast<std::size_t>(std::min(x, count - pixels));
        Vector8 rows[4] = {}, next[4];
        for (int c = 0; c < kChannels; ++c) {
            T words[pixels];
            for (int i = 0; i < pixels; ++i)
                words[i] = limbs_of(from[static_cast<std::size_t>(c) * channel_stride + at + i], form);
            std::memcpy(&rows[c], words, sizeof words);
        }
        interleave(rows[0], rows[2], next[0], next[1]);
        interleave(rows[1], rows[3], next[2], next[3]);
        interleave(next[0], next[2], rows[0], rows[1]);
        interleave(next[1], next[3], rows[2], rows[3]);
        std::uint8_t together[pixels][sizeof(T)][4];
        std::memcpy(together, rows, sizeof together);
        for (int l = 0; l < limbs; ++l) {
            std::uint8_t* plane = to + static_cast<std::size_t>(l) * plane_bytes + at * pixel_bytes;
            for (int i = 0; i < pixels; ++i, plane += pixel_bytes)
                std::memcpy(plane, together[i][l], kChannels);
        }
    }
}

// One image row of all channels into every plane. The last block of an axis is moved back to end with it: it
// writes some limbs a second time instead of needing a tail.
template <class T, class Limb>
void scatter_rows(const T* from, std::size_t channel_stride, int count, LimbForm form, int limbs,
                  int channels, std::uint8_t* to, std::size_t plane_bytes) {
    const std::size_t pixel_bytes = static_cast<std::size_t>(channels) * sizeof(Limb);
    using Tile = Block<T, Limb>;
    if (channels < Tile::kChannels || count < Tile::kPixels) {
        const auto scatter = scatter_row_for<T, Limb>(limbs);
        int c = 0;
        if constexpr (sizeof(Limb) == 1) {
            const auto few = [&](auto scatter_channels, int taken) {
                scatter_channels(from + static_cast<std::size_t>(c) * channel_stride, channel_stride, count,
                                 form, limbs, to + c, pixel_bytes, plane_bytes);
                c += taken;
            };
            if (count >= Tile::kPixels) {
                while (channels - c >= 4) few(scatter_few<T, 4>, 4);
                if (channels - c == 3) few(scatter_few<T, 3>, 3);
                if (channels - c == 2) few(scatter_few<T, 2>, 2);
            }
        }
        for (; c < channels; ++c) {
            scatter(from + static_cast<std::size_t>(c) * channel_stride, count, form,
                    static_cast<std::size_t>(channels), to + static_cast<std::size_t>(c) * sizeof(Limb),
                    plane_bytes);
        }
        return;
    }
    for (int c = 0; c < channels; c += Tile::kChannels) {
        const auto first = static_cast<std::size_t>(std::min(c, channels - Tile::kChannels));
        for (int x = 0; x < count; x += Tile::kPixels) {
            const auto at = static_cast<std::size_t>(std::min(x, count - Tile::kPixels));
            Tile::scatter(from + first * channel_stride + at, channel_stride, form, limbs,
                          to + at * pixel_bytes + first * sizeof(Limb), pixel_bytes, plane_bytes);
        }
    }
}

template <class T, class Limb>
void fill(const ConvShape& shape, LimbForm form, int limbs, const T* in, std::size_t first_row,
          std::size_t last_row, std::uint8_t* planes, std::size_t plane_bytes) {
    const std::size_t pixel_bytes = static_cast<std::size_t>(shape.in_channels) * sizeof(Limb);
    const auto field_width = static_cast<std::size_t>(shape.field_width());
    // Field columns [left, right) lie inside the image.
    const int left = std::clamp(shape.pad_left, 0, shape.field_width());
    const int right = std::clamp(shape.width + shape.pad_left, left, shape.field_width());
    for (std::size_t row = first_row; row < last_row; ++row) {
        const std::int64_t image_row = static_cast<std::int64_t>(row) - shape.pad_top;
        const bool inside = image_row >= 0 && image_row < shape.height && left < right;
        for (int l = 0; l < limbs; ++l) {
            std::uint8_t* to =
                planes + static_cast<std::size_t>(l) * plane_bytes + row * field_width * pixel_bytes;
            if (!inside) {
                std::memset(to, 0, field_width * pixel_bytes);
                continue;
            }
            std::memset(to, 0, static_cast<std::size_t>(left) * pixel_bytes);
            std::memset(to + static_cast<std::size_t>(right) * pixel_bytes, 0,
                        (field_width - static_cast<std::size_t>(right)) * pixel_bytes);
        }
        if (!inside) continue;
        const T* from = in + static_cast<std::size_t>(image_row) * shape.width + (left - shape.pad_left);
        std::uint8_t* to = planes + (row * field_width + static_cast<std::size_t>(left)) * pixel_bytes;
        scatter_rows<T, Limb>(from, static_cast<std::size_t>(shape.height) * shape.width, right - left, form,
                              limbs, shape.in_channels, to, plane_bytes);
    }
}

}  // namespace

template <class T>
void fill_planes(const ConvShape& shape, LimbForm form, int limbs, const T* in, std::size_t first_row,
                 std::size_t last_row, std::uint8_t* planes, std::size_t plane_bytes) {
    if (form == LimbForm::signed16) {
        fill<T, std::uint16_t>(shape, form, limbs, in, first_row, last_row, planes, plane_bytes);
    } else {
        fill<T, std::uint8_t>(shape, form, limbs, in, first_row, last_row, planes, plane_bytes);
    }
}

template void fill_planes(const ConvShape&, LimbForm, int, const std::uint32_t*, std::size_t, std::size_t,
                          std::uint8_t*, std::size_t);
template void fill_planes(const ConvShape&, LimbForm, int, const std::uint64_t*, std::size_t, std::size_t,
                          std::uint8_t*, std::size_t);

}  // namespace sphynx::ring
