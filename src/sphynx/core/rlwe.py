"""Linear layers under RLWE, typed: the client uploads masks, the server answers with shares of W r.

Both sides hold the same public ConvPlan. Client: LinearClient.encrypt(plan.layouts[i], r_i), later
.decrypt(plan, reply). Server: PreparedConv once per layer, LinearServer.parse per upload, .reply per layer.
The two shares sum to the convolution modulo 2^k; docs/rlwe.md has the noise and simulation arguments.
Several images go through one call, with a leading axis: to the core they are further tiles of one image, or where the
plan interleaves images further coefficients of the same ciphertexts.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sphynx.core import Prg, _native
from sphynx.core.conv_shape import ConvShape
from sphynx.core.packing import ConvPlan, InputLayout
from sphynx.core.packing_plan import plan_convolutions
from sphynx.errors import InputError

Params = _native.rlwe.Params
Ciphertexts = _native.rlwe.Ciphertexts
Words = NDArray[np.uint64]
path = _native.rlwe.path  # of the kernels, by name
_WEIGHTS = (np.int8, np.int16, np.int32)  # types that weights may have
PASSING_POLYNOMIALS = 256  # transformed at a time where weights are not held: 16 MB


@dataclass(frozen=True)
class NoiseBound:
    """The noise of a reply. `worst` always holds; shares are off by one with probability 2^log2_off_by_one each."""

    worst: float
    rms: float
    log2_off_by_one: float


@dataclass(frozen=True)
class WeightNorms:
    """The sums of |w| and w^2 of each output channel, over all convolutions that are summed into it."""

    l1: NDArray[np.float64]
    l2_squared: NDArray[np.float64]

    @classmethod
    def of(cls, weights: Sequence[NDArray[Any]]) -> WeightNorms:
        flat = [weight.reshape(len(weight), -1).astype(np.float64) for weight in weights]
        l1 = np.sum([np.abs(each).sum(axis=1) for each in flat], axis=0)
        return cls(l1, np.sum([np.einsum("oi,oi->o", each, each) for each in flat], axis=0))


def noise_bounds(params: Params, conv_plan: ConvPlan, norms: WeightNorms) -> list[NoiseBound]:
    """Bound the noise of each reply, alike for all tiles. Each weight of a reply adds noise to all its coefficients."""
    starts = np.arange(0, conv_plan.shapes[0].out_channels, conv_plan.outputs_per_reply)
    l1, l2_squared = (np.add.reduceat(norm, starts).tolist() for norm in (norms.l1, norms.l2_squared))
    return [NoiseBound(*params.noise(*sums)) for sums in zip(l1, l2_squared, strict=True)]


def plan(
    params: Params,
    *shapes: ConvShape,
    min_rows: int = 1,
    min_row_pitch: int = 1,
    channels_per_ciphertext: int | None = None,
    all_phases: bool = False,
    interleaved: int = 1,
) -> ConvPlan:
    """packing.plan_convolutions with this parameter set's degree and wire sizes."""
    return plan_convolutions(
        params.n,
        shapes,
        upload_bytes=params.upload_bytes,
        reply_bytes=params.reply_bytes(0),
        min_rows=min_rows,
        min_row_pitch=min_row_pitch,
        channels_per_ciphertext=channels_per_ciphertext,
        all_phases=all_phases,
        interleaved=interleaved,
    )


def upload_bytes(params: Params, layout: InputLayout) -> int:
    """Count the bytes of one upload, of as many images as the layout interleaves."""
    return layout.ciphertexts * params.upload_bytes


def reply_bytes(params: Params, conv_plan: ConvPlan) -> int:
    """Count the bytes of one reply, to as many images as the plan interleaves."""
    return conv_plan.tiles * sum(params.reply_bytes(count) for count in conv_plan.used_counts)


class LinearClient:
    def __init__(self, params: Params, prg: Prg, threads: int = 0) -> None:
        self.params = params
        self._prg = prg
        self._threads = threads
        self._key = _native.rlwe.SecretKey(params, prg)

    def drawing_from(self, prg: Prg) -> LinearClient:
        """The same keys, with another generator from here on."""
        other = copy(self)
        other._prg = prg
        return other

    def public_key(self) -> bytes:
        return self._key.public_key(self._prg)

    def encrypt(self, layout: InputLayout, tensor: Words) -> bytes:
        """tensor: ([images,] channels, height, width) elements of the ring."""
        return self._key.encrypt(layout.pack(tensor), self._prg, self._threads)

    def decrypt(self, conv_plan: ConvPlan, reply: bytes, images: int | None = None) -> Words:
        """The client's share, ([images,] out_channels, out_height, out_width)."""
        tiles = _tiles(conv_plan, images)
        out = np.empty(tiles * sum(conv_plan.used_counts), np.uint64)
        self._key.decrypt(reply, conv_plan.used_index, list(conv_plan.used_counts), tiles, out, self._threads)
        return conv_plan.unpack(out, images)


