"""Walks a stream network into a fused graph: each ReLU layer reads all earlier ones, and the logits read every layer.

With halo borders nothing that a block adds to the stream is cut off, so that composing convolutions is exact without
terms for borders: every ReLU layer is one convolution of each earlier one. In a large network those are many: before
each block but the first the stream is a joint, which the later blocks can read instead of all earlier ones (halo
included, so that this is exact too). With zero borders every convolution of the stream is a joint, which may be cut
where its border terms would cost more. The head's mean is part of its linear map: of public window sums where that has
fewer weights, else a kernel as large as the map. No torch.
"""

from __future__ import annotations

import numpy as np

from sphynx.compiler.frontend.activation import walk_activation
from sphynx.compiler.frontend.numbers import Numbers, array_of, norm_of
from sphynx.compiler.fusion.affine import Floats, Node, Window
from sphynx.compiler.fusion.fuse import Fuser
from sphynx.space.stream import KERNEL, StreamDesign
from sphynx.space.tally import Shape

LEAST_SUMMED = 4  # pixels: on smaller maps there are more windows than pixels


def walk_stream(fuser: Fuser, design: StreamDesign, numbers: Numbers) -> Node:
    """The node of the logits."""
    outline = fuser.is_outline
    stream = fuser.input
    for number, (stage, inside, halo) in enumerate(zip(design.stages, design.maps, design.halos, strict=True)):
        if number:
            stream = stream if halo else fuser.joint(stream, f"stages.{number - 1}.reduced")
        name = f"reductions.{number - 1}" if number else "stem"
        size, stride = (KERNEL, 2) if number else design.stem
        padding = design.reduction_padding if number else design.stem_padding
        height, width = (length + 2 * halo for length in inside[1:])
        window = Window(size, size, height, width, stride, top=padding, left=padding)
        convolved = fuser.convolve(stream, numbers.kernel(f"{name}.0.weight", outline=outline), window)
        stream = fuser.scale(convolved, *norm_of(numbers, f"{name}.1"))
        for place in range(len(stage.channels)):
            if not halo or number or place:
                stream = fuser.joint(stream, f"stages.{number}.{place}.stream")
            stream = stream + _block(fuser, numbers, stream, inside, halo, f"stages.{number}.{place}")
    weights, bias = array_of(numbers, "head.weight"), array_of(numbers, "head.bias")
    return _head(fuser, weights, bias, stream, design.maps[-1], design.halos[-1])


def _head(fuser: Fuser, weights: Floats, bias: Floats, stream: Node, inside: Shape, halo: int) -> Node:
    weights = weights[:, :, None, None]
    if halo and LEAST_SUMMED <= min(inside[1:]) < min(fuser.image[1:]):
        # The mean of a convolution is one of window sums, fewer than the pixels: 9 instead of 16 on a 4x4 map.
        rows, columns = (((halo, halo + length),) for length in inside[1:])
        logits = fuser.convolve(fuser.average(stream, rows, columns, "head"), weights, Window(1, 1, 1, 1))
    else:
        kernel = np.broadcast_to(weights / (inside.height * inside.width), (*weights.shape[:2], *inside[1:]))
        logits = fuser.convolve(stream, kernel, Window(inside.height, inside.width, 1, 1, top=-halo, left=-halo))
    return fuser.scale(logits, np.ones(len(weights)), bias)


def _block(fuser: Fuser, numbers: Numbers, stream: Node, inside: Shape, halo: int, name: str) -> Node:
    """The block's addition to the stream, over all of the stream's map."""
    first, second = (
        numbers.kernel(f"{name}.{part}.0.weight", outline=fuser.is_outline) for part in ("to_relus", "to_stream")
    )
    # Output 0 of the first convolution reads the stream from position -1 on, which lies halo - 1 into its map.
    window = Window(KERNEL, KERNEL, inside.height, inside.width, top=1 - halo, left=1 - halo)
    z = fuser.scale(fuser.convolve(stream, first, window), *norm_of(numbers, f"{name}.to_relus.1"))
    rectified = walk_activation(fuser, numbers, f"{name}.to_relus.2", z, f"{name}.activation")
    window = Window(KERNEL, KERNEL, stream.shape.height, stream.shape.width, top=halo + 1, left=halo + 1)
    factor, shift = norm_of(numbers, f"{name}.to_stream.1")
    added = fuser.scale(fuser.convolve(rectified, second, window), factor, np.zeros(len(shift)))
    # Beyond the core the block adds nothing: not its batch norm's shift either.
    ring = max(0, halo - 1)
    constant = np.zeros((len(shift), *stream.shape[1:]))
    constant[:, ring : stream.shape.height - ring, ring : stream.shape.width - ring] = shift[:, None, None]
    return fuser.shift(added, constant)
