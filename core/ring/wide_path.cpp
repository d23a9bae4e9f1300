#include <algorithm>

#include "ring/paths.h"
#include "threads.h"

namespace sphynx::ring {

namespace {

// The image inside its zero-padded field, channel-first.
template <class T>
std::vector<T> padded_field(const ConvShape& shape, const T* in) {
    const int rows = shape.field_height(), columns = shape.field_width();
    std::vector<T> field(static_cast<std::size_t>(shape.in_channels) * rows * columns, 0);
    const int left = std::clamp(shape.pad_left, 0, columns),
              right = std::clamp(shape.width + shape.pad_left, left, columns);
    for (int c = 0; c < shape.in_channels; ++c) {
        for (int y = 0; y < rows; ++y) {
            const int image_row = y - shape.pad_top;
            if (image_row < 0 || image_row >= shape.height) continue;
            const T* from = in + (static_cast<std::size_t>(c) * shape.height + image_row) * shape.width +
                            (left - shape.pad_left);
            std::copy(from, from + (right - left),
                      field.begin() + (static_cast<std::ptrdiff_t>(c) * rows + y) * columns + left);
        }
    }
    return field;
}

template <class T>
void add_scaled(const T* __restrict from, int stride, T weight, int count, T* __restrict to) {
    if (stride == 1) {
        for (int x = 0; x < count; ++x) to[x] += weight * from[x];
    } else {
        for (int x = 0; x < count; ++x) to[x] += weight * from[static_cast<std::ptrdiff_t>(x) * stride];
    }
}

}  // namespace

Conv::WidePath::WidePath(const ConvShape& shape, const std::int32_t* weights)
    : weights_(weights, weights + shape.weight_size()) {
    for (int i = 0; i < shape.kernel_height; ++i) {
        for (int j = 0; j < shape.kernel_width; ++j) taps_used_.push_back(tap_used(shape, weights, i, j));
    }
}

template <class T>
void Conv::WidePath::convolve(const ConvShape& shape, int ring_bits, const T* in, unsigned threads,
                              T* out) const {
    const std::vector<T> field = padded_field(shape, in);
    const int rows = shape.field_height(), columns = shape.field_width();
    const T mask = static_cast<T>(~std::uint64_t{0} >> (64 - ring_bits));
    const std::size_t out_rows = static_cast<std::size_t>(shape.out_channels) * shape.out_height;
    parallel_ranges(out_rows, 1, threads, [&](std::size_t begin, std::size_t end) {
        for (std::size_t task = begin; task < end; ++task) {
            const std::size_t m = task / shape.out_height, y = task % shape.out_height;
            T* row = out + task * shape.out_width;
            std::fill(row, row + shape.out_width, T{0});
            for (int c = 0; c < shape.in_channels; ++c) {
                for (int i = 0; i < shape.kernel_height; ++i) {
                    const std::size_t field_row = (static_cast<std::size_t>(c) * rows + y * shape.stride +
                                                   static_cast<std::size_t>(i) * shape.dilation);
                    const std::int32_t* w =
                        weights_.data() +
                        ((m * shape.in_channels + c) * shape.kernel_height + i) * shape.kernel_width;
                    const char* used = taps_used_.data() + static_cast<std::size_t>(i) * shape.kernel_width;
                    for (int j = 0; j < shape.kernel_width; ++j) {
                        if (!used[j]) continue;
                        add_scaled(
                            field.data() + field_row * columns + static_cast<std::size_t>(j) * shape.dilation,
                            shape.stride, static_cast<T>(static_cast<std::int64_t>(w[j])), shape.out_width,
                            row);
                    }
                }
            }
            for (int x = 0; x < shape.out_width; ++x) row[x] &= mask;
        }
    });
}

void Conv::WidePath::apply(const ConvShape& shape, int ring_bits, const std::uint32_t* in, unsigned threads,
                           std::uint32_t* out) const {
    convolve(shape, ring_bits, in, threads, out);
}

void Conv::WidePath::apply(const ConvShape& shape, int ring_bits, const std::uint64_t* in, unsigned threads,
                           std::uint64_t* out) const {
    convolve(shape, ring_bits, in, threads, out);
}

}  // namespace sphynx::ring
