"""ATen's operators in ONNX's words: what each call is named as, and how its arguments become attributes."""

from __future__ import annotations

import numpy as np
import torch
from torch.fx import Node

from sphynx.compiler.frontend.export.layers import (
    Given,
    adaptive_average,
    adaptive_max,
    average_pool,
    convolution,
    decomposed_convolution,
    decomposed_dense,
    dense,
    largest,
    max_pool,
    mean,
    norm,
    product,
    shape_of,
    total,
    transposed_convolution,
)
from sphynx.compiler.frontend.export.lower import Lowering, Way
from sphynx.compiler.frontend.operators.operation import ROUNDING_CAST
from sphynx.program.convolve import Array


def _arithmetic(kind: str, *, reverses: bool = False) -> Way:
    def way(low: Lowering, node: Node, given: Given) -> str:
        if given.get("rounding_mode"):
            return low.call(node, f"Div, rounded by {given['rounding_mode']},", low.use(node, given["self"]))
        both = (given["other"], given["self"]) if reverses else (given["self"], given["other"])
        first, second = (low.use(node, each) for each in both)
        alpha = given.get("alpha", 1)
        if alpha != 1 and low.is_map(both[1]):
            second = low.call(node, "Mul", second, low.use(node, alpha))
        elif alpha != 1:
            low.constants[second] = alpha * low.constants[second]
        return low.call(node, kind, first, second)

    return way


def power(low: Lowering, node: Node, given: Given) -> str:
    return low.call(node, "Pow", low.use(node, given["self"]), low.use(node, given["exponent"]))


def clipped(low: Lowering, node: Node, given: Given) -> str:
    bounds = [given.get(key, given.get(f"{key}_val")) for key in ("min", "max")]
    if any(isinstance(bound, Node) for bound in bounds):
        return low.call(node, "Clip by tensors", low.use(node, given["self"]))
    return low.call(node, "Clip", low.use(node, given["self"]), *(low.use(node, bound) for bound in bounds))


def leaky(low: Lowering, node: Node, given: Given) -> str:
    return low.call(node, "LeakyRelu", low.use(node, given["self"]), alpha=float(given["negative_slope"]))


def prelu(low: Lowering, node: Node, given: Given) -> str:
    """One slope, or one for each channel, which ONNX wants to have rows and columns."""
    slope = low.use(node, given["weight"])
    axes = len(shape_of(given["self"])) - 2
    if slope in low.constants:
        low.constants[slope] = low.constants[slope].reshape(-1, *[1] * axes)
    return low.call(node, "PRelu", low.use(node, given["self"]), slope)


def elu(low: Lowering, node: Node, given: Given) -> str:
    is_plain = given["scale"] == 1 and given["input_scale"] == 1
    kind = "Elu" if is_plain else "Selu"
    return low.call(node, kind, low.use(node, given["self"]), alpha=float(given["alpha"]))


def softplus(low: Lowering, node: Node, given: Given) -> str:
    kind = "Softplus" if given["beta"] == 1 else "Softplus with beta"
    return low.call(node, kind, low.use(node, given["self"]))


def hard_sigmoid(low: Lowering, node: Node, given: Given) -> str:
    return low.call(node, "HardSigmoid", low.use(node, given["self"]), alpha=1 / 6, beta=0.5)


def gelu(low: Lowering, node: Node, given: Given) -> str:
    return low.call(node, "Gelu", low.use(node, given["self"]), approximate=str(given["approximate"]).encode())


def inverse_root(low: Lowering, node: Node, given: Given) -> str:
    return low.call(node, "Reciprocal", low.call(node, "Sqrt", low.use(node, given["self"])))


def layer_norm(low: Lowering, node: Node, given: Given) -> tuple[str, ...]:
    parts = [low.use(node, given[key]) for key in ("input", "weight", "bias")]
    axis = -len(given["normalized_shape"])
    made = low.call(node, "LayerNormalization", *parts, axis=axis, epsilon=float(given["eps"]))
    return made, "", ""


def attention(low: Lowering, node: Node, given: Given) -> str:
    asked, keys, values = (low.use(node, given[key]) for key in ("query", "key", "value"))
    if given.get("attn_mask") is not None or given.get("is_causal") or given.get("enable_gqa"):
        return low.call(node, "Attention", asked, keys, values)
    *_, width = shape_of(given["query"])
    scale = width**-0.5 if given.get("scale") is None else float(given["scale"])
    rank = len(shape_of(given["key"]))
    turned = low.call(node, "Transpose", keys, perm=[*range(rank - 2), rank - 1, rank - 2])
    scores = low.call(node, "Mul", low.call(node, "MatMul", asked, turned), low.use(node, scale))
    return low.call(node, "MatMul", low.call(node, "Softmax", scores, axis=-1), values)


