// The Python module sphynx.core._native. CMake defines SPHYNX_BIND_<PART> for each core/bindings/<part>.cpp.
#include <nanobind/nanobind.h>

namespace nb = nanobind;

#define SPHYNX_DECLARE_PART(part) void bind_##part(nb::module_& module);

#ifdef SPHYNX_BIND_CRYPTO
SPHYNX_DECLARE_PART(crypto)
#endif
#ifdef SPHYNX_BIND_BITS
SPHYNX_DECLARE_PART(bits)
#endif
#ifdef SPHYNX_BIND_GARBLE
SPHYNX_DECLARE_PART(garble)
#endif
#ifdef SPHYNX_BIND_OT
SPHYNX_DECLARE_PART(ot)
#endif
#ifdef SPHYNX_BIND_SILENT
SPHYNX_DECLARE_PART(silent)
#endif
#ifdef SPHYNX_BIND_GMW
SPHYNX_DECLARE_PART(gmw)
#endif
#ifdef SPHYNX_BIND_RLWE
SPHYNX_DECLARE_PART(rlwe)
#endif
#ifdef SPHYNX_BIND_RING
SPHYNX_DECLARE_PART(ring)
#endif

NB_MODULE(_native, module) {
    module.doc() = "The compiled core of Sphynx. Import sphynx.core instead: it checks and explains.";
#ifdef SPHYNX_BIND_CRYPTO
    bind_crypto(module);
#endif
#ifdef SPHYNX_BIND_BITS
    bind_bits(module);
#endif
#ifdef SPHYNX_BIND_GARBLE
    bind_garble(module);
#endif
#ifdef SPHYNX_BIND_OT
    bind_ot(module);
#endif
#ifdef SPHYNX_BIND_SILENT
    bind_silent(module);
#endif
#ifdef SPHYNX_BIND_GMW
    bind_gmw(module);
#endif
#ifdef SPHYNX_BIND_RLWE
    bind_rlwe(module);
#endif
#ifdef SPHYNX_BIND_RING
    bind_ring(module);
#endif
}
