// The two ways Conv computes, internal to core/ring.
#pragma once

#include "ring/conv.h"

namespace sphynx::ring {

// Whether any output and channel has a weight at this position of the kernel. A path skips the others, and nothing
// else that depends on weights: the time of a layer shows no more than this.
bool tap_used(const ConvShape& shape, const std::int32_t* weights, int row, int column);

class Conv::Path {
  public:
    virtual ~Path() = default;
    virtual const char* name() const = 0;
    virtual void apply(const ConvShape& shape, int ring_bits, const std::uint32_t* in, unsigned threads,
                       std::uint32_t* out) const = 0;
    virtual void apply(const ConvShape& shape, int ring_bits, const std::uint64_t* in, unsigned threads,
                       std::uint64_t* out) const = 0;
};

class Conv::LimbPath final : public Path {
  public:
    LimbPath(const ConvShape& shape, int ring_bits, const std::int32_t* weights, const DotKernel& kernel);
    const char* name() const override { return kernel_.name; }
    void apply(const ConvShape& shape, int ring_bits, const std::uint32_t* in, unsigned threads,
               std::uint32_t* out) const override;
    void apply(const ConvShape& shape, int ring_bits, const std::uint64_t* in, unsigned threads,
               std::uint64_t* out) const override;

  private:
    // Runs whose 32-bit sums cannot overflow (or may, because the result is modulo 2^32).
    struct Segment {
        std::size_t first_run, run_count;
        int groups;  // in these runs
    };

    template <class T>
    void convolve(const ConvShape& shape, int ring_bits, const T* in, unsigned threads, T* out) const;
    // A range of tiles, each of kOutputs channels by kMaxColumns / kLimbs output pixels.
    template <class T, int kOutputs, int kBits, int kLimbs>
    void tiles(const ConvShape& shape, int ring_bits, const std::uint8_t* planes, std::size_t plane_bytes,
               std::size_t first_task, std::size_t last_task, T* out) const;
    template <class T>
    using Tiles = void (LimbPath::*)(const ConvShape&, int, const std::uint8_t*, std::size_t, std::size_t,
                                     std::size_t, T*) const;
    // tiles() for a limb count known at run time, at least kLimbs.
    template <class T, int kOutputs, int kBits, int kLimbs>
    static Tiles<T> tiles_for(int limbs);

    const DotKernel& kernel_;
    int weight_limb_bits_ = 8;
    int weight_limbs_ = 1;
    std::vector<Run> runs_;               // whole ones, then as border tiles of pixels have them
    std::vector<std::size_t> tile_runs_;  // where each tile of pixels has its first run
    std::vector<Segment> segments_;
    std::vector<std::size_t> pixel_offsets_;  // where each output pixel's field starts in a plane
    std::size_t groups_ = 0;                  // in all runs
    std::vector<std::int8_t> weights_;        // [output tile][weight limb][group][output][4]
};

class Conv::WidePath final : public Path {
  public:
    WidePath(const ConvShape& shape, const std::int32_t* weights);
    const char* name() const override { return "wide"; }
    void apply(const ConvShape& shape, int ring_bits, const std::uint32_t* in, unsigned threads,
               std::uint32_t* out) const override;
    void apply(const ConvShape& shape, int ring_bits, const std::uint64_t* in, unsigned threads,
               std::uint64_t* out) const override;

  private:
    template <class T>
    void convolve(const ConvShape& shape, int ring_bits, const T* in, unsigned threads, T* out) const;

    std::vector<std::int32_t> weights_;
    std::vector<char> taps_used_;  // [kernel row][kernel column]
};

}  // namespace sphynx::ring