def group_norm(low: Lowering, node: Node, given: Given) -> str:
    parts = [low.use(node, given[key]) for key in ("input", "weight", "bias")]
    groups, epsilon = int(given["num_groups"]), float(given["eps"])
    return low.call(node, "GroupNormalization", *parts, num_groups=groups, epsilon=epsilon)


def instance_norm(low: Lowering, node: Node, given: Given) -> str:
    parts = [low.use(node, given[key]) for key in ("input", "weight", "bias")]
    kind = "InstanceNormalization" if given["use_input_stats"] else "InstanceNorm with fixed statistics"
    return low.call(node, kind, *parts, epsilon=float(given["eps"]))


def softmax(kind: str) -> Way:
    def way(low: Lowering, node: Node, given: Given) -> str:
        return low.call(node, kind, low.use(node, given["self"]), axis=int(given["dim"]))

    return way


def join(low: Lowering, node: Node, given: Given) -> str:
    return low.call(node, "Concat", *(low.use(node, each) for each in given["tensors"]), axis=int(given["dim"]))


def put(low: Lowering, node: Node, given: Given) -> str:
    """slice_scatter: a map whose slice is another one, as assignments to a part of it become."""
    whole, step = given["self"], int(given["step"])
    shape = shape_of(whole)
    axis = int(given["dim"]) % len(shape)
    length = shape[axis]
    first, last, _ = slice(given["start"], given["end"]).indices(length)
    if step != 1 or not low.is_map(whole):
        return low.call(node, "Assignment to a part of a constant, or with steps,", low.use(node, given["src"]))
    ends = (slice(0, first), slice(last, length))
    before, after = ([_part(low, node, whole, axis, end)] if end.start < end.stop else [] for end in ends)
    parts = [*before, low.use(node, given["src"]), *after]
    return parts[0] if len(parts) == 1 else low.call(node, "Concat", *parts, axis=axis)


def _part(low: Lowering, node: Node, whole: Node, axis: int, kept: slice) -> str:
    def moved(numbers: Array) -> list[Array]:
        return [numbers[(slice(None),) * axis + (kept,)]]

    return low.rearrange(node, whole, moved)[0]


def copied(low: Lowering, node: Node, given: Given) -> str:
    same_shape = low.is_map(given["src"]) and shape_of(given["src"]) == shape_of(node)
    return low.call(node, "Identity" if same_shape else "Copy of another shape", low.use(node, given["src"]))


