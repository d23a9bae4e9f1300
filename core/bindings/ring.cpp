// Exact convolution of ring tensors. Submodule _native.ring.
#include <memory>

#include "bindings/arrays.h"
#include "ring/conv.h"

namespace {

using namespace sphynx::bindings;
using namespace sphynx::ring;

template <class T>
void apply(const Conv& conv, const Array<const T>& in, const Array<T>& out, unsigned threads) {
    const T* from = sized(in, conv.shape().in_size(), "tensor").data();
    T* to = sized(out, conv.shape().out_size(), "out").data();
    require(from + in.size() <= to || to + out.size() <= from, "in and out must not overlap");
    nb::gil_scoped_release unlocked;
    conv.apply(from, threads, to);
}

}  // namespace

void bind_ring(nb::module_& parent) {
    nb::module_ module = parent.def_submodule("ring", "Exact convolution modulo 2^k");
    nb::class_<Conv>(module, "Conv")
        .def(
            "__init__",
            [](Conv* self, int in_channels, int height, int width, int out_channels, int kernel_height,
               int kernel_width, int out_height, int out_width, int stride, int dilation, int pad_top,
               int pad_left, int ring_bits, const Array<const std::int32_t>& weights) {
                const ConvShape shape{in_channels,   height,       width,      out_channels,
                                      kernel_height, kernel_width, out_height, out_width,
                                      stride,        dilation,     pad_top,    pad_left};
                shape.check();
                const std::int32_t* from = sized(weights, shape.weight_size(), "weights").data();
                nb::gil_scoped_release unlocked;
                new (self) Conv(shape, ring_bits, from);
            },
            "in_channels"_a, "height"_a, "width"_a, "out_channels"_a, "kernel_height"_a, "kernel_width"_a,
            "out_height"_a, "out_width"_a, "stride"_a, "dilation"_a, "pad_top"_a, "pad_left"_a, "ring_bits"_a,
            "weights"_a.noconvert())
        .def_prop_ro("path", &Conv::path)
        .def_prop_ro("ring_bits", &Conv::ring_bits)
        .def("apply", apply<std::uint32_t>, "tensor"_a.noconvert(), "out"_a.noconvert(), "threads"_a = 0)
        .def("apply", apply<std::uint64_t>, "tensor"_a.noconvert(), "out"_a.noconvert(), "threads"_a = 0);
}
