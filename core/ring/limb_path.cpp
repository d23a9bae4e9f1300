#include <algorithm>
#include <cstring>
#include <type_traits>

#include "ring/paths.h"
#include "ring/planes.h"
#include "threads.h"

namespace sphynx::ring {

namespace {

// Least work for a thread of its own, about 0.1 ms: less is over before a second thread has started.
constexpr std::size_t kPlaneBytesPerThread = std::size_t{1} << 17, kProductsPerThread = std::size_t{1} << 23;

// A run of the receptive field and what it holds: kernel row, and the first element counted in channels from
// the row's start.
struct FieldRun {
    Run run;
    int kernel_row;
    std::size_t first_element;
};

int groups_for(std::size_t bytes) {
    return static_cast<int>((bytes + kGroupBytes - 1) / kGroupBytes);
}

// Stretches of used taps, row by row. Neighbours join when one longer run costs no more than two (a run costs
// its groups and about one more): with few channels the gap between dilated taps is cheaper to read (against
// zero weights) than a run of its own.
std::vector<FieldRun> field_runs(const ConvShape& shape, const std::int32_t* weights,
                                 std::size_t pixel_bytes) {
    std::vector<FieldRun> runs;
    for (int row = 0; row < shape.kernel_height; ++row) {
        int start = -1, stop = -1;  // pixels from the row's start
        const auto flush = [&] {
            if (start < 0) return;
            const std::size_t offset =
                (static_cast<std::size_t>(row) * shape.dilation * shape.field_width() + start) * pixel_bytes;
            runs.push_back({{static_cast<std::int32_t>(offset), groups_for((stop - start) * pixel_bytes), 0},
                            row,
                            static_cast<std::size_t>(start) * shape.in_channels});
        };
        for (int column = 0; column < shape.kernel_width; ++column) {
            if (!tap_used(shape, weights, row, column)) continue;
            const int pixel = column * shape.dilation;
            if (start >= 0 && groups_for((pixel + 1 - start) * pixel_bytes) <=
                                  groups_for((stop - start) * pixel_bytes) + 1 + groups_for(pixel_bytes)) {
                stop = pixel + 1;
                continue;
            }
            flush();
            start = pixel;
            stop = pixel + 1;
        }
        flush();
    }
    return runs;
}

// The runs of a tile of pixels, without what lies outside the image for all of them: there a plane is zero.
std::vector<Run> cut_to_image(const ConvShape& shape, const std::vector<FieldRun>& runs,
                              std::int64_t pixel_bytes, std::size_t first_pixel, std::size_t last_pixel) {
    const auto width = static_cast<std::size_t>(shape.out_width);
    const auto first_y = static_cast<std::int64_t>(first_pixel / width) * shape.stride,
               last_y = static_cast<std::int64_t>(last_pixel / width) * shape.stride;
    const bool one_row = first_y == last_y;
    const auto first_x = static_cast<std::int64_t>(one_row ? first_pixel % width : 0) * shape.stride,
               last_x = static_cast<std::int64_t>(one_row ? last_pixel % width : width - 1) * shape.stride;
    // Of a row of the field, what is in the image for the last pixel's start and for the first one's end.
    const std::int64_t begin = (shape.pad_left - last_x) * pixel_bytes,
                       end = (shape.pad_left + shape.width - first_x) * pixel_bytes;
    std::vector<Run> cut;
    for (const FieldRun& part : runs) {
        Run run = part.run;
        const std::int64_t field_row = std::int64_t{part.kernel_row} * shape.dilation;
        const std::int64_t at = run.offset_bytes - field_row * shape.field_width() * pixel_bytes;
        const auto groups_to = [&](std::int64_t byte) {  // whole ones before it
            return static_cast<std::int32_t>(
                std::clamp<std::int64_t>((byte - at) / kGroupBytes, 0, part.run.groups));
        };
        const std::int64_t row = field_row - shape.pad_top;
        const bool inside = last_y + row >= 0 && first_y + row < shape.height;
        const std::int32_t skipped = groups_to(begin), kept = groups_to(end + kGroupBytes - 1) - skipped;
        run.offset_bytes += skipped * kGroupBytes;
        run.first_group += skipped;
        run.groups = inside ? std::max(kept, 0) : 0;
        cut.push_back(run);
    }
    return cut;
}

// The weight of output m at an element of a kernel row, zero between dilated taps and past the run's end.
std::int32_t weight_at(const ConvShape& shape, const std::int32_t* weights, int m, int row,
                       std::size_t element) {
    const int pixel = static_cast<int>(element / static_cast<std::size_t>(shape.in_channels));
    const int channel = static_cast<int>(element % static_cast<std::size_t>(shape.in_channels));
    if (m >= shape.out_channels || pixel % shape.dilation != 0 ||
        pixel / shape.dilation >= shape.kernel_width)
        return 0;
    const std::size_t filter = static_cast<std::size_t>(m) * shape.in_channels + channel;
    return weights[(filter * shape.kernel_height + row) * shape.kernel_width + pixel / shape.dilation];
}

std::int32_t balanced_digit(std::int32_t& value, int bits) {
    const std::int32_t half = 1 << (bits - 1);
    const std::int32_t digit = ((value + half) & ((1 << bits) - 1)) - half;
    value = (value - digit) >> bits;
    return digit;
}

int digits_needed(const std::int32_t* weights, std::size_t count, int bits) {
    int most = 1;
    for (std::size_t i = 0; i < count; ++i) {
        std::int32_t rest = weights[i];
        for (int digits = 1;; ++digits) {
            balanced_digit(rest, bits);
            most = std::max(most, digits);
            if (rest == 0) break;
        }
    }
    return most;
}

}  // namespace

Conv::LimbPath::LimbPath(const ConvShape& shape, int ring_bits, const std::int32_t* weights,
                         const DotKernel& kernel)
    : kernel_(kernel) {
    // Modulo 2^32 the 32-bit sums may wrap; otherwise they must be exact: 2^14 x 2^16, 2^15 x 2^16 or 2^22 x
    // 504 products.
    const bool exact_sums = ring_bits > 32;
    if (kernel.form == LimbForm::signed16 && !exact_sums) weight_limb_bits_ = 16;
    weight_limbs_ = digits_needed(weights, shape.weight_size(), weight_limb_bits_);
    const int max_groups = !exact_sums ? 1 << 30 : kernel.form == LimbForm::signed16 ? 252 : 1 << 14;
    const auto element_bytes = static_cast<std::size_t>(limb_bytes(kernel.form));
    const auto field = field_runs(shape, weights, shape.in_channels * element_bytes);

    std::vector<FieldRun> cut;
    for (FieldRun whole : field) {
        while (whole.run.groups > 0) {
            if (segments_.empty() || segments_.back().groups == max_groups) {
                segments_.push_back({cut.size(), 0, 0});
            }
            Segment& segment = segments_.back();
            FieldRun part = whole;
            part.run.groups = std::min(whole.run.groups, max_groups - segment.groups);
            part.run.first_group = static_cast<std::int32_t>(groups_);
            cut.push_back(part);
            segment.run_count += 1;
            segment.groups += part.run.groups;
            groups_ += static_cast<std::size_t>(part.run.groups);
            whole.run.groups -= part.run.groups;
            whole.run.offset_bytes += part.run.groups * kGroupBytes;
            whole.first_element += static_cast<std::size_t>(part.run.groups) * kGroupBytes / element_bytes;
        }
    }
    const int tiles = (shape.out_channels + kernel.outputs - 1) / kernel.outputs;
    weights_.reserve(static_cast<std::size_t>(tiles * weight_limbs_) * groups_ * kGroupBytes *
                     static_cast<std::size_t>(kernel.outputs));
    for (int tile = 0; tile < tiles; ++tile) {
        for (int limb = 0; limb < weight_limbs_; ++limb) {
            for (const FieldRun& part : cut) {
                for (int group = 0; group < part.run.groups; ++group) {
                    for (int o = 0; o < kernel.outputs; ++o) {
                        for (std::size_t e = 0; e < 4 / element_bytes; ++e) {
                            const std::size_t element =
                                part.first_element + static_cast<std::size_t>(group) * 4 / element_bytes + e;
                            std::int32_t rest = weight_at(shape, weights, tile * kernel.outputs + o,
                                                          part.kernel_row, element);
                            std::int32_t digit = 0;
                            for (int l = 0; l <= limb; ++l) digit = balanced_digit(rest, weight_limb_bits_);
                            for (std::size_t b = 0; b < element_bytes; ++b) {
                                weights_.push_back(
                                    static_cast<std::int8_t>(static_cast<std::uint8_t>(digit >> (8 * b))));
                            }
                        }
                    }
                }
            }
        }
    }
    for (const FieldRun& part : cut) runs_.push_back(part.run);
    for (int y = 0; y < shape.out_height; ++y) {
        for (int x = 0; x < shape.out_width; ++x) {
            const std::size_t pixel = static_cast<std::size_t>(y) * shape.stride * shape.field_width() +
                                      static_cast<std::size_t>(x) * shape.stride;
            pixel_offsets_.push_back(pixel * shape.in_channels * element_bytes);
        }
    }
    const auto per_tile = static_cast<std::size_t>(kMaxColumns / limb_count(kernel.form, ring_bits));
    const auto pixel_bytes = static_cast<std::int64_t>(shape.in_channels * element_bytes);
    for (std::size_t first = 0; first < pixel_offsets_.size(); first += per_tile) {
        const std::size_t last = std::min(first + per_tile, pixel_offsets_.size()) - 1;
        const std::vector<Run> runs = cut_to_image(shape, cut, pixel_bytes, first, last);
        const bool whole = std::equal(runs.begin(), runs.end(), runs_.begin());
        tile_runs_.push_back(whole ? 0 : runs_.size());
        if (!whole) runs_.insert(runs_.end(), runs.begin(), runs.end());
    }
}

// Limb count and width are template arguments so that a pixel's totals stay in registers and shifts are
// immediate.
template <class T, int kOutputs, int kBits, int kLimbs>
void Conv::LimbPath::tiles(const ConvShape& shape, int ring_bits, const std::uint8_t* planes,
                           std::size_t plane_bytes, std::size_t first_task, std::size_t last_task,
                           T* out) const {
    constexpr std::size_t tile_pixels = kMaxColumns / kLimbs;
    const T mask = static_cast<T>(~std::uint64_t{0} >> (64 - ring_bits));
    const std::size_t area = pixel_offsets_.size(), pixel_tiles = (area + tile_pixels - 1) / tile_pixels;
    const auto weight_limbs = static_cast<std::size_t>(weight_limbs_);
    std::size_t output_tile = first_task / pixel_tiles, first_pixel = first_task % pixel_tiles * tile_pixels;
    for (std::size_t task = first_task; task < last_task; ++task) {
        const std::size_t pixels = std::min(tile_pixels, area - first_pixel);
        const std::uint8_t* columns[tile_pixels * kLimbs];
        for (std::size_t p = 0; p < tile_pixels; ++p) {
            // A tile that is not full repeats its last pixel and drops the result.
            const std::uint8_t* at = planes + pixel_offsets_[first_pixel + std::min(p, pixels - 1)];
            for (std::size_t l = 0; l < kLimbs; ++l, at += plane_bytes) columns[l * tile_pixels + p] = at;
        }
        const Run* runs = runs_.data() + tile_runs_[first_pixel / tile_pixels];
        T totals[tile_pixels][kOutputs];
        bool empty = true;  // no totals yet
        for (std::size_t weight_limb = 0; weight_limb < weight_limbs; ++weight_limb) {
            const int base_shift = static_cast<int>(weight_limb) * weight_limb_bits_;
            if (base_shift >= ring_bits) break;
            const std::int8_t* weights = weights_.data() + (output_tile * weight_limbs + weight_limb) *
                                                               groups_ * kGroupBytes * kOutputs;
            // Limbs above these do not reach the ring when they meet this weight limb.
            const int reaching = std::min(kLimbs, (ring_bits - base_shift + kBits - 1) / kBits);
            for (const Segment& segment : segments_) {
                std::int32_t sums[kLimbs][tile_pixels][kOutputs];
                kernel_.tile(weights, runs + segment.first_run, segment.run_count, columns,
                             static_cast<int>(tile_pixels) * reaching, &sums[0][0][0]);
                for (int l = reaching; l < kLimbs; ++l) std::memset(sums[l], 0, sizeof sums[l]);
                for (std::size_t p = 0; p < tile_pixels; ++p) {
                    T combined[kOutputs] = {};
                    std::uint32_t upper[kOutputs] = {};
#pragma GCC unroll 8
                    for (int l = 0; l < kLimbs; ++l) {
                        const std::int32_t* from = sums[l][p];
                        // Sign extension to T, then a shift that drops what lies above the ring. Limbs from
                        // bit 32 on only reach the upper half: 32-bit lanes, twice as many at a time.
                        for (int o = 0; o < kOutputs; ++o) {
                            if (l * kBits < 32) {
                                combined[o] += static_cast<T>(static_cast<std::make_signed_t<T>>(from[o]))
                                               << (l * kBits);
                            } else {
                                upper[o] += static_cast<std::uint32_t>(from[o]) << (l * kBits - 32);
                            }
                        }
                    }
                    if constexpr (kLimbs * kBits > 32) {
                        for (int o = 0; o < kOutputs; ++o) combined[o] += static_cast<T>(upper[o]) << 32;
                    }
                    if (empty) {
                        for (int o = 0; o < kOutputs; ++o) totals[p][o] = combined[o];
                    } else {
                        for (int o = 0; o < kOutputs; ++o) totals[p][o] += combined[o] << base_shift;
                    }
                }
                empty = false;
            }
        }
        if (empty) std::memset(totals, 0, sizeof totals);  // all weights are zero
        const std::size_t first_channel = output_tile * kOutputs;
        const std::size_t channels =
            std::min<std::size_t>(kOutputs, static_cast<std::size_t>(shape.out_channels) - first_channel);
        T* to = out + first_channel * area + first_pixel;
        for (std::size_t o = 0; o < channels; ++o, to += area) {
            for (std::size_t p = 0; p < pixels; ++p) to[p] = totals[p][o] & mask;
        }
        first_pixel += tile_pixels;
        if (first_pixel >= area) first_pixel = 0, ++output_tile;
    }
}

template <class T, int kOutputs, int kBits, int kLimbs>
auto Conv::LimbPath::tiles_for(int limbs) -> Tiles<T> {
    if constexpr ((kLimbs + 1) * kBits <= static_cast<int>(8 * sizeof(T))) {
        if (limbs > kLimbs) return tiles_for<T, kOutputs, kBits, kLimbs + 1>(limbs);
    }
    return &LimbPath::tiles<T, kOutputs, kBits, kLimbs>;
}

template <class T>
void Conv::LimbPath::convolve(const ConvShape& shape, int ring_bits, const T* in, unsigned threads,
                              T* out) const {
    const int limbs = limb_count(kernel_.form, ring_bits);
    const std::size_t plane_bytes = static_cast<std::size_t>(shape.field_height()) * shape.field_width() *
                                    shape.in_channels * limb_bytes(kernel_.form);
    // The last step of a run may read past the end; those bytes meet zero weights.
    const std::size_t all_bytes = static_cast<std::size_t>(limbs) * plane_bytes + kStepBytes;
    const std::unique_ptr<std::uint8_t[]> planes(new std::uint8_t[all_bytes]);
    std::memset(planes.get() + all_bytes - kStepBytes, 0, kStepBytes);
    parallel_ranges(static_cast<std::size_t>(shape.field_height()), 1,
                    threads_worth(threads, all_bytes, kPlaneBytesPerThread),
                    [&](std::size_t begin, std::size_t end) {
                        fill_planes(shape, kernel_.form, limbs, in, begin, end, planes.get(), plane_bytes);
                    });
    const bool bytes = limb_bits(kernel_.form) == 8;
    const Tiles<T> tiles = kernel_.outputs == 16
                               ? (bytes ? tiles_for<T, 16, 8, 1>(limbs) : tiles_for<T, 16, 16, 1>(limbs))
                               : (bytes ? tiles_for<T, 8, 8, 1>(limbs) : tiles_for<T, 8, 16, 1>(limbs));
    const auto per_tile = static_cast<std::size_t>(kMaxColumns / limbs);
    const std::size_t pixel_tiles = (pixel_offsets_.size() + per_tile - 1) / per_tile;
    const auto output_tiles =
        static_cast<std::size_t>((shape.out_channels + kernel_.outputs - 1) / kernel_.outputs);
    const std::size_t products = weights_.size() * pixel_tiles * kMaxColumns;
    parallel_ranges(output_tiles * pixel_tiles, 1, threads_worth(threads, products, kProductsPerThread),
                    [&](std::size_t begin, std::size_t end) {
                        (this->*tiles)(shape, ring_bits, planes.get(), plane_bytes, begin, end, out);
                    });
}

void Conv::LimbPath::apply(const ConvShape& shape, int ring_bits, const std::uint32_t* in, unsigned threads,
                           std::uint32_t* out) const {
    convolve(shape, ring_bits, in, threads, out);
}

void Conv::LimbPath::apply(const ConvShape& shape, int ring_bits, const std::uint64_t* in, unsigned threads,
                           std::uint64_t* out) const {
    convolve(shape, ring_bits, in, threads, out);
}

}  // namespace sphynx::ring
