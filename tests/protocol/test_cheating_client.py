"""What SECURITY.md says of a client that cheats: with one line changed it reads a network's weights.

The client adds constants to its own share of what enters a ReLU. Nothing tells that share from an honest one. A large
constant makes the ReLU linear, a large negative one closes it; the logits are then linear equations for the weights.
The server runs unchanged. Limits on images per hour are no remedy: a dozen inferences are enough here.
"""

from __future__ import annotations

import numpy as np
import pytest
from tests.program.programs import random_weights
from tests.protocol.parties import run_parties

from sphynx.program.backends import Backend
from sphynx.program.convolve import Array
from sphynx.program.ir import INPUT, Linear, Program, Relu, Term
from sphynx.protocol import inference
from sphynx.protocol.activations import prepare_client as prepare_client_honestly
from sphynx.protocol.channel import Channel
from sphynx.protocol.inference import InferenceClient, InferenceServer
from sphynx.protocol.linear import ServerModel
from sphynx.space.tally import Shape

PIXELS, NEURONS, CLASSES, TRUNCATE = 4, 3, 4, 3
STEP = 2**TRUNCATE
OPEN, CLOSED = 2**18, -(2**18)  # beyond any sum of the first layer, within its range of 20 bits
PROGRAM = Program(
    Shape(1, 2, 2),
    (
        Linear("first", (Term(INPUT, 2, 2),), Shape(NEURONS, 1, 1), 0, 20),
        Relu("relu", "first", TRUNCATE),
        Linear("logits", (Term("relu", 1, 1),), Shape(CLASSES, 1, 1), 0, 28),
    ),
    30,
    8,
)
INFERENCES = 1 + NEURONS + PIXELS + 1 + TRUNCATE


class Cheat:
    """A client whose `added` goes onto its share before the ReLU."""

    def __init__(self, channel: Channel, backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
        self._party, self._backend, self._asked = InferenceClient(PROGRAM, channel), backend, 0
        self._added = np.zeros(NEURONS, np.int64)
        honest = prepare_client_honestly

        def prepare_client(channel, ots, backend, layers, shares, new_masks):  # type: ignore[no-untyped-def]
            changed = shares["relu"].reshape(-1) + self._added.astype(np.uint64)
            shares["relu"] = (changed & np.uint64(2**PROGRAM.ring_bits - 1)).reshape(shares["relu"].shape)
            return honest(channel, ots, backend, layers, shares, new_masks)

        monkeypatch.setattr(inference, "prepare_client", prepare_client)

    def logits(self, pixels: Array, added: Array) -> Array:
        self._added[:] = added
        self._asked += 1
        bundle = self._party.prepare(self._asked.to_bytes(16, "big"), self._backend)
        answered: Array = self._party.infer(bundle, pixels.astype(np.uint8).reshape(1, 1, 2, 2))[0]
        return answered

    def weights(self) -> dict[str, Array]:
        """Floors are exact throughout: what changes, changes what is truncated by multiples of 2^TRUNCATE."""
        dark, neurons = np.zeros(PIXELS, np.int64), np.eye(NEURONS, dtype=np.int64)
        opened = np.full(NEURONS, OPEN)
        plain = self.logits(dark, opened)
        second = np.stack([self.logits(dark, opened + STEP * one) - plain for one in neurons], axis=1)

        def outputs(difference: Array) -> Array:
            """Of the neurons, from what they did to the logits."""
            found: Array = np.rint(np.linalg.lstsq(second.astype(float), difference.astype(float), rcond=None)[0])
            assert np.array_equal(second @ found.astype(np.int64), difference)
            whole: Array = found.astype(np.int64)
            return whole

        pixels = np.eye(PIXELS, dtype=np.int64)
        first = np.stack([outputs(self.logits(STEP * one, opened) - plain) for one in pixels], axis=1)
        second_bias = self.logits(dark, np.full(NEURONS, CLOSED))
        high = outputs(plain - second_bias)  # (bias + OPEN) >> TRUNCATE
        low = np.zeros(NEURONS, np.int64)
        for bit in reversed(range(TRUNCATE)):  # whether so much more carries into the next step
            trial = STEP - low - 2**bit
            carries = outputs(self.logits(dark, opened + trial) - second_bias) > high
            low += 2**bit * carries
        return {
            "first/0": first.reshape(NEURONS, 1, 2, 2),
            "first/bias": (STEP * high + low - OPEN).reshape(NEURONS, 1, 1),
            "logits/0": second.reshape(CLASSES, NEURONS, 1, 1),
            "logits/bias": second_bias.reshape(CLASSES, 1, 1),
        }


@pytest.mark.parametrize("backend", ["gc", "gmw"])
def test_a_constant_added_to_its_share_gives_a_client_all_weights(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = random_weights(PROGRAM, seed=3)
    model = ServerModel(PROGRAM, weights)

    def server(channel: Channel) -> None:
        party = InferenceServer(model, channel)
        for number in range(1, INFERENCES + 1):
            party.infer(party.prepare(number.to_bytes(16, "big"), backend))

    _, found = run_parties(server, lambda channel: Cheat(channel, backend, monkeypatch).weights())
    assert INFERENCES == 12 and sum(array.size for array in weights.values()) == 31
    for name, array in weights.items():
        np.testing.assert_array_equal(found[name], array)
