"""Coefficient packing of convolutions for RLWE (Cheetah, eprint 2022/207): no rotations, only products.

A channel image is laid out row by row with pitch R (zero gaps do the padding), a channel takes
B = R * rows coefficients, and C_w channels share a ciphertext. The weight of tap (dy, dx) of slot c for
output m sits at X^(m S - c B - dy R - dx), S = C_w B, so that coefficient m S + y R + x of the product is
output (m, y, x). M S <= n keeps outputs apart, and every other contribution meets a zero gap. A stride s
splits the image into s^2 phases, each a channel of its own. An image that does not fit is cut into tiles that
carry their own halo. Several inputs are summed into one reply by sharing R, B, C_w and M.

Images that go through the same map can share ciphertexts: coefficient j of image i of b sits at X^(b j + i), and the
weights, in powers of Y = X^b, multiply all of them at once. Each image then has n / b coefficients, and all the above
holds in Z[Y]/(Y^(n/b) + 1). Weights whose exponents are all multiples of some power of two, as those of a 1x1 map are
multiples of B's, lie in a smaller ring still; this is what `weight_degree` counts.

Everything here is computed from shapes alone, hence public; packing_plan.py chooses R, B, C_w and M.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import ceil, gcd
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sphynx.core.conv_shape import ConvShape
from sphynx.errors import InputError

Indices = NDArray[np.int64]


@dataclass(frozen=True)
class InputLayout:
    """The layout of a tensor's elements in its ciphertexts. Equal layouts of one tensor can share one upload."""

    n: int  # coefficients of one image in a ciphertext: the ring's degree / interleaved
    channels: int
    height: int
    width: int
    stride: int
    row_phases: tuple[int, ...]
    column_phases: tuple[int, ...]
    row_pitch: int  # R
    block: int  # B, coefficients of one channel
    channels_per_ciphertext: int  # C_w
    # Per tile: the first row and column of the phase image that the tile holds, and how many of each.
    tile_origins: tuple[tuple[int, int], ...]
    tile_rows: int
    tile_columns: int
    interleaved: int = 1  # images that share their ciphertexts

    @property
    def virtual_channels(self) -> int:
        return self.channels * len(self.row_phases) * len(self.column_phases)

    @property
    def ciphertexts_per_tile(self) -> int:
        return ceil(self.virtual_channels / self.channels_per_ciphertext)

    @property
    def ciphertexts(self) -> int:
        """Count those of `interleaved` images together."""
        return self.ciphertexts_per_tile * len(self.tile_origins)

    @cached_property
    def scatter(self) -> tuple[Indices, Indices]:
        """(position in the messages, position in the tensor) of every element that is sent."""
        v = np.arange(self.virtual_channels).reshape(self.channels, len(self.row_phases), len(self.column_phases), 1, 1)
        channel = np.arange(self.channels).reshape(-1, 1, 1, 1, 1)
        row_phase = np.array(self.row_phases).reshape(1, -1, 1, 1, 1)
        column_phase = np.array(self.column_phases).reshape(1, 1, -1, 1, 1)
        y = np.arange(self.tile_rows).reshape(1, 1, 1, -1, 1)
        x = np.arange(self.tile_columns).reshape(1, 1, 1, 1, -1)
        to, source = [], []
        for tile, (top, left) in enumerate(self.tile_origins):
            row = self.stride * (y + top) + row_phase
            column = self.stride * (x + left) + column_phase
            inside = (row >= 0) & (row < self.height) & (column >= 0) & (column < self.width)
            ciphertext = tile * self.ciphertexts_per_tile + v // self.channels_per_ciphertext
            at = ciphertext * self.n + (v % self.channels_per_ciphertext) * self.block + y * self.row_pitch + x
            flat = (channel * self.height + row) * self.width + column
            inside, at, flat = np.broadcast_arrays(inside, at, flat)
            to.append(at[inside])
            source.append(flat[inside])
        return np.concatenate(to), np.concatenate(source)

    def pack(self, tensor: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """([images,] channels, height, width) ring elements to the messages of their ciphertexts.

        Images that share ciphertexts follow each other."""
        if tensor.ndim not in (3, 4) or tensor.shape[-3:] != (self.channels, self.height, self.width):
            raise InputError(
                f"the tensor has shape {tensor.shape}",
                where=str(self),
                remedy="Pass the tensor that the plan was made for.",
            )
        flat = np.ascontiguousarray(tensor).reshape(-1, self.channels * self.height * self.width)
        if len(flat) % self.interleaved:
            raise InputError(
                f"{len(flat)} images cannot share ciphertexts of {self.interleaved}",
                where=str(self),
                remedy=f"Pass a multiple of {self.interleaved} images.",
            )
        messages = np.zeros((len(flat) // self.interleaved, self.ciphertexts * self.n, self.interleaved), np.uint64)
        to, source = self.scatter
        for number, image in enumerate(flat):
            messages[number // self.interleaved, to, number % self.interleaved] = image[source]
        return messages.reshape(-1, self.n * self.interleaved)


@dataclass(frozen=True)
class ConvPlan:
    """How a sum of convolutions with one output tensor is computed under RLWE, and what it counts: uploads, replies and
    products of `interleaved` images together."""

    shapes: tuple[ConvShape, ...]
    layouts: tuple[InputLayout, ...]
    outputs_per_reply: int  # M
    tile_height: int
    tile_width: int

    @property
    def n(self) -> int:
        return self.layouts[0].n

    @property
    def interleaved(self) -> int:
        return self.layouts[0].interleaved

    @property
    def tiles(self) -> int:
        return len(self.layouts[0].tile_origins)

    @property
    def inputs_per_tile(self) -> int:
        return sum(layout.ciphertexts_per_tile for layout in self.layouts)

    @property
    def uploads(self) -> int:
        """Ciphertexts that the client sends, when nothing is shared with another plan."""
        return self.inputs_per_tile * self.tiles

    @property
    def replies_per_tile(self) -> int:
        return ceil(self.shapes[0].out_channels / self.outputs_per_reply)

    @property
    def replies(self) -> int:
        return self.replies_per_tile * self.tiles

    @property
    def products(self) -> int:
        if not self.is_grouped:
            return self.inputs_per_tile * self.replies
        return self.tiles * sum(len(self.needed(reply)) for reply in range(self.replies_per_tile))

    @property
    def is_grouped(self) -> bool:
        return any(shape.groups > 1 for shape in self.shapes)

    def needed(self, reply: int) -> tuple[int, ...]:
        """The inputs of a tile that share a group with an output of this reply: products with others are zero."""
        first = reply * self.outputs_per_reply
        last = min(first + self.outputs_per_reply, self.shapes[0].out_channels)
        found: list[int] = []
        base = 0
        for shape, layout in zip(self.shapes, self.layouts, strict=True):
            outputs, inputs = shape.out_channels // shape.groups, shape.in_channels // shape.groups
            phases = len(layout.row_phases) * len(layout.column_phases)
            begin, end = first // outputs * inputs * phases, ((last - 1) // outputs + 1) * inputs * phases
            per_ciphertext = layout.channels_per_ciphertext
            found += range(base + begin // per_ciphertext, base + (end - 1) // per_ciphertext + 1)
            base += layout.ciphertexts_per_tile
        return tuple(found)

    @cached_property
    def used_index(self) -> NDArray[np.uint32]:
        """Coefficients of a full reply that carry outputs, ordered (m, y, x, image)."""
        layout = self.layouts[0]
        m = np.arange(self.outputs_per_reply).reshape(-1, 1, 1) * layout.block * layout.channels_per_ciphertext
        y = np.arange(self.tile_height).reshape(-1, 1) * layout.row_pitch
        at = (m + y + np.arange(self.tile_width)).reshape(-1, 1) * self.interleaved + np.arange(self.interleaved)
        return np.ascontiguousarray(at.reshape(-1).astype(np.uint32))

    @cached_property
    def used_counts(self) -> tuple[int, ...]:
        """Per reply of a tile, how many of used_index it carries: all but the last are full."""
        area, out = self.tile_height * self.tile_width * self.interleaved, self.shapes[0].out_channels
        starts = range(0, out, self.outputs_per_reply)
        return tuple(min(self.outputs_per_reply, out - start) * area for start in starts)

    @cached_property
    def weight_degree(self) -> int:
        """Coefficients of a weight polynomial: n, or less where all its exponents are multiples of a power of two."""
        layout = self.layouts[0]
        step = self.n if layout.channels_per_ciphertext * self.outputs_per_reply == 1 else gcd(self.n, layout.block)
        for shape, own in zip(self.shapes, self.layouts, strict=True):
            rows, columns = _kept_taps(shape, own)
            top, left = own.tile_origins[0]
            step = gcd(step, *((shift - top) * own.row_pitch for _, (shift, _) in rows))
            step = gcd(step, *(shift - left for _, (shift, _) in columns))
        return self.n // step

    def weight_polynomials(self, reply: int, weights: tuple[NDArray[Any], ...]) -> NDArray[np.int32]:
        """The (inputs_per_tile, weight_degree) plaintexts of one reply, in powers of X^(degree / weight_degree).

        weights: per input (out, in, height, width)."""
        first = reply * self.outputs_per_reply
        last = min(first + self.outputs_per_reply, self.shapes[0].out_channels)
        polynomials = np.zeros((self.inputs_per_tile, self.weight_degree), np.int32)
        base = 0
        for shape, layout, weight in zip(self.shapes, self.layouts, weights, strict=True):
            rows, columns, weight = _read_taps(shape, layout, weight[first:last].astype(np.int32))  # -(-128) is no int8
            # Tiles with a halo start at the first row that a tap reads; a whole image starts at row 0.
            top, left = layout.tile_origins[0]
            shift_y = np.array([shift - top for shift, _ in rows], np.int64)
            shift_x = np.array([shift - left for shift, _ in columns], np.int64)
            phase_y = np.array([layout.row_phases.index(phase) for _, phase in rows], np.int64)
            phase_x = np.array([layout.column_phases.index(phase) for _, phase in columns], np.int64)
            m = np.arange(last - first).reshape(-1, 1, 1, 1)
            channel = np.arange(shape.in_channels).reshape(1, -1, 1, 1)
            phases = phase_y.reshape(-1, 1) * len(layout.column_phases) + phase_x
            v = channel * (len(layout.row_phases) * len(layout.column_phases)) + phases
            slot = v % layout.channels_per_ciphertext
            exponent = (m * layout.channels_per_ciphertext - slot) * layout.block
            exponent = exponent - shift_y.reshape(-1, 1) * layout.row_pitch - shift_x
            ciphertext = np.broadcast_to(base + v // layout.channels_per_ciphertext, exponent.shape)
            # X^-e = -X^(n-e).
            value = np.where(exponent < 0, -weight, weight)
            np.add.at(polynomials, (ciphertext, exponent % self.n // (self.n // self.weight_degree)), value)
            base += layout.ciphertexts_per_tile
        return polynomials

    def unpack(self, values: NDArray[np.uint64], images: int | None = None) -> NDArray[np.uint64]:
        """Values in the order of replies to the ([images,] out_channels, out_height, out_width) tensor."""
        out, height, width = self.shapes[0].out_channels, self.tile_height, self.tile_width
        across = ceil(self.shapes[0].out_width / width)
        count, shared = 1 if images is None else images, self.interleaved
        grid = values.reshape(count // shared, -1, across, out, height, width, shared)
        whole = grid.transpose(0, 6, 3, 1, 4, 2, 5).reshape(count, out, -1, across * width)
        tensor = np.ascontiguousarray(whole[:, :, : self.shapes[0].out_height, : self.shapes[0].out_width])
        return tensor[0] if images is None else tensor


def _read_taps(
    shape: ConvShape, layout: InputLayout, weight: NDArray[np.int32]
) -> tuple[list[tuple[int, int]], list[tuple[int, int]], NDArray[np.int32]]:
    """Row taps, column taps and weights, without the taps of phases that hold nothing."""
    rows, columns = _kept_taps(shape, layout)
    kept = weight[:, :, [number for number, _ in rows]][:, :, :, [number for number, _ in columns]]
    return [tap for _, tap in rows], [tap for _, tap in columns], kept


_Taps = list[tuple[int, tuple[int, int]]]  # number in the kernel, (shift, phase)


def _kept_taps(shape: ConvShape, layout: InputLayout) -> tuple[_Taps, _Taps]:
    """List the rows and columns of the kernel that read a phase which holds something."""
    rows = [(number, tap) for number, tap in enumerate(shape.row_taps()) if tap[1] in layout.row_phases]
    columns = [(number, tap) for number, tap in enumerate(shape.column_taps()) if tap[1] in layout.column_phases]
    return rows, columns
