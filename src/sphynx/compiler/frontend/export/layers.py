"""ATen's layers in ONNX's words: convolutions, products, norms, pools and means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from torch.fx import Node

from sphynx.compiler.frontend.export.lower import Lowering
from sphynx.compiler.frontend.operators.operation import NO_BATCH

Given = Mapping[str, Any]


def each(given: Any, axes: int) -> list[int]:
    """A number for every axis that a window slides over: ATen takes one for all."""
    numbers = [int(n) for n in given] if isinstance(given, Sequence) else [int(given)]
    return numbers * axes if len(numbers) == 1 else numbers


def slid_axes(read: Node) -> int:
    """Count the axes that a window slides over, of a map or a convolution's weights: all but the first two."""
    return len(shape_of(read)) - 2


def shape_of(read: Node) -> list[int]:
    return [int(n) for n in read.meta["val"].shape]


def convolution(low: Lowering, node: Node, given: Given) -> str:
    weight, padding, axes = given["weight"], given.get("padding", 0), slid_axes(given["weight"])
    dilation = each(given["dilation"], axes)
    if isinstance(padding, str):
        reach = [d * (k - 1) for d, k in zip(dilation, shape_of(weight)[2:], strict=True)]
        before = [n // 2 if padding == "same" else 0 for n in reach]
        after = [n - n // 2 if padding == "same" else 0 for n in reach]
    else:
        before = after = each(padding, axes)
    return low.call(
        node,
        "Conv",
        *(low.use(node, given[key]) for key in ("input", "weight", "bias")),
        strides=each(given["stride"], axes),
        pads=[*before, *after],
        dilations=dilation,
        group=int(given["groups"]),
    )


def transposed_convolution(low: Lowering, node: Node, given: Given) -> str:
    axes = slid_axes(given["weight"])
    return low.call(
        node,
        "ConvTranspose",
        *(low.use(node, given[key]) for key in ("input", "weight", "bias")),
        strides=each(given["stride"], axes),
        pads=each(given["padding"], axes) * 2,
        dilations=each(given["dilation"], axes),
        output_padding=each(given["output_padding"], axes),
        group=int(given["groups"]),
    )


def decomposed_convolution(low: Lowering, node: Node, given: Given) -> str:
    """Lower `aten.convolution`, which convolutions of all kinds become where torch takes a program apart."""
    if slid_axes(given["weight"]) == 3:
        return low.call(node, "Conv over three axes", low.use(node, given["input"]))
    return (transposed_convolution if given["transposed"] else convolution)(low, node, given)


def dense(low: Lowering, node: Node, given: Given) -> str:
    return low.call(node, "Gemm", *(low.use(node, given[key]) for key in ("input", "weight", "bias")), transB=1)


def decomposed_dense(low: Lowering, node: Node, given: Given) -> str:
    """addmm, whose bias comes first and whose weights lie as matrices multiply."""
    inputs = (low.use(node, given[key]) for key in ("mat1", "mat2", "self"))
    return low.call(node, "Gemm", *inputs, alpha=float(given["alpha"]), beta=float(given["beta"]))


def product(low: Lowering, node: Node, given: Given) -> str:
    """matmul, mm and bmm."""
    second = given["other"] if "other" in given else given["mat2"]
    return low.call(node, "MatMul", low.use(node, given["self"]), low.use(node, second))


def norm(low: Lowering, node: Node, given: Given) -> tuple[str, ...]:
    channels = shape_of(given["input"])[1]
    weight, bias = (
        low.use(node, np.full(channels, default) if given[key] is None else given[key])
        for key, default in (("weight", 1.0), ("bias", 0.0))
    )
    statistics = [low.use(node, given.get(key)) for key in ("running_mean", "running_var")]
    learns = bool(given.get("training")) or not all(statistics)
    made = low.call(
        node,
        "BatchNormalization",
        low.use(node, given["input"]),
        weight,
        bias,
        *statistics,
        epsilon=float(given["eps"]),
        training_mode=int(learns),
    )
    return made, "", ""


def _windows(given: Given) -> tuple[list[int], list[int], list[int]]:
    """A pool's kernel, strides, and padding before."""
    axes = slid_axes(given["self"])
    kernel = each(given["kernel_size"], axes)
    return kernel, each(given["stride"], axes) if given["stride"] else kernel, each(given["padding"], axes)


def _pool(low: Lowering, node: Node, kind: str, given: Given, *, outputs: int = 1, **attributes: Any) -> str:
    kernel, strides, pads = _windows(given)
    return low.call(
        node,
        kind,
        low.use(node, given["self"]),
        outputs=outputs,
        kernel_shape=kernel,
        strides=strides,
        pads=pads * 2,
        ceil_mode=int(given["ceil_mode"]),
        **attributes,
    )


def max_pool(low: Lowering, node: Node, given: Given) -> tuple[str, ...]:
    outputs = 2 if _reads_second(node) else 1
    dilations = each(given["dilation"], slid_axes(given["self"]))
    made = _pool(low, node, "MaxPool", given, outputs=outputs, dilations=dilations)
    return made, f"{made}.1"


def _reads_second(node: Node) -> bool:
    """Return whether anything reads the second of its outputs; a node of one output is not asked for others."""
    return isinstance(node.meta["val"], tuple | list) and any(
        user.args[1:] == (1,) and bool(user.users) for user in node.users
    )


def adaptive_max(low: Lowering, node: Node, given: Given) -> tuple[str, ...]:
    """A plain pool where its windows are alike."""
    lengths = shape_of(given["self"])[2:]
    sizes = each(given["output_size"], len(lengths))
    kind, attributes = "MaxPool", {}
    if len(sizes) != len(lengths):
        kind = NO_BATCH
    elif any(n % size for n, size in zip(lengths, sizes, strict=True)):
        kind = "aten.adaptive_max_pool2d"
    else:
        kernel = [n // size for n, size in zip(lengths, sizes, strict=True)]
        attributes = {"kernel_shape": kernel, "strides": kernel}
    outputs = 2 if _reads_second(node) else 1
    made = low.call(node, kind, low.use(node, given["self"]), outputs=outputs, **attributes)
    return made, f"{made}.1"


def average_pool(low: Lowering, node: Node, given: Given) -> str:
    divisor = given.get("divisor_override")
    if divisor is None:
        return _pool(low, node, "AveragePool", given, count_include_pad=int(given["count_include_pad"]))
    # One divisor for all windows, also for those that end beyond the padding: as much as they see is padded.
    kernel, strides, before = _windows(given)
    sizes = zip(shape_of(node)[2:], shape_of(given["self"])[2:], kernel, strides, before, strict=True)
    after = [max(p, (outputs - 1) * stride + k - n - p) for outputs, n, k, stride, p in sizes]
    x, pads = low.use(node, given["self"]), [*before, *after]
    made = low.call(
        node, "AveragePool", x, kernel_shape=kernel, strides=strides, pads=pads, ceil_mode=0, count_include_pad=1
    )
    return low.call(node, "Mul", made, low.use(node, np.prod(kernel) / divisor))


def adaptive_average(low: Lowering, node: Node, given: Given) -> str:
    sizes = [int(n) for n in given["output_size"]]
    shape = tuple(shape_of(given["self"]))
    if len(sizes) != len(shape) - 2:
        return low.call(node, NO_BATCH, low.use(node, given["self"]))
    return low.call(node, "AdaptiveAveragePool", low.use(node, given["self"]), output_size=sizes, shape=shape)


def mean(low: Lowering, node: Node, given: Given) -> str:
    x, keepdims = low.use(node, given["self"]), int(given.get("keepdim", False))
    return low.call(node, "ReduceMean", x, axes=_reduced_axes(given), keepdims=keepdims)


def total(low: Lowering, node: Node, given: Given) -> str:
    """Lower a sum: its axes are an input in ONNX, where those of a mean are an attribute."""
    x, axes = low.use(node, given["self"]), low.use(node, np.array(_reduced_axes(given)))
    return low.call(node, "ReduceSum", x, axes, keepdims=int(given.get("keepdim", False)))


def _reduced_axes(given: Given) -> list[int]:
    rank = len(shape_of(given["self"]))
    return [int(axis) % rank for axis in given.get("dim") or range(rank)]


def largest(low: Lowering, node: Node, given: Given) -> str:
    """amax over rows and columns."""
    x, rank = low.use(node, given["self"]), len(shape_of(given["self"]))
    if sorted(int(axis) % rank for axis in given["dim"]) != [2, 3] or rank != 4:
        return low.call(node, "Max over axes other than rows and columns", x)
    made = low.call(node, "GlobalMaxPool", x)
    return made if given["keepdim"] else low.call(node, "Flatten", made)
