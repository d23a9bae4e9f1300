// The transforms of ntt.h on sixteen lanes; bit for bit those of the other paths.
#pragma once

#include "rlwe/ntt.h"

namespace sphynx::rlwe::avx512 {

// The smallest degree: the layers at distances of sixteen and more include that after which values are reduced.
inline constexpr int kMinTransform = 1024;

void forward(std::int32_t* values, const NttTable& table);
void inverse(std::int32_t* values, const NttTable& table);

}  // namespace sphynx::rlwe::avx512