class PreparedConv:
    """A plan's weights, packed and transformed: once, or, where they are not held, a part of them at a time whenever
    they are needed. `bytes` is what is held in memory."""

    def __init__(
        self,
        params: Params,
        conv_plan: ConvPlan,
        weights: Sequence[NDArray[Any]],
        threads: int = 0,
        *,
        values: NDArray[np.int32] | None = None,
        held: bool = True,
        movable: bool = False,
    ) -> None:
        """`values` begins with what `copy_values` of an equal one wrote: it is used where it is, and kept alive. What
        is `movable` can be dropped, and held, later: for that the caller's `weights`, of up to 32 bits, are kept, not
        copies."""
        for shape, weight in zip(conv_plan.shapes, weights, strict=True):
            expected = (shape.out_channels, shape.in_channels, shape.kernel_height, shape.kernel_width)
            if weight.shape != expected or weight.dtype not in _WEIGHTS:
                raise InputError(
                    f"weights are {weight.dtype} {weight.shape}, the plan has up to int32 {expected}",
                    where=str(shape),
                    remedy="Pass the quantised weights of the layer that the plan was made for.",
                )
        self.plan, self.is_movable = conv_plan, movable
        self._params, self._threads = params, threads
        self._weights = tuple(weights) if movable or not held else ()
        self._held: tuple[Part, ...] | None = None  # replaced as a whole: other threads may be reading it
        if held and values is not None:
            self._held = _views(params, conv_plan, values)
        elif held:
            self._held = tuple(self._transformed(None, tuple(weights)))

    @property
    def is_held(self) -> bool:
        return self._held is not None

    def hold(self) -> None:
        """Transform all that is not held, and hold it."""
        if self._held is None and self.is_movable:
            self._held = tuple(self._transformed(None, self._weights))

    def drop(self) -> None:
        if self.is_movable:
            self._held = None

    def parts(self) -> Iterator[Part]:
        """All replies of a tile; where they are not held, transformed now, some at a time."""
        held = self._held
        if held is not None:
            return iter(held)
        return self._transformed(PASSING_POLYNOMIALS * self._params.n // self.plan.weight_degree, self._weights)

    def _transformed(self, most: int | None, weights: tuple[NDArray[Any], ...]) -> Iterator[Part]:
        for block in _blocks(self.plan, most):
            yield Part(block, self._transform(block, weights))

    def _transform(self, block: _Block, weights: tuple[NDArray[Any], ...]) -> _native.rlwe.Weights:
        native = _native.rlwe.Weights(self._params, len(block.replies), len(block.inputs), self.plan.weight_degree)
        for number, reply in enumerate(block.replies):
            polynomials = self.plan.weight_polynomials(reply, weights)
            if polynomials.any() and np.delete(polynomials, block.inputs, axis=0).any():
                raise InputError(
                    "weights between channels of two groups are not zero",
                    where=str(self.plan.shapes[0]),
                    remedy="Pass the quantised weights of the layer that the plan was made for.",
                )
            native.set_reply(number, np.ascontiguousarray(polynomials[list(block.inputs)]), self._threads)
        return native

    @property
    def bytes(self) -> int:
        return sum(part.weights.bytes for part in self._held or ())

    def copy_values(self, memory: bytearray | mmap.mmap, at: int) -> int:
        """Into `memory` from byte `at` on; returns where they end."""
        for part in self._held or ():
            count = part.weights.bytes // 4
            part.weights.copy_to(np.frombuffer(memory, np.int32, count, at))
            at += 4 * count
        return at


def prepared_bytes(params: Params, conv_plan: ConvPlan) -> int:
    """Count the bytes of a plan's prepared weights, where they are held."""
    return 4 * conv_plan.weight_degree * len(params.primes) * conv_plan.products // conv_plan.tiles


def _tiles(conv_plan: ConvPlan, images: int | None) -> int:
    """Count the tiles that the core sees: images that share ciphertexts are one to it."""
    return conv_plan.tiles * (images or 1) // conv_plan.interleaved


@dataclass(frozen=True)
class _Block:
    """Replies of a tile that read the same inputs."""

    replies: tuple[int, ...]
    inputs: tuple[int, ...]


class Part(NamedTuple):
    """A block, and its weights."""

    block: _Block
    weights: _native.rlwe.Weights


def _blocks(conv_plan: ConvPlan, most: int | None) -> list[_Block]:
    """One where all channels are in one group; with at most `most` products each, and at least one reply."""
    replies: dict[tuple[int, ...], list[int]] = {}
    for reply in range(conv_plan.replies_per_tile):
        replies.setdefault(conv_plan.needed(reply), []).append(reply)
    blocks = []
    for inputs, own in replies.items():
        each = len(own) if most is None else max(1, most // len(inputs))
        blocks += [_Block(tuple(own[first : first + each]), inputs) for first in range(0, len(own), each)]
    return blocks


def _views(params: Params, conv_plan: ConvPlan, values: NDArray[np.int32]) -> tuple[Part, ...]:
    parts, at = [], 0
    for block in _blocks(conv_plan, None):
        shape = len(block.replies), len(block.inputs), conv_plan.weight_degree
        count = len(params.primes) * prod(shape)
        parts.append(Part(block, _native.rlwe.Weights(params, *shape, values[at : at + count])))
        at += count
    return tuple(parts)


class LinearServer:
    def __init__(self, params: Params, public_key: bytes, prg: Prg, threads: int = 0) -> None:
        self.params = params
        self._prg = prg
        self._threads = threads
        self._key = _native.rlwe.PublicKey(params, public_key)

    def drawing_from(self, prg: Prg) -> LinearServer:
        """The same keys, with another generator from here on."""
        other = copy(self)
        other._prg = prg
        return other

    def parse(self, layout: InputLayout, upload: bytes, images: int | None = None) -> Ciphertexts:
        count = layout.ciphertexts * (images or 1) // layout.interleaved
        return Ciphertexts(self.params, upload, count, self._threads)

    def parse_apart(self, layout: InputLayout, upload: bytes, images: int | None = None) -> list[Ciphertexts]:
        """One object for each ciphertext of a tile: a grouped convolution multiplies some of them only."""
        each, size = layout.ciphertexts_per_tile, self.params.upload_bytes
        count = len(layout.tile_origins) * (images or 1) // layout.interleaved
        tiles = np.frombuffer(upload, np.uint8).reshape(count, each, size)
        return [
            Ciphertexts(self.params, tiles[:, number].tobytes(), len(tiles), self._threads) for number in range(each)
        ]

    def reply(
        self, conv: PreparedConv, inputs: Sequence[Ciphertexts], images: int | None = None
    ) -> tuple[bytes, Words]:
        """Make the reply to the client, and the server's own share ([images,] out_channels, out_height, out_width).

        `inputs` are what `parse` gave, input after input, or where the convolution is grouped `parse_apart`.
        """
        tiles = _tiles(conv.plan, images)
        wires: dict[int, NDArray[np.uint8]] = {}
        shares: dict[int, Words] = {}
        for block, weights in conv.parts():
            own_inputs = [inputs[at] for at in block.inputs] if conv.plan.is_grouped else inputs
            counts = [conv.plan.used_counts[reply] for reply in block.replies]
            wire, share = self._answer(weights, own_inputs, tiles, conv.plan.used_index, counts)
            del weights  # before the next are transformed: the memory of one block is enough
            if len(counts) == conv.plan.replies_per_tile:
                return wire, conv.plan.unpack(share, images)
            cuts = np.cumsum([self.params.reply_bytes(count) for count in counts])[:-1]
            parts = np.split(np.frombuffer(wire, np.uint8).reshape(tiles, -1), cuts, axis=1)
            wires.update(zip(block.replies, parts, strict=True))
            own = np.split(share.reshape(tiles, -1), np.cumsum(counts)[:-1], axis=1)
            shares.update(zip(block.replies, own, strict=True))
        order = range(conv.plan.replies_per_tile)
        whole = np.concatenate([shares[reply] for reply in order], axis=1).reshape(-1)
        return np.concatenate([wires[reply] for reply in order], axis=1).tobytes(), conv.plan.unpack(whole, images)

    def _answer(
        self,
        weights: _native.rlwe.Weights,
        inputs: Sequence[Ciphertexts],
        tiles: int,
        used: NDArray[np.uint32],
        counts: list[int],
    ) -> tuple[bytes, Words]:
        """Answer with one block's weights, tile after tile."""
        share = np.empty(tiles * sum(counts), np.uint64)
        wire = _native.rlwe.reply(
            self._key, weights, list(inputs), tiles, used, counts, self._prg, share, self._threads
        )
        return wire, share
