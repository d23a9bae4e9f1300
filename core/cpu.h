// What this CPU offers, found once at run time, and the choice that the kernels make from it.
// Kernels ask usable_features() alone. Tests take the paths of lesser CPUs, and with LimitFeatures({}) the portable ones;
// there is no other way to take them, and nothing but tests does.
#pragma once

#include <vector>

namespace sphynx {

struct CpuFeatures {
    // x86-64
    bool aesni = false;  // AES-NI with SSE4.1
    bool pclmul = false;
    bool vaes = false;  // AES on 256-bit vectors, with AVX2
    bool avx2 = false;
    bool avx512 = false;  // F, BW, DQ and VL together
    bool avx512_vnni = false;
    bool vpclmul = false;  // carry-less products on 512-bit vectors, with AVX-512 and PCLMULQDQ
    bool vbmi = false;     // bytes from anywhere in 512-bit vectors, and GFNI: 8x8 bit matrices in them
    // aarch64
    bool neon = false;  // every CPU of this kind has it
    bool armv8_aes = false;
    bool pmull = false;
    bool dotprod = false;

    bool operator==(const CpuFeatures&) const = default;
};

// What the hardware and the operating system support, whatever a test has forced.
const CpuFeatures& hardware_features();

// What kernels may use now: hardware_features(), or less while a test limits it.
const CpuFeatures& usable_features();

// As long as it lives, kernels use no more than `most`. In one thread of a test.
class LimitFeatures {
  public:
    explicit LimitFeatures(const CpuFeatures& most);
    ~LimitFeatures();
    LimitFeatures(const LimitFeatures&) = delete;
    LimitFeatures& operator=(const LimitFeatures&) = delete;

  private:
    const CpuFeatures most_;
    const CpuFeatures* before_;
};

// What this CPU has, then what lesser ones of its kind have, so that each path that can run here is the best of one;
// last nothing, for the portable paths.
std::vector<CpuFeatures> features_to_test();

}  // namespace sphynx
