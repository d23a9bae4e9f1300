"""A client that reads a network of whose answers it gets the label alone: the weights of `tiny_program`, one comparison
a question.

It lies as the thief of logits does (tests/service/thief.py): constants on its shares open and close ReLUs and put any
numbers into the last layer. Here it also adds constants to its shares of the scores, so that the label says whether one
score, v, is below a threshold t: at 2^(w-1) - t a score of t or more wraps around and loses. Binary subdivision does
the rest. An answer has log2(classes) bits at most: no thief needs fewer questions than the weights have bits over that.

    27 questions     a bias of the last layer
    8 questions      a weight of it: one number put in
    18 questions     a bias of a ReLU: its output through a weight that is known, then its last bits by where it carries
    8 questions      a weight of the kernel: one pixel lit

    python -m tests.protocol.label_thief      counts the questions
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.program.programs import random_weights
from tests.protocol.parties import run_parties
from tests.service.thief import CENTRES, CLASSES, CLOSED, NEURONS, OPEN, SIDE, STEP, TRUNCATE
from tests.service.tiny import tiny_program

from sphynx.program.backends import Backend
from sphynx.program.revealing import revealing_label
from sphynx.protocol import activations, answer, inference_client
from sphynx.protocol.channel import Channel
from sphynx.protocol.inference_client import InferenceClient
from sphynx.protocol.inference_server import InferenceServer
from sphynx.protocol.linear import ServerModel
from sphynx.protocol.shares import Words

Numbers = NDArray[np.int64]
TOGETHER = 128  # questions of one inference
LARGEST_WEIGHT, LARGEST_BIAS = 127, 1 << 26
MOST_OUTPUT = 1 << 15  # of a ReLU that is open: the constant that opens it outweighs all else


@dataclass(frozen=True)
class Lie:
    """A question: constants on what enters each ReLU, on what leaves it, and on the scores; pixels."""

    added: Numbers
    injected: Numbers
    scores: Numbers
    pixels: Numbers


@dataclass
class Search:
    """A number that is sought: `ask` says by which lie its label tells whether it is below a threshold."""

    low: int
    high: int  # it is one of low .. high
    ask: Callable[[int], Lie]
    target: int  # the class whose label says that it is below

    @property
    def middle(self) -> int:
        return (self.low + self.high + 1) // 2


class LabelThief:
    def __init__(self, model: ServerModel, backend: Backend) -> None:
        self._model, self._backend = model, backend
        [output] = model.program.outputs
        self._top = 1 << (model.program.ranges[output.source] - 1)
        self.questions = 0

    def steal(self) -> dict[str, Numbers]:
        last_bias = np.array(
            self._find([self._score(number, -LARGEST_BIAS, LARGEST_BIAS) for number in range(CLASSES)])
        )
        seek = [
            self._score(
                number, int(last_bias[number]) - LARGEST_WEIGHT, int(last_bias[number]) + LARGEST_WEIGHT, neuron
            )
            for number in range(CLASSES)
            for neuron in range(NEURONS)
        ]
        last = np.array(self._find(seek)).reshape(CLASSES, NEURONS) - last_bias[:, None]
        biases = self._find_biases(last, last_bias)
        kernel = self._find_kernel(last, last_bias, biases)
        return {
            "logits/0": last.reshape(CLASSES, 2, SIDE, SIDE),
            "logits/bias": last_bias.reshape(CLASSES, 1, 1),
            "first/0": kernel.reshape(2, 1, 3, 3),
            "first/bias": biases.reshape(2, SIDE, SIDE),
        }

    def _score(self, number: int, low: int, high: int, neuron: int | None = None) -> Search:
        """Seek a score where all ReLUs are closed and 1 leaves one of them."""
        injected = np.zeros(NEURONS, np.int64)
        if neuron is not None:
            injected[neuron] = 1
        return Search(low, high, lambda least: self._lie(number, least, injected=injected), number)

    def _output(
        self,
        last: Numbers,
        last_bias: Numbers,
        neuron: int,
        low: int,
        high: int,
        *,
        more: int = 0,
        lit: int | None = None,
    ) -> Search:
        """Seek what leaves one open ReLU, through its largest weight: seen as it is, or negative."""
        number = int(np.abs(last[:, neuron]).argmax())
        weight, bias = int(last[number, neuron]), int(last_bias[number])

        def ask(least: int) -> Lie:
            """Compare with `least`; for a negative weight the search runs over negative numbers."""
            return self._lie(number, bias + abs(weight) * least - (abs(weight) - 1), opened={neuron: more}, lit=lit)

        if weight < 0:
            low, high = -high, -low
        return Search(low, high, ask, number)

    def _outputs(self, last: Numbers, searches: Sequence[Search], neurons: Sequence[int]) -> list[int]:
        """Find what leaves these ReLUs."""
        found = self._find(searches)
        signs = [np.sign(last[np.abs(last[:, neuron]).argmax(), neuron]) for neuron in neurons]
        return [int(sign) * value for sign, value in zip(signs, found, strict=True)]

    def _find_biases(self, last: Numbers, last_bias: Numbers) -> Numbers:
        def outputs(more: Numbers, low: Numbers, high: Numbers) -> Numbers:
            searches = [
                self._output(last, last_bias, neuron, int(low[neuron]), int(high[neuron]), more=int(more[neuron]))
                for neuron in range(NEURONS)
            ]
            return np.array(self._outputs(last, searches, range(NEURONS)))

        zeros = np.zeros(NEURONS, np.int64)
        high = outputs(zeros, zeros, zeros + MOST_OUTPUT - 1)
        rest = zeros
        for bit in reversed(range(TRUNCATE)):
            guessed = rest + (1 << bit)
            rest = np.where(outputs(STEP - guessed, high, high + 1) > high, guessed, rest)
        return STEP * high + rest - OPEN

    def _find_kernel(self, last: Numbers, last_bias: Numbers, biases: Numbers) -> Numbers:
        lit = [SIDE * row + column for row in range(3) for column in range(3)]
        dark = [(int(biases[neuron]) + OPEN) >> TRUNCATE for neuron in CENTRES]
        places = [(neuron, out, pixel) for neuron, out in zip(CENTRES, dark, strict=True) for pixel in lit]
        searches = [
            self._output(last, last_bias, neuron, out - LARGEST_WEIGHT, out + LARGEST_WEIGHT, lit=pixel)
            for neuron, out, pixel in places
        ]
        found = self._outputs(last, searches, [neuron for neuron, _, _ in places])
        return np.array([value - out for value, (_, out, _) in zip(found, places, strict=True)])

    def _find(self, searches: Sequence[Search]) -> list[int]:
        """Halve all ranges at once, one question each."""
        while open_ones := [one for one in searches if one.low < one.high]:
            for first in range(0, len(open_ones), TOGETHER):
                part = open_ones[first : first + TOGETHER]
                labels = self._ask([one.ask(one.middle) for one in part])
                for one, label in zip(part, labels, strict=True):
                    if label == one.target:
                        one.high = one.middle - 1
                    else:
                        one.low = one.middle
        return [one.low for one in searches]

    def _lie(
        self,
        number: int,
        least: int,
        *,
        injected: Numbers | None = None,
        opened: Mapping[int, int] | None = None,
        lit: int | None = None,
    ) -> Lie:
        """Let the label be that class where its score is below `least`, and another one where it is not."""
        added, pixels = np.full(NEURONS, CLOSED), np.zeros(SIDE * SIDE, np.int64)
        for neuron, more in (opened or {}).items():
            added[neuron] = OPEN + more
        if lit is not None:
            pixels[lit] = STEP
        scores = np.zeros(CLASSES, np.int64)
        scores[number] = self._top - least
        return Lie(added, np.zeros(NEURONS, np.int64) if injected is None else injected, scores, pixels)

    def _ask(self, lies: Sequence[Lie]) -> list[int]:
        """One inference of a changed client, through the whole protocol."""
        model, program, backend = self._model, self._model.program, self._backend
        self.questions, bundle_id = self.questions + len(lies), os.urandom(16)
        pixels = np.stack([lie.pixels for lie in lies]).astype(np.uint8).reshape(-1, 1, SIDE, SIDE)

        def server(channel: Channel) -> None:
            party = InferenceServer(model, channel)
            party.infer(party.prepare(bundle_id, backend, len(lies)))

        def client(channel: Channel) -> list[int]:
            party = InferenceClient(program, channel)
            found: list[int] = party.infer(party.prepare(bundle_id, backend, len(lies)), pixels)[:, 0].tolist()
            return found

        with _lying(lies, program.ring_bits):
            return run_parties(server, client, timeout_s=300)[1]


@contextmanager
def _lying(lies: Sequence[Lie], ring_bits: int) -> Iterator[None]:
    """Change the client's software in three lines."""
    added, injected, scores = (
        np.stack([getattr(lie, name) for lie in lies]).astype(np.uint64) for name in ("added", "injected", "scores")
    )
    ring = np.uint64((1 << ring_bits) - 1)

    def lie(share: Words, mask: Words) -> tuple[Words, Words]:
        return share + added.reshape(share.shape), (mask - injected.reshape(mask.shape)) & ring

    def prepare(channel: Any, ots: Any, backend: Any, layers: Any, shares: Any, masks: Any) -> Any:
        share, mask = lie(shares["relu"], masks["relu"])
        changed = {**shares, "relu": share}, {**masks, "relu": mask}
        return activations.prepare_client(channel, ots, backend, layers, *changed)

    def run(channel: Any, backend: Any, layer: Any, material: Any, own: Any, mask: Any) -> Any:
        own, mask = lie(own, mask) if backend == "gmw" else (own, mask)
        return activations.run_client(channel, backend, layer, material, own, mask)

    def choices(channel: Any, ots: Any, layer: Any, share: Words) -> Any:
        return answer.send_choices(channel, ots, layer, share + scores.reshape(share.shape))

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(inference_client, "prepare_client", prepare)
        patched.setattr(inference_client, "run_client", run)
        patched.setattr(inference_client, "send_choices", choices)
        yield


def victim(seed: int = 0) -> ServerModel:
    program = revealing_label(tiny_program())
    return ServerModel(program, random_weights(program, seed))


if __name__ == "__main__":
    thief = LabelThief(victim(), "gc")
    taken = thief.steal()
    right = sum(int((taken[name] == weights).sum()) for name, weights in thief._model.weights.items())
    count = sum(part.size for part in taken.values())
    print(f"{right} of {count} weights by {thief.questions} questions, {thief.questions / count:.1f} each")
