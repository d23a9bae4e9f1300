// Every path of the ring convolution against the definition, for shapes that reach strides, dilations,
// cropped and padded borders, several weight limbs, cut segments, and sparse kernels.
#include "ring/conv.h"

#include <algorithm>
#include <random>
#include <set>
#include <vector>

#include "check.h"
#include "cpu.h"

using namespace sphynx::ring;

namespace {

// What the instruction of each limb form computes, one product at a time.
template <LimbForm kForm, int kOutputs>
void emulated_tile(const std::int8_t* weights, const Run* runs, std::size_t run_count,
                   const std::uint8_t* const* columns, int column_count, std::int32_t* sums) {
    std::fill(sums, sums + column_count * kOutputs, 0);
    for (std::size_t r = 0; r < run_count; ++r) {
        for (int group = 0; group < runs[r].groups; ++group) {
            for (int c = 0; c < column_count; ++c) {
                const std::uint8_t* x = columns[c] + runs[r].offset_bytes + 4 * group;
                for (int o = 0; o < kOutputs; ++o) {
                    const std::int8_t* w = weights + 4 * ((runs[r].first_group + group) * kOutputs + o);
                    std::uint32_t sum = static_cast<std::uint32_t>(sums[c * kOutputs + o]);
                    for (int b = 0; b < 4; b += limb_bytes(kForm)) {
                        std::int32_t left = x[b], right = w[b];
                        if (kForm == LimbForm::signed8) left = static_cast<std::int8_t>(x[b]);
                        if (kForm == LimbForm::signed16) {
                            left = static_cast<std::int16_t>(x[b] | x[b + 1] << 8);
                            right = static_cast<std::int16_t>(static_cast<std::uint8_t>(w[b]) |
                                                              static_cast<std::uint8_t>(w[b + 1]) << 8);
                        }
                        sum += static_cast<std::uint32_t>(left * right);
                    }
                    sums[c * kOutputs + o] = static_cast<std::int32_t>(sum);
                }
            }
        }
    }
}

const DotKernel kEmulated[] = {
    {"emulated SDOT", LimbForm::signed8, 8, emulated_tile<LimbForm::signed8, 8>},
    {"emulated VPDPBUSD", LimbForm::unsigned8, 16, emulated_tile<LimbForm::unsigned8, 16>},
    {"emulated VPMADDWD", LimbForm::signed16, 8, emulated_tile<LimbForm::signed16, 8>},
    {"emulated VPDPWSSD", LimbForm::signed16, 16, emulated_tile<LimbForm::signed16, 16>},
};

const DotKernel* tested_kernel = nullptr;

template <class T>
void check(const ConvShape& s, int ring_bits, int weight_bits, unsigned threads, double density = 1.0) {
    std::mt19937_64 generator(7);
    std::vector<T> in(s.in_size()), out(s.out_size(), 1);
    std::vector<std::int32_t> weights(s.weight_size());
    for (auto& v : in) v = static_cast<T>(generator());
    const std::int32_t top = (1 << (weight_bits - 1)) - (weight_bits == 23);
    for (auto& w : weights) {
        w = static_cast<double>(generator() % 1000) < 1000 * density
                ? static_cast<std::int32_t>(generator() % (2 * top)) - top
                : 0;
    }
    weights[0] = -top;
    const Conv conv(s, ring_bits, weights.data(), tested_kernel);
    conv.apply(in.data(), threads, out.data());
    const T mask = static_cast<T>(~std::uint64_t{0} >> (64 - ring_bits));
    std::size_t wrong = 0;
    for (int m = 0; m < s.out_channels; ++m) {
        for (int y = 0; y < s.out_height; ++y) {
            for (int x = 0; x < s.out_width; ++x) {
                T sum = 0;
                for (int c = 0; c < s.in_channels; ++c) {
                    for (int i = 0; i < s.kernel_height; ++i) {
                        for (int j = 0; j < s.kernel_width; ++j) {
                            const int iy = y * s.stride + i * s.dilation - s.pad_top,
                                      ix = x * s.stride + j * s.dilation - s.pad_left;
                            if (iy < 0 || iy >= s.height || ix < 0 || ix >= s.width) continue;
                            const auto w =
                                weights[((static_cast<std::size_t>(m) * s.in_channels + c) * s.kernel_height +
                                         i) *
                                            s.kernel_width +
                                        j];
                            sum += static_cast<T>(static_cast<std::int64_t>(w)) *
                                   in[(static_cast<std::size_t>(c) * s.height + iy) * s.width + ix];
                        }
                    }
                }
                wrong +=
                    out[(static_cast<std::size_t>(m) * s.out_height + y) * s.out_width + x] != (sum & mask);
            }
        }
    }
    CHECK(wrong == 0);
}

void check_zero_weights() {
    const ConvShape shape{3, 4, 4, 10, 3, 3, 4, 4, 1, 1, 1, 1};
    const std::vector<std::int32_t> weights(shape.weight_size(), 0);
    const std::vector<std::uint64_t> in(shape.in_size(), 5);
    std::vector<std::uint64_t> out(shape.out_size(), 1);
    Conv(shape, 64, weights.data(), tested_kernel).apply(in.data(), 1, out.data());
    CHECK(out == std::vector<std::uint64_t>(shape.out_size(), 0));
}

void check_all() {
    check_zero_weights();
    const ConvShape shapes[] = {
        {80, 8, 8, 9, 3, 3, 8, 8, 1, 1, 1, 1},   {5, 9, 7, 5, 3, 3, 9, 7, 1, 2, 2, 2},
        {3, 11, 11, 20, 5, 5, 6, 6, 2, 1, 2, 2}, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0},
        {300, 1, 1, 10, 1, 1, 1, 1, 1, 1, 0, 0}, {4, 7, 7, 6, 1, 1, 3, 3, 2, 1, -1, -1},
        {19, 5, 9, 3, 3, 3, 5, 9, 1, 1, 1, 1},   {2, 4, 4, 3, 3, 3, 9, 9, 1, 3, 5, 6},
        {16, 5, 3, 17, 1, 3, 5, 3, 1, 1, 0, 1},  {7, 6, 6, 8, 9, 9, 6, 6, 1, 1, 4, 4},
        {2, 3, 3, 2, 2, 2, 2, 2, 1, 1, -8, 30},  {6, 4, 4, 9, 5, 5, 4, 4, 1, 1, 2, 2},
        {5, 8, 1, 9, 7, 2, 4, 4, 2, 1, 3, 7},    {3, 1, 8, 9, 1, 7, 4, 4, 2, 1, 6, 3},
        {3, 2, 3, 4, 3, 3, 7, 5, 1, 2, 3, 4},
    };
    unsigned threads = 1;
    for (const ConvShape& shape : shapes) {
        for (const int weight_bits : {8, 12, 16, 23}) {
            for (const int ring_bits : {1, 9, 17, 32})
                check<std::uint32_t>(shape, ring_bits, weight_bits, threads);
            for (const int ring_bits : {8, 32, 36, 40, 48, 56, 64})
                check<std::uint64_t>(shape, ring_bits, weight_bits, threads);
            threads = threads % 3 + 1;
        }
        check<std::uint64_t>(shape, 40, 8, 2, 0.02);
    }
    // More products per output than one 32-bit sum holds.
    check<std::uint64_t>({5000, 4, 4, 2, 4, 4, 1, 1, 1, 1, 0, 0}, 64, 8, 1);
}

}  // namespace

