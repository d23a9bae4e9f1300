// What valgrind's memcheck is told in `make test-constant-time`: a secret is marked as undefined memory, and every
// branch or address that depends on it is then an error. In every other build these functions are empty.
#pragma once

#include <cstddef>

#if defined(SPHYNX_MEMCHECK)
#include <valgrind/memcheck.h>
#endif

namespace sphynx {

inline void mark_secret([[maybe_unused]] const void* memory, [[maybe_unused]] std::size_t bytes) {
#if defined(SPHYNX_MEMCHECK)
    VALGRIND_MAKE_MEM_UNDEFINED(memory, bytes);
#endif
}

// For what is computed from secrets and says nothing about them, as which draws a sampler throws away.
template <class T>
inline T public_value(T value) {
#if defined(SPHYNX_MEMCHECK)
    VALGRIND_MAKE_MEM_DEFINED(&value, sizeof value);
#endif
    return value;
}

}  // namespace sphynx
