#include "cpu.h"

#include <atomic>
#include <cstddef>

#if defined(__aarch64__) && defined(__APPLE__)
#include <sys/sysctl.h>
#elif defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#elif defined(__x86_64__)
#include <cpuid.h>
#endif

namespace sphynx {
namespace {

#if defined(__x86_64__)
// Which vector registers the operating system saves: a CPU bit without it means a trap at the first use.
unsigned enabled_vector_state() {
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || !(ecx & bit_OSXSAVE)) return 0;
    unsigned low = 0, high = 0;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}
#endif

#if defined(__aarch64__) && defined(__APPLE__)
bool has(const char* feature) {
    int value = 0;
    std::size_t bytes = sizeof value;
    return sysctlbyname(feature, &value, &bytes, nullptr, 0) == 0 && value != 0;
}
#endif

CpuFeatures detect() {
    CpuFeatures found;
#if defined(__aarch64__) && defined(__APPLE__)
    found.neon = true;
    found.armv8_aes = has("hw.optional.arm.FEAT_AES");
    found.pmull = has("hw.optional.arm.FEAT_PMULL");
    found.dotprod = has("hw.optional.arm.FEAT_DotProd");
#elif defined(__aarch64__)
    const unsigned long caps = getauxval(AT_HWCAP);
    found.neon = true;
    found.armv8_aes = caps & HWCAP_AES;
    found.pmull = caps & HWCAP_PMULL;
    found.dotprod = caps & HWCAP_ASIMDDP;
#elif defined(__x86_64__)
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    if (__get_cpuid(1, &eax, &ebx, &ecx, &edx)) {
        found.pclmul = ecx & bit_PCLMUL;
        found.aesni = (ecx & bit_AES) && (ecx & bit_SSE4_1) && (ecx & bit_SSSE3);
    }
    const unsigned state = enabled_vector_state();
    const bool ymm = (state & 0x6) == 0x6;
    const bool zmm = (state & 0xe6) == 0xe6;
    if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) {
        constexpr unsigned avx512_base = bit_AVX512F | bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL;
        found.avx2 = ymm && (ebx & bit_AVX2);
        found.vaes = found.avx2 && found.aesni && (ecx & bit_VAES);
        found.avx512 = zmm && (ebx & avx512_base) == avx512_base;
        found.avx512_vnni = found.avx512 && (ecx & bit_AVX512VNNI);
        found.vpclmul = found.avx512 && found.pclmul && (ecx & bit_VPCLMULQDQ);
        found.vbmi = found.avx512 && (ecx & bit_GFNI) && (ecx & bit_AVX512VBMI);
    }
#endif
    return found;
}

// Null where nothing is limited.
std::atomic<const CpuFeatures*> limited{nullptr};

}  // namespace

const CpuFeatures& hardware_features() {
    static const CpuFeatures found = detect();
    return found;
}

const CpuFeatures& usable_features() {
    const CpuFeatures* most = limited.load(std::memory_order_acquire);
    return most ? *most : hardware_features();
}

LimitFeatures::LimitFeatures(const CpuFeatures& most) : most_(most), before_(limited.exchange(&most_)) {}

LimitFeatures::~LimitFeatures() {
    limited.store(before_);
}

std::vector<CpuFeatures> features_to_test() {
    std::vector<CpuFeatures> found{hardware_features()};
    const auto without = [&found](auto... feature) {
        CpuFeatures less = found.back();
        ((less.*feature = false), ...);
        if (less != found.back()) found.push_back(less);
    };
    without(&CpuFeatures::vpclmul, &CpuFeatures::vbmi);
    without(&CpuFeatures::avx512_vnni, &CpuFeatures::avx512);
    without(&CpuFeatures::vaes);
    without(&CpuFeatures::dotprod);
    if (found.back() != CpuFeatures{}) found.emplace_back();
    return found;
}

}  // namespace sphynx
