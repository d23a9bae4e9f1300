#include "ring/conv.h"

#include <algorithm>
#include <stdexcept>

#include "ring/paths.h"

namespace sphynx::ring {
namespace {

// Whether the weights fit signed bytes. Throws where the shape or a weight is beyond its limits.
bool checked_bytes(const ConvShape& shape, const std::int32_t* weights) {
    shape.check();
    const auto [least, most] = std::minmax_element(weights, weights + shape.weight_size());
    if (*least < -kMaxWeight || *most > kMaxWeight) throw std::invalid_argument("a weight exceeds 22 bits");
    return *least >= INT8_MIN && *most <= INT8_MAX;
}

}  // namespace

bool tap_used(const ConvShape& shape, const std::int32_t* weights, int row, int column) {
    const std::size_t taps = static_cast<std::size_t>(shape.kernel_height) * shape.kernel_width;
    const std::size_t at = static_cast<std::size_t>(row) * shape.kernel_width + column;
    for (std::size_t mc = 0; mc < static_cast<std::size_t>(shape.out_channels) * shape.in_channels; ++mc) {
        if (weights[mc * taps + at] != 0) return true;
    }
    return false;
}

void ConvShape::check() const {
    for (const int extent : {in_channels, height, width, out_channels, kernel_height, kernel_width,
                             out_height, out_width, stride, dilation}) {
        if (extent < 1 || extent > (1 << 16))
            throw std::invalid_argument("every extent of a convolution is 1 to 65536");
    }
    if (pad_top < -(1 << 16) || pad_top > (1 << 16) || pad_left < -(1 << 16) || pad_left > (1 << 16)) {
        throw std::invalid_argument("padding is at most 65536");
    }
    // The padded field of one limb is addressed with 32-bit offsets; the product of three 17-bit numbers does
    // not overflow.
    const std::int64_t field_rows =
        std::int64_t{stride} * (out_height - 1) + std::int64_t{dilation} * (kernel_height - 1) + 1;
    const std::int64_t field_columns =
        std::int64_t{stride} * (out_width - 1) + std::int64_t{dilation} * (kernel_width - 1) + 1;
    constexpr std::int64_t limit = std::int64_t{1} << 28;
    if (field_rows > limit || field_columns > limit || field_rows * field_columns > limit ||
        field_rows * field_columns * in_channels > limit || in_size() > limit || out_size() > limit ||
        weight_size() > limit) {
        throw std::invalid_argument("the convolution is too large: tensors are limited to 2^28 elements");
    }
}

Conv::Conv(const ConvShape& shape, int ring_bits, const std::int32_t* weights)
    : Conv(shape, ring_bits, weights, best_dot_kernel(ring_bits, checked_bytes(shape, weights))) {}

Conv::Conv(const ConvShape& shape, int ring_bits, const std::int32_t* weights, const DotKernel* kernel)
    : shape_(shape), ring_bits_(ring_bits) {
    if (ring_bits < 1 || ring_bits > 64) throw std::invalid_argument("ring width must be 1..64 bits");
    checked_bytes(shape, weights);
    if (kernel != nullptr) {
        path_ = std::make_unique<LimbPath>(shape, ring_bits, weights, *kernel);
    } else {
        path_ = std::make_unique<WidePath>(shape, weights);
    }
}

Conv::~Conv() = default;
Conv::Conv(Conv&&) noexcept = default;

const char* Conv::path() const {
    return path_->name();
}

template <class T>
void Conv::apply(const T* in, unsigned threads, T* out) const {
    if (ring_bits_ > static_cast<int>(8 * sizeof(T)))
        throw std::invalid_argument("32-bit elements hold rings up to 32 bits");
    path_->apply(shape_, ring_bits_, in, threads, out);
}

template void Conv::apply(const std::uint32_t*, unsigned, std::uint32_t*) const;
template void Conv::apply(const std::uint64_t*, unsigned, std::uint64_t*) const;

}  // namespace sphynx::ring
