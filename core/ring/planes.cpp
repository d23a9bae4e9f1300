#include "ring/planes.h"

#include <algorithm>
#include <cstring>

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

template <class T, class Limb>
void fill(const ConvShape& shape, LimbForm form, int limbs, const T* in, std::size_t first_row,
          std::size_t last_row, std::uint8_t* planes, std::size_t plane_bytes) {
    const auto channels = static_cast<std::size_t>(shape.in_channels);
    const std::size_t pixel_bytes = channels * sizeof(Limb);
    const auto field_width = static_cast<std::size_t>(shape.field_width());
    // Field columns [left, right) lie inside the image.
    const int left = std::clamp(shape.pad_left, 0, shape.field_width());
    const int right = std::clamp(shape.width + shape.pad_left, left, shape.field_width());
    const auto scatter = scatter_row_for<T, Limb>(limbs);
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
        for (std::size_t c = 0; c < channels; ++c) {
            const T* from = in + (c * shape.height + static_cast<std::size_t>(image_row)) * shape.width +
                            (left - shape.pad_left);
            std::uint8_t* to = planes + (row * field_width + static_cast<std::size_t>(left)) * pixel_bytes +
                               c * sizeof(Limb);
            scatter(from, right - left, form, channels, to, plane_bytes);
        }
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
