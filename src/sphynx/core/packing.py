"""Coefficient packing of convolutions for RLWE (Cheetah, eprint 2022/207): no rotations, only products.

A channel image is laid out row by row with pitch R (zero gaps do the padding), a channel takes B = R * rows coefficients, and C_w
channels share a ciphertext. The weight of tap (dy, dx) of slot c for output m sits at X^(m S - c B - dy R - dx), S = C_w B, so
that coefficient m S + y R + x of the product is output (m, y, x); M S <= n keeps outputs apart, and every other contribution
meets a zero gap. A stride s splits the image into s^2 phases, each a channel of its own. An image that does not fit
is cut into tiles that carry their own halo. Several inputs are summed into one reply by sharing R, B, C_w and M.

Everything here is computed from shapes alone, hence public.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import ceil

import numpy as np
from numpy.typing import NDArray

from sphynx.errors import InputError

Indices = NDArray[np.int64]

# Rough costs on one Neoverse-N1 core and a 1 Gbit/s link. They only steer the choice of C_w, never a result.
_PRODUCT_SECONDS = 12e-6
_UPLOAD_SECONDS = 300e-6
_REPLY_SECONDS = 550e-6
_SECONDS_PER_BYTE = 8e-9


@dataclass(frozen=True)
class ConvShape:
    """One convolution: cross-correlation as in torch, output position y reads input rows stride*y - pad_top + dilation*ky."""

    in_channels: int
    height: int
    width: int
    out_channels: int
    kernel_height: int
    kernel_width: int
    out_height: int
    out_width: int
    stride: int = 1
    dilation: int = 1
    pad_top: int = 0  # negative: the first rows are not read, as in a shifted factorized reduction
    pad_left: int = 0

    def __post_init__(self) -> None:
        positive = ("in_channels", "height", "width", "out_channels", "kernel_height", "kernel_width", "out_height",
                    "out_width", "stride", "dilation")  # fmt: skip
        faults = [name for name in positive if getattr(self, name) < 1]
        if faults:
            raise InputError(f"{', '.join(faults)} must be at least 1", where=str(self), remedy="correct the layer's shape")

    @classmethod
    def square(
        cls, in_channels: int, size: tuple[int, int], out_channels: int, kernel: int, *, stride: int = 1,
        dilation: int = 1, padding: int = 0,
    ) -> ConvShape:  # fmt: skip
        """The shape torch.nn.Conv2d(in_channels, out_channels, kernel, stride, padding, dilation) has on a (H, W) image."""
        span = dilation * (kernel - 1) + 1
        out = [(extent + 2 * padding - span) // stride + 1 for extent in size]
        return cls(in_channels, *size, out_channels, kernel, kernel, *out, stride, dilation, padding, padding)

    @classmethod
    def dense(cls, inputs: int, outputs: int) -> ConvShape:
        return cls(inputs, 1, 1, outputs, 1, 1, 1, 1)

    def row_taps(self) -> list[tuple[int, int]]:
        """(shift, phase) of each kernel row: it reads row y + shift of that phase image."""
        return [divmod(self.dilation * k - self.pad_top, self.stride) for k in range(self.kernel_height)]

    def column_taps(self) -> list[tuple[int, int]]:
        return [divmod(self.dilation * k - self.pad_left, self.stride) for k in range(self.kernel_width)]


@dataclass(frozen=True)
class InputLayout:
    """Where a tensor's elements sit in its ciphertexts. Equal layouts of one tensor can share one upload."""

    n: int
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

    @property
    def virtual_channels(self) -> int:
        return self.channels * len(self.row_phases) * len(self.column_phases)

    @property
    def ciphertexts_per_tile(self) -> int:
        return ceil(self.virtual_channels / self.channels_per_ciphertext)

    @property
    def ciphertexts(self) -> int:
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
        """(channels, height, width) ring elements to (ciphertexts, n) messages."""
        if tensor.shape != (self.channels, self.height, self.width):
            raise InputError(f"the tensor has shape {tensor.shape}", where=str(self), remedy="pass the tensor the plan was made for")
        messages = np.zeros((self.ciphertexts, self.n), np.uint64)
        to, source = self.scatter
        messages.reshape(-1)[to] = np.ascontiguousarray(tensor).reshape(-1)[source]
        return messages


