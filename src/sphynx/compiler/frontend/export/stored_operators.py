"""The operators that a .pt2 file may name. All others are refused: among torch's are some that read and write files and
some that trust their indices, and torch.export.load finds all of Python beside them.

A name is found in a table, or is that of a known operator of ATen; it is never looked up in a module.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from typing import Any

import torch
from torch._ops import OpOverload

from sphynx.compiler.frontend.export.aten import WAYS

Target = Callable[..., Any]
_ATEN = re.compile(r"torch\.ops\.aten\.([a-zA-Z]\w*|_[a-zA-Z]\w*)\.([a-zA-Z]\w*)")
_LARGEST_NUMBER = 1 << 62

# What torch takes apart into operators that we have words for.
_COMPOSED = (
    "_convolution", "_weight_norm", "_weight_norm_interface", "absolute", "addcdiv", "addcmul", "addr",
    "atleast_1d", "atleast_2d", "atleast_3d", "baddbmm", "bilinear", "broadcast_tensors", "clip", "column_stack",
    "concat", "concatenate", "cosine_similarity", "diff", "divide", "dot", "dstack", "feature_dropout",
    "alpha_dropout", "fill", "fliplr", "flipud", "floor_divide", "frobenius_norm", "glu", "grid_sampler",
    "hardshrink", "hstack", "inner", "lerp", "log_sigmoid", "logsumexp", "masked_fill", "matrix_power", "moveaxis",
    "multiply", "mv", "negative", "norm", "one_hot", "outer", "permute_copy", "reflection_pad1d", "relu6",
    "repeat_interleave", "replication_pad1d", "rms_norm", "row_stack", "rrelu", "select_scatter", "softshrink",
    "square", "stack", "std", "std_mean", "subtract", "sum_to_size", "swapaxes", "tensordot", "threshold", "tile",
    "true_divide", "unsafe_chunk", "unsafe_split", "unsafe_split_with_sizes", "upsample_bicubic2d",
    "upsample_linear1d", "var", "var_mean", "view_as", "expand_as", "reshape_as", "vstack", "zero",
)  # fmt: skip
# What makes constants, and what is computed of them: coordinates, masks, windows.
_OF_CONSTANTS = (
    "arange", "eye", "full", "full_like", "linspace", "meshgrid", "new_full", "new_ones", "new_zeros", "ones",
    "ones_like", "scalar_tensor", "tril", "triu", "zeros", "zeros_like", "lift_fresh", "abs", "acos", "all", "any",
    "argmax", "argmin", "asin", "atan", "atan2", "bitwise_and", "bitwise_not", "bitwise_or", "ceil", "cos", "cosh",
    "cumprod", "cumsum", "eq", "exp2", "expm1", "floor", "fmod", "ge", "gt", "isfinite", "isinf", "isnan", "le",
    "log", "log10", "log1p", "log2", "logical_and", "logical_not", "logical_or", "logical_xor", "lt", "max", "min",
    "ne", "prod", "reciprocal", "remainder", "round", "rsqrt", "sign", "sin", "sinh", "sort", "sqrt", "tan",
    "trunc",
)  # fmt: skip
# Shapes, and what an exporter checks.
_OF_SHAPES = (
    "sym_size", "sym_numel", "_assert_scalar", "_assert_tensor_metadata", "sym_constrain_range",
    "sym_constrain_range_for_size",
)  # fmt: skip
KNOWN = frozenset((*WAYS, *_COMPOSED, *_OF_CONSTANTS, *_OF_SHAPES))


def _of_numbers(function: Target) -> Target:
    """Restrict a function to numbers, which stay small: products of products could fill the memory."""

    def bounded(*numbers: float) -> float:
        if any(not isinstance(n, int | float) or abs(n) > _LARGEST_NUMBER for n in numbers):
            raise ValueError(f"{function.__name__} of something other than a number below 2^62")
        found: float = function(*numbers)
        return found

    bounded.__name__ = f"{function.__name__}_of_numbers"
    return bounded


# Of a batch's open length, mostly.
_ARITHMETIC = (
    "eq", "ne", "le", "ge", "lt", "gt", "neg", "pos", "mul", "add", "sub", "floordiv", "mod", "truediv", "and_", "or_",
)  # fmt: skip
_SYMBOLIC = ("sym_not", "sym_int", "sym_float", "sym_max", "sym_min")
_NUMBERS: dict[str, Target] = {
    **{f"_operator.{name}": _of_numbers(getattr(operator, name)) for name in _ARITHMETIC},
    **{f"torch.{name}": _of_numbers(getattr(torch, name)) for name in _SYMBOLIC},
    "math.trunc": _of_numbers(math.trunc),
}


def target_of(name: str) -> Target | None:
    """The operator of this name; None where a file may not name it."""
    if name in _NUMBERS:
        return _NUMBERS[name]
    form = _ATEN.fullmatch(name)
    if form is None or not {form[1], form[1].removesuffix("_")} & KNOWN:
        return None
    found = getattr(getattr(torch.ops.aten, form[1], None), form[2], None)
    return found if isinstance(found, OpOverload) else None