def pad(low: Lowering, node: Node, given: Given) -> str | tuple[str, ...]:
    """Zeros are ONNX's own Pad, which pools look through; other modes only repeat pixels."""
    if given.get("mode", "constant") != "constant":
        return low.move(node, given["self"])
    amounts, rank = [int(n) for n in given["pad"]], len(shape_of(given["self"]))
    before, after = [0] * rank, [0] * rank  # ATen begins with the last axis
    for number in range(len(amounts) // 2):
        before[rank - 1 - number], after[rank - 1 - number] = amounts[2 * number : 2 * number + 2]
    names = [low.use(node, np.array([*before, *after])), low.use(node, float(given.get("value") or 0))]
    return low.call(node, "Pad", low.use(node, given["self"]), *names)


def bilinear(low: Lowering, node: Node, given: Given) -> str:
    scales = [n for n in given.get("scale_factors") or (given.get("scales_h"), given.get("scales_w")) if n is not None]
    if scales:
        inputs = ["", low.use(node, np.array([1.0, 1.0, *map(float, scales)]))]
    else:
        inputs = ["", "", low.use(node, np.array(shape_of(node)))]
    mode = b"align_corners" if given["align_corners"] else b"half_pixel"
    x = low.use(node, _source(given))
    return low.call(node, "Resize", x, *inputs, mode=b"linear", coordinate_transformation_mode=mode)


def same(low: Lowering, node: Node, given: Given) -> str:
    """Copies, casts between kinds of floats, dropout that drops nothing."""
    source = low.use(node, _source(given))
    if given.get("train"):
        return low.call(node, "Dropout", source, low.use(node, float(given["p"])), low.use(node, True))
    is_float = node.meta["val"].dtype.is_floating_point
    return low.call(node, "Identity" if is_float else ROUNDING_CAST, source)


def moved(low: Lowering, node: Node, given: Given) -> str | tuple[str, ...]:
    source = _source(given)
    if any(read is not source and low.is_map(read) for read in node.all_input_nodes):
        return low.call(node, "Gather by a map", low.use(node, source))
    return low.move(node, source)


def _source(given: Given) -> Node:
    found = given["self"] if "self" in given else given["input"]
    assert isinstance(found, Node)
    return found


def _way_named(kind: str) -> Way:
    def way(low: Lowering, node: Node, _: Given) -> tuple[str, ...]:
        maps = [low.use(node, read) for read in node.all_input_nodes if low.is_map(read)]
        count = 1 if isinstance(node.meta["val"], torch.Tensor) else len(node.meta["val"])
        name = low.call(node, kind, *maps, outputs=count)
        return (name, *(f"{name}.{number}" for number in range(1, count)))

    return way


_MOVES = (
    "view", "_unsafe_view", "reshape", "flatten", "unflatten", "squeeze", "unsqueeze", "permute", "transpose", "t",
    "slice", "select", "split", "split_with_sizes", "chunk", "unbind", "narrow", "index", "index_select", "flip",
    "roll", "rot90", "pixel_shuffle", "pixel_unshuffle", "channel_shuffle", "native_channel_shuffle", "repeat",
    "expand", "movedim", "reflection_pad2d", "replication_pad2d", "upsample_nearest1d", "upsample_nearest2d",
    "_upsample_nearest_exact1d", "_upsample_nearest_exact2d",
)  # fmt: skip
_SAME = ("clone", "contiguous", "alias", "detach", "_to_copy", "to", "dropout", "lift_fresh_copy", "type_as")
# What ONNX has a word for and needs nothing but the map: compiled, approximated or refused under that word.
_NAMED = {
    "relu": "Relu", "neg": "Neg", "sigmoid": "Sigmoid", "tanh": "Tanh", "hardswish": "HardSwish", "silu": "Swish",
    "selu": "Selu", "celu": "Celu",
    "mish": "Mish", "exp": "Exp", "erf": "Erf", "log": "Log", "sqrt": "Sqrt", "reciprocal": "Reciprocal",
    "lstm": "LSTM", "gru": "GRU", "rnn_tanh": "RNN", "rnn_relu": "RNN",
    "einsum": "Einsum", "where": "Where", "topk": "TopK",
    "nonzero": "NonZero", "gt": "Greater", "lt": "Less", "maximum": "Max", "minimum": "Min",
    "cond": "If", "while_loop": "Loop", "scan": "Scan", "conv3d": "Conv over three axes",
}  # fmt: skip
WAYS: dict[str, Way] = {
    **dict.fromkeys(_MOVES, moved),
    **dict.fromkeys(_SAME, same),
    **{name: _way_named(kind) for name, kind in _NAMED.items()},
    **dict.fromkeys(("conv1d", "conv2d"), convolution),
    **dict.fromkeys(("conv_transpose1d", "conv_transpose2d"), transposed_convolution),
    "convolution": decomposed_convolution,
    "linear": dense,
    "addmm": decomposed_dense,
    **dict.fromkeys(("matmul", "mm", "bmm"), product),
    **dict.fromkeys(("batch_norm", "_native_batch_norm_legit_no_training", "_native_batch_norm_legit"), norm),
    **dict.fromkeys(("max_pool1d", "max_pool2d", "max_pool2d_with_indices"), max_pool),
    **dict.fromkeys(("adaptive_max_pool1d", "adaptive_max_pool2d"), adaptive_max),
    **dict.fromkeys(("avg_pool1d", "avg_pool2d"), average_pool),
    **dict.fromkeys(("adaptive_avg_pool1d", "adaptive_avg_pool2d", "_adaptive_avg_pool2d"), adaptive_average),
    "mean": mean,
    "sum": total,
    "amax": largest,
    "add": _arithmetic("Add"),
    "sub": _arithmetic("Sub"),
    "rsub": _arithmetic("Sub", reverses=True),
    "mul": _arithmetic("Mul"),
    "div": _arithmetic("Div"),
    "pow": power,
    **dict.fromkeys(("clamp", "clamp_min", "clamp_max", "hardtanh"), clipped),
    "leaky_relu": leaky,
    **dict.fromkeys(("prelu", "_prelu_kernel"), prelu),
    "elu": elu,
    "softplus": softplus,
    "hardsigmoid": hard_sigmoid,
    "gelu": gelu,
    "rsqrt": inverse_root,
    "scaled_dot_product_attention": attention,
    "group_norm": group_norm,
    "instance_norm": instance_norm,
    **dict.fromkeys(("layer_norm", "native_layer_norm"), layer_norm),
    **dict.fromkeys(("softmax", "_softmax"), softmax("Softmax")),
    **dict.fromkeys(("log_softmax", "_log_softmax"), softmax("LogSoftmax")),
    "cat": join,
    "slice_scatter": put,
    "copy": copied,
    **dict.fromkeys(("pad", "constant_pad_nd"), pad),
    "upsample_bilinear2d": bilinear,
}