@dataclass(frozen=True)
class ConvPlan:
    """How a sum of convolutions with one output tensor is computed under RLWE, and what it counts."""

    shapes: tuple[ConvShape, ...]
    layouts: tuple[InputLayout, ...]
    outputs_per_reply: int  # M
    tile_height: int
    tile_width: int

    @property
    def n(self) -> int:
        return self.layouts[0].n

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
        return self.inputs_per_tile * self.replies

    @cached_property
    def used_index(self) -> NDArray[np.uint32]:
        """Coefficients of a full reply that carry outputs, ordered (m, y, x)."""
        layout = self.layouts[0]
        m = np.arange(self.outputs_per_reply).reshape(-1, 1, 1) * layout.block * layout.channels_per_ciphertext
        y = np.arange(self.tile_height).reshape(-1, 1) * layout.row_pitch
        return np.ascontiguousarray((m + y + np.arange(self.tile_width)).reshape(-1).astype(np.uint32))

    @cached_property
    def used_counts(self) -> tuple[int, ...]:
        """Per reply of a tile, how many of used_index it carries: all but the last are full."""
        area, out = self.tile_height * self.tile_width, self.shapes[0].out_channels
        starts = range(0, out, self.outputs_per_reply)
        return tuple(min(self.outputs_per_reply, out - start) * area for start in starts)

    def weight_polynomials(self, reply: int, weights: tuple[NDArray[np.int32], ...]) -> NDArray[np.int32]:
        """The (inputs_per_tile, n) plaintext polynomials of one reply. weights: per input (out, in, kernel_h, kernel_w)."""
        first = reply * self.outputs_per_reply
        last = min(first + self.outputs_per_reply, self.shapes[0].out_channels)
        polynomials = np.zeros((self.inputs_per_tile, self.n), np.int32)
        base = 0
        for shape, layout, weight in zip(self.shapes, self.layouts, weights, strict=True):
            rows, columns = shape.row_taps(), shape.column_taps()
            # Tiles with a halo start at the first row that a tap reads; a whole image starts at row 0.
            top, left = layout.tile_origins[0]
            shift_y = np.array([shift - top for shift, _ in rows])
            shift_x = np.array([shift - left for shift, _ in columns])
            phase_y = np.array([layout.row_phases.index(phase) for _, phase in rows])
            phase_x = np.array([layout.column_phases.index(phase) for _, phase in columns])
            m = np.arange(last - first).reshape(-1, 1, 1, 1)
            channel = np.arange(shape.in_channels).reshape(1, -1, 1, 1)
            phases = phase_y.reshape(-1, 1) * len(layout.column_phases) + phase_x
            v = channel * (len(layout.row_phases) * len(layout.column_phases)) + phases
            slot = v % layout.channels_per_ciphertext
            exponent = (m * layout.channels_per_ciphertext - slot) * layout.block
            exponent = exponent - shift_y.reshape(-1, 1) * layout.row_pitch - shift_x
            ciphertext = np.broadcast_to(base + v // layout.channels_per_ciphertext, exponent.shape)
            # X^-e = -X^(n-e).
            value = np.where(exponent < 0, -weight[first:last], weight[first:last])
            np.add.at(polynomials, (ciphertext, exponent % self.n), value)
            base += layout.ciphertexts_per_tile
        return polynomials

    def unpack(self, values: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """What decryption or masking gives, tile by tile, to the (out_channels, out_height, out_width) tensor."""
        shape = self.shapes[0]
        tiled = values.reshape(self.tiles, shape.out_channels, self.tile_height, self.tile_width)
        across = ceil(shape.out_width / self.tile_width)
        grid = tiled.reshape(-1, across, shape.out_channels, self.tile_height, self.tile_width).transpose(2, 0, 3, 1, 4)
        whole = grid.reshape(shape.out_channels, -1, across * self.tile_width)
        return np.ascontiguousarray(whole[:, : shape.out_height, : shape.out_width])


def plan_convolutions(
    n: int, shapes: tuple[ConvShape, ...], *, upload_bytes: int, reply_bytes: int, min_rows: int = 1, min_row_pitch: int = 1,
    channels_per_ciphertext: int | None = None, all_phases: bool = False,
) -> ConvPlan:  # fmt: skip
    """The cheapest plan by the rough costs above. The minima, C_w and all_phases let two plans agree on one input layout."""
    _check_same_output(shapes)
    out = shapes[0]
    geometry = _Geometry.whole(shapes, min_rows, min_row_pitch)
    if geometry.block > n:
        geometry = _best_tiles(n, shapes, min_rows, min_row_pitch)
    slots = n // geometry.block
    best: tuple[float, ConvPlan] | None = None
    candidates = range(1, slots + 1) if channels_per_ciphertext is None else [channels_per_ciphertext]
    for per_ciphertext in candidates:
        if not 1 <= per_ciphertext <= slots:
            raise InputError(
                f"{per_ciphertext} channels of {geometry.block} coefficients do not fit a ciphertext of {n}",
                where="channels_per_ciphertext", remedy=f"use at most {slots}",
            )  # fmt: skip
        layouts = tuple(_layout(n, shape, geometry, per_ciphertext, all_phases) for shape in shapes)
        outputs = min(slots // per_ciphertext, out.out_channels)
        plan = ConvPlan(shapes, layouts, outputs, geometry.tile_height, geometry.tile_width)
        used_bytes = plan.replies * len(plan.used_index) * reply_bytes / n
        seconds = (
            plan.products * _PRODUCT_SECONDS
            + plan.uploads * (_UPLOAD_SECONDS + upload_bytes * _SECONDS_PER_BYTE)
            + plan.replies * (_REPLY_SECONDS + reply_bytes * _SECONDS_PER_BYTE)
            + used_bytes * _SECONDS_PER_BYTE
        )
        if best is None or seconds < best[0]:
            best = (seconds, plan)
    assert best is not None
    return best[1]


def _check_same_output(shapes: tuple[ConvShape, ...]) -> None:
    outputs = {(shape.out_channels, shape.out_height, shape.out_width) for shape in shapes}
    if len(outputs) != 1:
        raise InputError(
            f"convolutions with outputs {sorted(outputs)} cannot share a reply", where="plan_convolutions",
            remedy="sum only convolutions with one output shape",
        )  # fmt: skip


@dataclass(frozen=True)
class _Geometry:
    """R, rows, and the tiling of the output; `halo` says that tiles start at the first row a tap reads."""

    row_pitch: int
    rows: int
    tile_height: int
    tile_width: int
    tile_starts: tuple[tuple[int, int], ...]
    halo: bool

    @property
    def block(self) -> int:
        return self.row_pitch * self.rows

    @classmethod
    def whole(cls, shapes: tuple[ConvShape, ...], min_rows: int, min_row_pitch: int) -> _Geometry:
        rows, pitch = min_rows, min_row_pitch
        for shape in shapes:
            rows = max(rows, _gapped(shape.row_taps(), shape.height, shape.out_height, shape.stride))
            pitch = max(pitch, _gapped(shape.column_taps(), shape.width, shape.out_width, shape.stride))
        return cls(pitch, rows, shapes[0].out_height, shapes[0].out_width, ((0, 0),), halo=False)

    @classmethod
    def tiled(
        cls, shapes: tuple[ConvShape, ...], tile_height: int, tile_width: int, min_rows: int, min_row_pitch: int
    ) -> _Geometry:
        rows = max(min_rows, *(tile_height + _span(shape.row_taps()) for shape in shapes))
        pitch = max(min_row_pitch, *(tile_width + _span(shape.column_taps()) for shape in shapes))
        starts = tuple(
            (y, x) for y in range(0, shapes[0].out_height, tile_height) for x in range(0, shapes[0].out_width, tile_width)
        )
        return cls(pitch, rows, tile_height, tile_width, starts, halo=True)


def _gapped(taps: list[tuple[int, int]], size: int, out_size: int, stride: int) -> int:
    """Pitch at which reads beyond either end of an axis fall into zeros, before the next row's data begin."""
    shifts = [shift for shift, _ in taps]
    return max(ceil(size / stride) + max(0, -min(shifts)), out_size + max(0, *shifts, 0))


def _span(taps: list[tuple[int, int]]) -> int:
    shifts = [shift for shift, _ in taps]
    return max(shifts) - min(shifts)


def _best_tiles(n: int, shapes: tuple[ConvShape, ...], min_rows: int, min_row_pitch: int) -> _Geometry:
    """The tiling with the fewest coefficients over all tiles, among those whose channel fits a ciphertext."""
    out = shapes[0]
    best: _Geometry | None = None
    for down in range(1, out.out_height + 1):
        for across in range(1, out.out_width + 1):
            tile_height, tile_width = ceil(out.out_height / down), ceil(out.out_width / across)
            geometry = _Geometry.tiled(shapes, tile_height, tile_width, min_rows, min_row_pitch)
            if geometry.block > n:
                continue
            # Whole ciphertexts count: a tile of 0.6 n costs as much as one of n.
            if best is None or len(geometry.tile_starts) / (n // geometry.block) < len(best.tile_starts) / (n // best.block):
                best = geometry
            break  # narrower tiles of the same height only repeat more halo
    if best is None:
        raise InputError(
            "one output row and its kernel do not fit a ciphertext", where=str(out), remedy="use a smaller kernel or image"
        )
    return best


def _layout(n: int, shape: ConvShape, geometry: _Geometry, per_ciphertext: int, all_phases: bool) -> InputLayout:
    row_taps, column_taps = shape.row_taps(), shape.column_taps()
    every = tuple(range(shape.stride))
    top = min(shift for shift, _ in row_taps) if geometry.halo else 0
    left = min(shift for shift, _ in column_taps) if geometry.halo else 0
    return InputLayout(
        n, shape.in_channels, shape.height, shape.width, shape.stride,
        every if all_phases else tuple(sorted({phase for _, phase in row_taps})),
        every if all_phases else tuple(sorted({phase for _, phase in column_taps})),
        geometry.row_pitch, geometry.block, per_ciphertext,
        tuple((y + top, x + left) for y, x in geometry.tile_starts),
        geometry.rows if geometry.halo else ceil(shape.height / shape.stride),
        geometry.row_pitch if geometry.halo else ceil(shape.width / shape.stride),
    )  # fmt: skip
