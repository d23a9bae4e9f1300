// Bit-slicing and packing of ring elements.
#include "bindings/arrays.h"
#include "bits/pack.h"
#include "bits/transpose.h"

namespace {

using namespace sphynx;
using namespace sphynx::bits;
using namespace sphynx::bindings;

void require_width(unsigned width) {
    require(width >= 1 && width <= 64, "width must be 1 to 64");
}

void slice(Words values, unsigned width, WordsOut planes) {
    require_width(width);
    const std::uint64_t* from = sized(values, values.size(), "values").data();
    std::uint64_t* to = sized(planes, product(width, plane_words(values.size())), "planes").data();
    nb::gil_scoped_release unlocked;
    slice_bits(from, values.size(), width, to);
}

void unslice(Words planes, unsigned width, WordsOut values) {
    require_width(width);
    const std::uint64_t* from = sized(planes, product(width, plane_words(values.size())), "planes").data();
    std::uint64_t* to = sized(values, values.size(), "values").data();
    nb::gil_scoped_release unlocked;
    unslice_bits(from, values.size(), width, to);
}

void pack(Words values, unsigned width, BytesOut bytes) {
    require_width(width);
    const std::uint64_t* from = sized(values, values.size(), "values").data();
    std::uint8_t* to = sized(bytes, packed_bytes(values.size(), width), "bytes").data();
    nb::gil_scoped_release unlocked;
    pack_ring(from, values.size(), width, to);
}

void unpack(Bytes bytes, unsigned width, WordsOut values) {
    require_width(width);
    const std::uint8_t* from = sized(bytes, packed_bytes(values.size(), width), "bytes").data();
    std::uint64_t* to = sized(values, values.size(), "values").data();
    nb::gil_scoped_release unlocked;
    unpack_ring(from, values.size(), width, to);
}

}  // namespace

void bind_bits(nb::module_& module) {
    module.def("slice_bits", slice, "values"_a.noconvert(), "width"_a, "planes"_a.noconvert());
    module.def("unslice_bits", unslice, "planes"_a.noconvert(), "width"_a, "values"_a.noconvert());
    module.def("pack_ring", pack, "values"_a.noconvert(), "width"_a, "bytes"_a.noconvert());
    module.def("unpack_ring", unpack, "bytes"_a.noconvert(), "width"_a, "values"_a.noconvert());
}
