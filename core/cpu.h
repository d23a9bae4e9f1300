// What this CPU offers, found once at run time, and the choice that the kernels make from it.
// Tests force the portable paths with ForcePortable; nothing else in the project does.
#pragma once

namespace sphynx {

struct CpuFeatures {
    // x86-64
    bool aesni = false;  // AES-NI with SSE4.1
    bool vaes = false;   // AES on 256-bit vectors, with AVX2
    bool avx2 = false;
    bool avx512 = false;  // F, BW, DQ and VL together
    bool avx512_vnni = false;
    // aarch64
    bool armv8_aes = false;
    bool pmull = false;
    bool dotprod = false;

    bool operator==(const CpuFeatures&) const = default;
};

// What the hardware and the operating system support, whatever a test has forced.
const CpuFeatures& hardware_features();

// What kernels may use now: hardware_features(), or nothing while a test forces the portable paths.
const CpuFeatures& usable_features();

void force_portable_for_tests(bool on);

class ForcePortable {
  public:
    ForcePortable() { force_portable_for_tests(true); }
    ~ForcePortable() { force_portable_for_tests(false); }
    ForcePortable(const ForcePortable&) = delete;
    ForcePortable& operator=(const ForcePortable&) = delete;
};

}  // namespace sphynx
