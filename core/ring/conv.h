// Exact convolution of ring tensors (modulo 2^k, k <= 64) with small integer weights: what each party applies
// to its share.
//
// Contract: cross-correlation as torch's conv2d, zero outside the image,
//
//   out[m][y][x] = sum over c, i, j of w[m][c][i][j] in[c][row][column]  mod 2^k
//                  row = stride y + dilation i - pad_top,  column = stride x + dilation j - pad_left
//
// Weights are prepared once, for the path that this CPU takes:
//
//   limbs   the tensor is cut into byte (or 16-bit) limbs laid out channel-last in zero-padded planes, and
//           dot-product instructions sum products of limbs in 32 bits; the limbs' sums are shifted and added.
//           Weights beyond 8 bits are cut too.
//   wide    32- or 64-bit multiply-adds over rows; the path without dot-product instructions.
//
// Elements may have any bits above k set; results are reduced to k bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "ring/dot.h"

namespace sphynx::ring {

struct ConvShape {
    int in_channels, height, width;
    int out_channels, kernel_height, kernel_width;
    int out_height, out_width;
    int stride, dilation;
    int pad_top, pad_left;  // negative: the first rows or columns are not read

    void check() const;  // throws unless every extent is positive and the tensors are of sane size
    // The part of the (padded) image that outputs read.
    int field_height() const { return stride * (out_height - 1) + dilation * (kernel_height - 1) + 1; }
    int field_width() const { return stride * (out_width - 1) + dilation * (kernel_width - 1) + 1; }
    std::size_t in_size() const { return static_cast<std::size_t>(in_channels) * height * width; }
    std::size_t out_size() const { return static_cast<std::size_t>(out_channels) * out_height * out_width; }
    std::size_t weight_size() const {
        return static_cast<std::size_t>(out_channels) * in_channels * kernel_height * kernel_width;
    }
};

inline constexpr std::int32_t kMaxWeight = (1 << 22) - 1;

class Conv {
  public:
    // weights: out x in x kernel_height x kernel_width, |w| <= kMaxWeight. Takes the best kernel for them.
    Conv(const ConvShape& shape, int ring_bits, const std::int32_t* weights);
    // kernel: null takes the wide path; tests pass emulations of other CPUs' kernels.
    Conv(const ConvShape& shape, int ring_bits, const std::int32_t* weights, const DotKernel* kernel);
    ~Conv();
    Conv(Conv&&) noexcept;

    const ConvShape& shape() const { return shape_; }
    int ring_bits() const { return ring_bits_; }
    const char* path() const;

    // T is uint32_t (k <= 32 only) or uint64_t.
    template <class T>
    void apply(const T* in, unsigned threads, T* out) const;

  private:
    class Path;
    class LimbPath;
    class WidePath;

    ConvShape shape_;
    int ring_bits_;
    std::unique_ptr<const Path> path_;
};

}  // namespace sphynx::ring
