// A loop that is unrolled whatever the optimiser thinks: body(integral_constant 0) .. body(integral_constant
// n - 1). The kernels keep arrays of vectors in registers, which needs every index to be a constant.
#pragma once

#include <type_traits>
#include <utility>

namespace sphynx {

template <int n, class Body>
[[gnu::always_inline]] inline void unrolled(const Body& body) {
    [&]<int... index>(std::integer_sequence<int, index...>) __attribute__((always_inline)) {
        (body(std::integral_constant<int, index>{}), ...);
    }(std::make_integer_sequence<int, n>{});
}

// A body that does nothing.
struct NoWork {
    void operator()(auto) const {}
};

}  // namespace sphynx
