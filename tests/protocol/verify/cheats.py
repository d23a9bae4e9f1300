"""Clients that depart from the protocol, each in one way, at a place and by an amount drawn anew for each attempt.

They change what a client commits to, uploads, returns or asks, and are otherwise as clever as they can be: what they
send is consistent with what they did. `python -m tests.protocol.verify.refusals` counts how often they are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from tests.program.programs import random_weights

from sphynx.core import garbling
from sphynx.program.ir import INPUT, Combine, Linear, Program, Relu, Summand, Term, Truncate
from sphynx.protocol import inference_client
from sphynx.protocol.inference_client import InferenceClient
from sphynx.protocol.linear import MaskedTensors
from sphynx.protocol.linear_plan import Upload
from sphynx.protocol.shares import Words
from sphynx.protocol.verify import parties
from sphynx.space.tally import Shape

Random = np.random.Generator
Numbers = dict[str, list[Words]]
SECOND_RANGE = 28

PROGRAM = Program(
    Shape(1, 2, 2),
    (
        Linear("first", (Term(INPUT, 2, 2),), Shape(4, 1, 1)),
        Combine(
            "difference", (Summand("first", (0, 2)), Summand("first", (1, 3), negative=True)), Shape(2, 1, 1), 0, 20
        ),
        Relu("comparison", "difference", comparison=True),
        Combine("max", (Summand("first", (1, 3)), Summand("comparison")), Shape(2, 1, 1), 0, 20),
        Relu("relu", "max", 3),
        Truncate("floor", "max", 5),
        Linear("second", (Term("relu", 1, 1), Term("floor", 1, 1)), Shape(3, 1, 1), 0, SECOND_RANGE),
        Relu("last", "second", 4),
        Linear("logits", (Term("last", 1, 1),), Shape(4, 1, 1), 0, 31),
    ),
    32,
    8,
)
WEIGHTS = random_weights(PROGRAM, seed=3)
_SIGN, _RING_TOP = 1 << (SECOND_RANGE - 1), 1 << (PROGRAM.ring_bits - 1)


@dataclass(frozen=True)
class Cheat:
    """`deceive` changes the client's software for one attempt: to prepare bundles as a group, and to ask with each."""

    deceive: Callable[[pytest.MonkeyPatch, Random], None]
    bundles: int = 1
    batch: int = 1


def _harmful(random: Random) -> int:
    """An error that circuits see, of any size."""
    return int(random.integers(1, 2**20))


def _any_bit(random: Random) -> int:
    return 1 << int(random.integers(PROGRAM.ring_bits))


def commit(
    group: str, number: int, error: Callable[[Random], int], *, bundle: int = 0, image: int = 0, flip: bool = False
) -> Callable[[pytest.MonkeyPatch, Random], None]:
    """Commit to another number than the honest one; later on go on with that."""

    def deceive(patch: pytest.MonkeyPatch, random: Random) -> None:
        honest, done = parties.committed_numbers, [0]

        def changed(program: Program, shares: Mapping[str, Words], masks: Mapping[str, Words]) -> Numbers:
            numbers = {name: [each.copy() for each in group] for name, group in honest(program, shares, masks).items()}
            done[0] += 1
            if done[0] == bundle + 1:
                words, size = numbers[group][number], program.shapes[group].size
                at, by = size * image + int(random.integers(size)), np.uint64(error(random))
                words[at] = words[at] ^ by if flip else words[at] + by
            return numbers

        patch.setattr(parties, "committed_numbers", changed)

    return deceive


def upload(tensor: str) -> Callable[[pytest.MonkeyPatch, Random], None]:
    """Upload something else than the mask that is committed to."""

    def deceive(patch: pytest.MonkeyPatch, random: Random) -> None:
        honest = MaskedTensors.shifted

        def changed(self: MaskedTensors, upload: Upload) -> Words:
            words = honest(self, upload).copy()
            if upload.tensor == tensor:
                words.reshape(-1)[random.integers(words.size)] += np.uint64(_harmful(random))
            return words

        patch.setattr(MaskedTensors, "shifted", changed)

    return deceive


def answer(
    *, forges: bool, layers: int = len(list(PROGRAM.activations))
) -> Callable[[pytest.MonkeyPatch, Random], None]:
    """Return a colour of the other label in one of the layers, and where it `forges` a guess of that label."""

    def deceive(patch: pytest.MonkeyPatch, random: Random) -> None:
        honest = garbling.evaluate
        at, done = int(random.integers(layers)), [0]

        def changed(*arguments: Any, **options: Any) -> Any:
            evaluated = honest(*arguments, **options)
            done[0] += 1
            if done[0] == at + 1:
                assert evaluated.halves is not None
                plane, instance = random.integers(evaluated.halves.shape[0]), random.integers(evaluated.halves.shape[1])
                evaluated.colours[plane, 0] ^= np.uint64(1) << np.uint64(instance)
                if forges:
                    evaluated.halves[plane, instance] = random.integers(2**64, dtype=np.uint64)
            return evaluated

        patch.setattr(garbling, "evaluate", changed)

    return deceive


def ask(value: int, *, image: int = 0) -> Callable[[pytest.MonkeyPatch, Random], None]:
    """Ask about a pixel that no picture has."""

    def deceive(patch: pytest.MonkeyPatch, random: Random) -> None:
        honest = InferenceClient.infer

        def changed(self: InferenceClient, bundle: Any, pixels: Any) -> Any:
            strange = pixels.astype(np.uint64)
            strange[image].reshape(-1)[random.integers(strange[image].size)] = value
            return honest(self, bundle, strange)

        patch.setattr(inference_client, "require_images", lambda *_: None)
        patch.setattr(InferenceClient, "infer", changed)

    return deceive


CHEATS = {
    "share u, any error": Cheat(commit("last", 0, _harmful)),
    "share u, its sign alone": Cheat(commit("last", 0, lambda _: _SIGN, flip=True)),
    "share u, the highest bit of the ring": Cheat(commit("last", 0, lambda _: _RING_TOP, flip=True)),
    "mask r' of an activation": Cheat(commit("relu", 1, _any_bit, flip=True)),
    "mask r0 of a pixel": Cheat(commit(INPUT, 0, _any_bit, flip=True)),
    "share of the logits": Cheat(commit("logits", 0, _any_bit, flip=True)),
    "input of a truncation's circuit": Cheat(commit("floor", 0, _harmful)),
    "input of a max pool's comparison": Cheat(commit("comparison", 0, _harmful)),
    "mask of a max pool's comparison": Cheat(commit("comparison", 1, _any_bit, flip=True)),
    "first upload": Cheat(upload(INPUT)),
    "an upload between": Cheat(upload("floor")),
    "last upload": Cheat(upload("last")),
    "colour": Cheat(answer(forges=False)),
    "colour and a forged label": Cheat(answer(forges=True)),
    "a pixel of 256": Cheat(ask(256)),
    "a pixel of 2^19": Cheat(ask(2**19)),
    "a pixel of 2^31": Cheat(ask(2**31)),
    "share in the second image of a batch": Cheat(commit("last", 0, _harmful, image=1), batch=2),
    "a pixel of the second image of a batch": Cheat(ask(256, image=1), batch=2),
    "share in the second bundle of a group": Cheat(commit("last", 0, _harmful, bundle=1), bundles=2),
    "share of the logits in the second bundle": Cheat(commit("logits", 0, lambda _: 1, bundle=1), bundles=2),
}
