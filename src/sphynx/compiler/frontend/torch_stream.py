"""Walks a stream network into a fused graph: each ReLU layer reads all earlier ones, and the logits read every layer.

With halo borders nothing that a block adds to the stream is cut off, so that composing convolutions is exact without
terms for borders: every ReLU layer is one convolution of each earlier one. In a large network those are many: before
each block but the first the stream is a joint, which the later blocks can read instead of all earlier ones (halo
included, so that this is exact too). With zero borders every convolution of the stream is a joint, which may be cut
where its border terms would cost more. The head's mean is part of its linear map: of public window sums where that has
fewer weights, else a kernel as large as the map.
"""

from __future__ import annotations

import numpy as np
from torch import nn

from sphynx.compiler.frontend.torch_activation import walk_activation
from sphynx.compiler.frontend.torch_layers import array_of, fixed_norm, kernel_of
from sphynx.compiler.fusion.affine import Node, Window
from sphynx.compiler.fusion.fuse import Fuser
from sphynx.network.stream import StreamBlock, StreamNetwork
from sphynx.space.stream import KERNEL
from sphynx.space.tally import Shape

LEAST_SUMMED = 4  # pixels: on smaller maps there are more windows than pixels


def walk_stream(fuser: Fuser, network: StreamNetwork) -> Node:
    """The node of the logits."""
    design = network.design
    stream = fuser.input
    for number, (stage, inside, halo) in enumerate(zip(network.stages, design.maps, design.halos, strict=True)):
        if number:
            stream = stream if halo else fuser.joint(stream, f"stages.{number - 1}.reduced")
        convolution, norm = (network.reductions[number - 1] if number else network.stem).children()
        assert isinstance(convolution, nn.Conv2d)
        size, padding = convolution.kernel_size[0], int(convolution.padding[0])
        height, width = (length + 2 * halo for length in inside[1:])
        window = Window(size, size, height, width, convolution.stride[0], top=padding, left=padding)
        stream = fuser.scale(fuser.convolve(stream, kernel_of(fuser, convolution.weight), window), *fixed_norm(norm))
        for place, block in enumerate(stage.children()):
            assert isinstance(block, StreamBlock)
            if not halo or number or place:
                stream = fuser.joint(stream, f"stages.{number}.{place}.stream")
            stream = stream + _block(fuser, block, stream, inside, halo, f"stages.{number}.{place}")
    return _head(fuser, network.head, stream, design.maps[-1], design.halos[-1])


def _head(fuser: Fuser, head: nn.Linear, stream: Node, inside: Shape, halo: int) -> Node:
    weights = array_of(head.weight)[:, :, None, None]
    if halo and LEAST_SUMMED <= min(inside[1:]) < min(fuser.image[1:]):
        # The mean of a convolution is one of window sums, fewer than the pixels: 9 instead of 16 on a 4x4 map.
        rows, columns = (((halo, halo + length),) for length in inside[1:])
        logits = fuser.convolve(fuser.average(stream, rows, columns, "head"), weights, Window(1, 1, 1, 1))
    else:
        kernel = np.broadcast_to(weights / (inside.height * inside.width), (*weights.shape[:2], *inside[1:]))
        logits = fuser.convolve(stream, kernel, Window(inside.height, inside.width, 1, 1, top=-halo, left=-halo))
    return fuser.scale(logits, np.ones(len(weights)), array_of(head.bias))


def _block(fuser: Fuser, block: StreamBlock, stream: Node, inside: Shape, halo: int, name: str) -> Node:
    """The block's addition to the stream, over all of the stream's map."""
    (first, first_norm, activation), (second, second_norm) = block.to_relus, block.to_stream
    assert isinstance(first, nn.Conv2d) and isinstance(second, nn.Conv2d)
    # Output 0 of the first convolution reads the stream from position -1 on, which lies halo - 1 into its map.
    window = Window(KERNEL, KERNEL, inside.height, inside.width, top=1 - halo, left=1 - halo)
    z = fuser.scale(fuser.convolve(stream, kernel_of(fuser, first.weight), window), *fixed_norm(first_norm))
    rectified = walk_activation(fuser, activation, z, f"{name}.activation")
    window = Window(KERNEL, KERNEL, stream.shape.height, stream.shape.width, top=halo + 1, left=halo + 1)
    factor, shift = fixed_norm(second_norm)
    added = fuser.scale(
        fuser.convolve(rectified, kernel_of(fuser, second.weight), window), factor, np.zeros(len(shift))
    )
    # Beyond the core the block adds nothing: not its batch norm's shift either.
    ring = max(0, halo - 1)
    constant = np.zeros((len(shift), *stream.shape[1:]))
    constant[:, ring : stream.shape.height - ring, ring : stream.shape.width - ring] = shift[:, None, None]
    return fuser.shift(added, constant)
