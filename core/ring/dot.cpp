#include "ring/dot.h"

#include "cpu.h"

namespace sphynx::ring {

#if defined(__aarch64__)
extern const DotKernel kDotprodKernel;  // dot_dotprod.cpp
const DotKernel* best_dot_kernel(int, bool) {
    return usable_features().dotprod ? &kDotprodKernel : nullptr;
}
#elif defined(__x86_64__)
extern const DotKernel kVnniKernel, kVnni16Kernel;  // dot_avxvnni.cpp
extern const DotKernel kAvx2Kernel;                 // dot_avx2.cpp
const DotKernel* best_dot_kernel(int ring_bits, bool byte_weights) {
    // A weight of two bytes meets a 31-bit element in 7 products of bytes or 2 of halves, half as many at a time.
    // Beyond 32 bits sums must be exact, which 16-bit weights do not allow.
    const bool halves = ring_bits <= 32 && !byte_weights;
    if (usable_features().avx512_vnni) return halves ? &kVnni16Kernel : &kVnniKernel;
    return usable_features().avx2 ? &kAvx2Kernel : nullptr;
}
#else
const DotKernel* best_dot_kernel(int, bool) {
    return nullptr;
}
#endif

}  // namespace sphynx::ring
