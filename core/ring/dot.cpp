#include "ring/dot.h"

#include "cpu.h"

namespace sphynx::ring {

#if defined(__aarch64__)
extern const DotKernel kDotprodKernel;  // dot_dotprod.cpp
const DotKernel* best_dot_kernel() {
    return usable_features().dotprod ? &kDotprodKernel : nullptr;
}
#elif defined(__x86_64__)
extern const DotKernel kVnniKernel;  // dot_avxvnni.cpp
extern const DotKernel kAvx2Kernel;  // dot_avx2.cpp
const DotKernel* best_dot_kernel() {
    if (usable_features().avx512_vnni) return &kVnniKernel;
    return usable_features().avx2 ? &kAvx2Kernel : nullptr;
}
#else
const DotKernel* best_dot_kernel() {
    return nullptr;
}
#endif

}  // namespace sphynx::ring
