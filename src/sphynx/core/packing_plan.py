"""Chooses how a sum of convolutions is packed (packing.py): pitch, tiles, channels per ciphertext."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil

from sphynx.core.conv_shape import ConvShape
from sphynx.core.packing import ConvPlan, InputLayout
from sphynx.errors import InputError

# Rough costs on one Neoverse-N1 core and a 1 Gbit/s link. They only steer the choice of layouts, never a result.
_PRODUCT_SECONDS = 8e-6
_WEIGHT_SECONDS = 4e-6  # to read a prepared polynomial of the ring's degree
_UPLOAD_SECONDS = 300e-6
_REPLY_SECONDS = 550e-6
_SECONDS_PER_BYTE = 8e-9


def upload_seconds(ciphertexts: float, upload_bytes: int) -> float:
    """Roughly, of what the client sends; `upload_bytes` is one ciphertext's."""
    return ciphertexts * (_UPLOAD_SECONDS + upload_bytes * _SECONDS_PER_BYTE)


def answer_seconds(plan: ConvPlan, reply_bytes: int) -> float:
    """Roughly, of the products and replies for all images of a ciphertext.

    `reply_bytes` is one reply's without its used coefficients."""
    used = plan.outputs_per_reply * plan.tile_height * plan.tile_width
    used_bytes = plan.replies * used * reply_bytes / plan.n
    return (
        plan.products * (_PRODUCT_SECONDS + _WEIGHT_SECONDS * plan.weight_degree / (plan.n * plan.interleaved))
        + plan.replies * (_REPLY_SECONDS + reply_bytes * _SECONDS_PER_BYTE)
        + used_bytes * _SECONDS_PER_BYTE
    )


