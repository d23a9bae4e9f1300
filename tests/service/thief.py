"""A client that reads a network with its messages well-formed: the weights of `tiny_program` in 6 inferences.

It lies about two numbers of each ReLU. To its share of what enters it adds a constant, which opens or closes the ReLU.
And it says that its mask of what leaves is r' - e where it has uploaded r', so that the next layer computes on y + e,
for any e that it likes. Each image of a batch has its own.

    1 inference    all ReLUs closed, three weights of the last layer side by side in the digits of e: the last layer
    1 inference    one ReLU of each channel open, one pixel lit at a time: the kernel
    4 inferences   three ReLUs open in each image: their biases, the last bits by where the truncation carries
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from sphynx.program.backends import Backend
from sphynx.program.ir import Program
from sphynx.protocol import activations, inference_client
from sphynx.protocol.shares import Words
from sphynx.protocol.verify import parties
from sphynx.service.client import Client

Numbers = NDArray[np.int64]
NEURONS, CLASSES, SIDE, TRUNCATE = 32, 3, 4, 3
CENTRES = [5, 21]  # a neuron of each channel whose kernel lies inside the image
OPEN, CLOSED = 2**17, -(2**17)
DIGIT_BITS, DIGITS = 10, 3  # of a ring of 30 bits; a weight has 8
STEP = 1 << TRUNCATE


class Lie(NamedTuple):
    """The question about one image: constants for each neuron, and pixels."""

    added: Numbers
    injected: Numbers
    pixels: Numbers


def lie(opened: Mapping[int, int], injected: Numbers | None = None, lit: int | None = None) -> Lie:
    """Open some neurons, with so much more in each; close the others."""
    added, pixels = np.full(NEURONS, CLOSED), np.zeros(SIDE * SIDE, np.int64)
    for neuron, more in opened.items():
        added[neuron] = OPEN + more
    if lit is not None:
        pixels[lit] = STEP
    return Lie(added, np.zeros(NEURONS, np.int64) if injected is None else injected, pixels)


class Thief:
    def __init__(self, client: Client, backend: Backend, patched: pytest.MonkeyPatch) -> None:
        self._client, self._backend = client, backend
        self._lies: Sequence[Lie] = ()
        self.inferences = self.images = 0
        self._ring = np.uint64((1 << client.program.ring_bits) - 1)
        honest_numbers = parties.committed_numbers

        def commit(program: Program, shares: Mapping[str, Words], masks: Mapping[str, Words]) -> dict[str, list[Words]]:
            numbers = honest_numbers(program, shares, masks)
            numbers["relu"] = [*self._lie(*numbers["relu"])]
            return numbers

        def prepare(channel: Any, ots: Any, backend: Any, layers: Any, shares: Any, masks: Any) -> Any:
            share, mask = self._lie(shares["relu"], masks["relu"])
            return activations.prepare_client(
                channel, ots, backend, layers, {**shares, "relu": share}, {**masks, "relu": mask}
            )

        def run(channel: Any, backend: Any, layer: Any, material: Any, own: Any, mask: Any) -> Any:
            if backend == "gmw":  # with garbled circuits both numbers are in the material
                own, mask = self._lie(own, mask)
            return activations.run_client(channel, backend, layer, material, own, mask)

        patched.setattr(parties, "committed_numbers", commit)
        patched.setattr(inference_client, "prepare_client", prepare)
        patched.setattr(inference_client, "run_client", run)

    def steal(self) -> dict[str, Numbers]:
        last, last_bias = self._steal_last_layer()
        kernel = self._steal_kernel(last)
        return {
            "logits/0": last.reshape(CLASSES, 2, SIDE, SIDE),
            "logits/bias": last_bias.reshape(CLASSES, 1, 1),
            "first/0": kernel.reshape(2, 1, 3, 3),
            "first/bias": self._steal_biases(last, last_bias).reshape(2, SIDE, SIDE),
        }

    def _steal_last_layer(self) -> tuple[Numbers, Numbers]:
        threes = _threes()
        injected = [np.zeros(NEURONS, np.int64) for _ in threes]
        for e, neurons in zip(injected, threes, strict=True):
            e[neurons] = [1 << (DIGIT_BITS * digit) for digit in range(len(neurons))]
        bias, *answers = self._ask([lie({}), *(lie({}, e) for e in injected)])
        last = np.zeros((CLASSES, NEURONS), np.int64)
        for neurons, answer in zip(threes, answers, strict=True):
            left = answer - bias
            for neuron in neurons:
                last[:, neuron] = _signed(left, DIGIT_BITS)
                left = (left - last[:, neuron]) >> DIGIT_BITS
        return last, bias

    def _steal_kernel(self, last: Numbers) -> Numbers:
        lit = [SIDE * row + column for row in range(3) for column in range(3)]
        opened = dict.fromkeys(CENTRES, 0)
        dark, *answers = self._ask([lie(opened), *(lie(opened, lit=pixel) for pixel in lit)])
        return np.stack([_outputs(last, CENTRES, answer - dark) for answer in answers], axis=1)

    def _steal_biases(self, last: Numbers, last_bias: Numbers) -> Numbers:
        def outputs(more: Numbers) -> Numbers:
            answers = self._ask([lie({neuron: int(more[neuron]) for neuron in three}) for three in _threes()])
            found = [_outputs(last, three, a - last_bias) for three, a in zip(_threes(), answers, strict=True)]
            return np.concatenate(found)

        high, low = outputs(np.zeros(NEURONS, np.int64)), np.zeros(NEURONS, np.int64)
        for bit in reversed(range(TRUNCATE)):  # the low bits, from the highest: with them it carries, or not
            guessed = low + (1 << bit)
            low = np.where(outputs(STEP - guessed) > high, guessed, low)
        return STEP * high + low - OPEN

    def _ask(self, lies: Sequence[Lie]) -> Numbers:
        self._lies = lies
        self._client.prepare(1, backend=self._backend, batch=len(lies))
        pixels = np.stack([each.pixels for each in lies]).astype(np.uint8).reshape(-1, 1, SIDE, SIDE)
        answers = self._client.infer_batch(pixels, backend=self._backend)
        self.inferences, self.images = self.inferences + 1, self.images + len(lies)
        return np.stack([answer.integer_logits for answer in answers])

    def _lie(self, share: Words, mask: Words) -> tuple[Words, Words]:
        added, injected = (np.stack(part).astype(np.uint64) for part in list(zip(*self._lies, strict=True))[:2])
        return share + added.reshape(share.shape), (mask - injected.reshape(mask.shape)) & self._ring


def _threes() -> list[list[int]]:
    """Neurons whose weights fit one answer of three logits."""
    return [list(range(first, min(first + DIGITS, NEURONS))) for first in range(0, NEURONS, DIGITS)]


def _signed(words: Numbers, bits: int) -> Numbers:
    half = 1 << (bits - 1)
    return ((words + half) & ((1 << bits) - 1)) - half


def _outputs(last: Numbers, neurons: Sequence[int], difference: Numbers) -> Numbers:
    """Outputs of these neurons, from what they did to the logits."""
    factors = last[:, list(neurons)].astype(float)
    found: Numbers = np.rint(np.linalg.lstsq(factors, difference.astype(float), rcond=None)[0]).astype(np.int64)
    return found