int main() {
    const std::vector<std::int32_t> one(1, 1);
    {
        const Conv conv({1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0}, 64, one.data());
        std::uint32_t in = 1, out;
        CHECK_THROWS(conv.apply(&in, 1, &out));
        std::printf("path %s\n", conv.path());
    }
    CHECK_THROWS(Conv({1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0}, 32, one.data()));
    CHECK_THROWS(Conv({65536, 65536, 65536, 65536, 1, 1, 1, 1, 1, 1, 0, 0}, 32, one.data()));
    CHECK_THROWS(Conv({1, 1, 1, 1, 1, 1, 65536, 65536, 65536, 1, 0, 0}, 32, one.data()));
    CHECK_THROWS(Conv({1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0}, 65, one.data()));
    const std::vector<std::int32_t> large(1, kMaxWeight + 1);
    CHECK_THROWS(Conv({1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0}, 32, large.data()));
    std::set<const DotKernel*> kernels{nullptr};
    for (const sphynx::CpuFeatures& features : sphynx::features_to_test()) {
        const sphynx::LimitFeatures limit(features);
        for (const bool byte_weights : {true, false}) kernels.insert(best_dot_kernel(32, byte_weights));
    }
    for (const DotKernel* kernel : kernels) {
        tested_kernel = kernel;
        std::printf("kernel %s\n", kernel ? kernel->name : "wide");
        check_all();
    }
    for (const DotKernel& kernel : kEmulated) {
        tested_kernel = &kernel;
        check_all();
    }
    const sphynx::LimitFeatures portable({});
    CHECK(best_dot_kernel(32, true) == nullptr);
    return test_result();
}