def channel_counts(slots: int) -> list[int]:
    """The C_w worth trying where a ciphertext holds `slots` channels: the largest for each number of outputs."""
    return sorted({slots // outputs for outputs in range(1, slots + 1)})


def plan_convolutions(
    n: int,
    shapes: tuple[ConvShape, ...],
    *,
    upload_bytes: int,
    reply_bytes: int,
    min_rows: int = 1,
    min_row_pitch: int = 1,
    channels_per_ciphertext: int | None = None,
    all_phases: bool = False,
    interleaved: int = 1,
) -> ConvPlan:
    """The cheapest plan by the rough costs above, with `interleaved` images in a ciphertext of degree n.

    The minima, C_w and all_phases let two plans that read one tensor agree on its layout and share an upload.
    """
    _check_same_output(shapes)
    out, n = shapes[0], n // interleaved
    geometry = _Geometry.whole(shapes, min_rows, min_row_pitch)
    if geometry.block > n:
        geometry = _best_tiles(n, shapes, min_rows, min_row_pitch)
    geometries = [geometry]
    if channels_per_ciphertext is None and not geometry.halo and all(map(_reads_one_place, shapes)):
        geometries += [wider for wider in geometry.in_subrings() if wider.block <= n]
    best: tuple[float, ConvPlan] | None = None
    for geometry in geometries:
        slots = n // geometry.block
        candidates = channel_counts(slots) if channels_per_ciphertext is None else [channels_per_ciphertext]
        for per_ciphertext in candidates:
            if not 1 <= per_ciphertext <= slots:
                raise InputError(
                    f"{per_ciphertext} channels of {geometry.block} coefficients do not fit a ciphertext of {n}",
                    where="channels_per_ciphertext",
                    remedy=f"Use at most {slots}.",
                )
            layouts = tuple(_layout(n, shape, geometry, per_ciphertext, all_phases, interleaved) for shape in shapes)
            outputs = min(slots // per_ciphertext, out.out_channels)
            plan = ConvPlan(shapes, layouts, outputs, geometry.tile_height, geometry.tile_width)
            seconds = answer_seconds(plan, reply_bytes) + upload_seconds(plan.uploads, upload_bytes)
            if best is None or seconds < best[0]:
                best = (seconds, plan)
    assert best is not None
    return best[1]


def _reads_one_place(shape: ConvShape) -> bool:
    """Tell whether each output reads one element of a channel, at its own place: a 1x1 map without padding."""
    return all(shift == 0 for shift, _ in (*shape.row_taps(), *shape.column_taps()))


def _check_same_output(shapes: tuple[ConvShape, ...]) -> None:
    outputs = {(shape.out_channels, shape.out_height, shape.out_width) for shape in shapes}
    if len(outputs) != 1:
        raise InputError(
            f"convolutions with outputs {sorted(outputs)} cannot share a reply",
            where="plan_convolutions",
            remedy="Sum only convolutions with one output shape.",
        )


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

    def in_subrings(self) -> list[_Geometry]:
        """With a pitch, and a number of rows, that are powers of two: so that weights lie in a subring."""
        pitch, rows = (1 << (size - 1).bit_length() for size in (self.row_pitch, self.rows))
        return [replace(self, row_pitch=pitch), replace(self, row_pitch=pitch, rows=rows)]

    @classmethod
    def whole(cls, shapes: tuple[ConvShape, ...], min_rows: int, min_row_pitch: int) -> _Geometry:
        rows, pitch = min_rows, min_row_pitch
        for shape in shapes:
            rows = max(rows, _pitch_with_gap(shape.row_taps(), shape.height, shape.out_height, shape.stride))
            pitch = max(pitch, _pitch_with_gap(shape.column_taps(), shape.width, shape.out_width, shape.stride))
        return cls(pitch, rows, shapes[0].out_height, shapes[0].out_width, ((0, 0),), halo=False)

    @classmethod
    def tiled(
        cls,
        shapes: tuple[ConvShape, ...],
        tile_height: int,
        tile_width: int,
        min_rows: int,
        min_row_pitch: int,
    ) -> _Geometry:
        rows = max(min_rows, *(tile_height + _span(shape.row_taps()) for shape in shapes))
        pitch = max(min_row_pitch, *(tile_width + _span(shape.column_taps()) for shape in shapes))
        starts = tuple(
            (y, x)
            for y in range(0, shapes[0].out_height, tile_height)
            for x in range(0, shapes[0].out_width, tile_width)
        )
        return cls(pitch, rows, tile_height, tile_width, starts, halo=True)


def _pitch_with_gap(taps: list[tuple[int, int]], size: int, out_size: int, stride: int) -> int:
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
            if best is None or len(geometry.tile_starts) / (n // geometry.block) < len(best.tile_starts) / (
                n // best.block
            ):
                best = geometry
            break  # narrower tiles of the same height only repeat more halo
    if best is None:
        least = _Geometry.tiled(shapes, 1, 1, min_rows, min_row_pitch)
        raise InputError(
            f"one output reads {least.rows} rows and {least.row_pitch} columns of a channel, and these "
            f"{least.block:,} elements do not fit a ciphertext of {n:,}",
            where=str(out),
            remedy="Use a smaller kernel, or pool the map before a dense layer reads it.",
        )
    return best


def _layout(
    n: int, shape: ConvShape, geometry: _Geometry, per_ciphertext: int, all_phases: bool, interleaved: int
) -> InputLayout:
    row_taps, column_taps = shape.row_taps(), shape.column_taps()
    top = min(shift for shift, _ in row_taps) if geometry.halo else 0
    left = min(shift for shift, _ in column_taps) if geometry.halo else 0
    return InputLayout(
        n,
        shape.in_channels,
        shape.height,
        shape.width,
        shape.stride,
        _phases(row_taps, shape.stride, shape.height, all_phases),
        _phases(column_taps, shape.stride, shape.width, all_phases),
        geometry.row_pitch,
        geometry.block,
        per_ciphertext,
        tuple((y + top, x + left) for y, x in geometry.tile_starts),
        geometry.rows if geometry.halo else ceil(shape.height / shape.stride),
        geometry.row_pitch if geometry.halo else ceil(shape.width / shape.stride),
        interleaved,
    )


def _phases(taps: list[tuple[int, int]], stride: int, size: int, all_phases: bool) -> tuple[int, ...]:
    """The phases that are read. In an axis shorter than the stride the last phases hold nothing and are never sent."""
    read = set(range(stride)) if all_phases else {phase for _, phase in taps}
    return tuple(sorted(phase for phase in read if phase < size)) or (0,)
