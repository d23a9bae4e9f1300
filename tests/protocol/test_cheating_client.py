"""A client that cheats, as SECURITY.md describes it: with one line changed it reads a network's weights.

The client adds constants to its own share of what enters a ReLU. Nothing tells that share from an honest one. A large
constant makes the ReLU linear, a large negative one closes it; the logits are then linear equations for the weights.
Every image of a batch has its own, and none depends on another's answer: one inference of a usual batch is enough here.
The server runs unchanged. Limits on images per hour are no remedy.
"""

from __future__ import annotations

import numpy as np
import pytest
from tests.program.programs import random_weights
from tests.protocol.parties import run_parties

from sphynx.program.backends import Backend
from sphynx.program.convolve import Array
from sphynx.program.ir import INPUT, Linear, Program, Relu, Term
from sphynx.protocol import inference_client
from sphynx.protocol.activations import prepare_client as prepare_client_honestly
from sphynx.protocol.channel import Channel
from sphynx.protocol.inference_client import InferenceClient
from sphynx.protocol.inference_server import InferenceServer
from sphynx.protocol.linear import ServerModel
from sphynx.service.settings import Limits
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
IMAGES = 1 + NEURONS + PIXELS + 1 + (STEP - 1)


class Cheat:
    """A client that adds constants to its shares before the ReLU, for each image and neuron others."""

    def __init__(self, channel: Channel, backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
        self._party, self._backend = InferenceClient(PROGRAM, channel), backend
        self._asked: list[tuple[Array, Array]] = []  # pixels, and what is added
        honest = prepare_client_honestly

        def prepare_client(channel, ots, backend, layers, shares, new_masks):  # type: ignore[no-untyped-def]
            added = np.stack([added for _, added in self._asked]).astype(np.uint64)
            changed = shares["relu"] + added.reshape(shares["relu"].shape)
            shares["relu"] = changed & np.uint64(2**PROGRAM.ring_bits - 1)
            return honest(channel, ots, backend, layers, shares, new_masks)

        monkeypatch.setattr(inference_client, "prepare_client", prepare_client)

    def weights(self) -> dict[str, Array]:
        """Floors are exact throughout: what changes, changes what is truncated by multiples of 2^TRUNCATE."""
        dark, opened = np.zeros(PIXELS, np.int64), np.full(NEURONS, OPEN)
        self._asked = [(dark, opened), (dark, np.full(NEURONS, CLOSED))]
        self._asked += [(dark, opened + STEP * one) for one in np.eye(NEURONS, dtype=np.int64)]
        self._asked += [(STEP * one, opened) for one in np.eye(PIXELS, dtype=np.int64)]
        self._asked += [(dark, opened + more) for more in range(1, STEP)]
        pixels = np.stack([pixels for pixels, _ in self._asked]).astype(np.uint8).reshape(-1, 1, 2, 2)
        bundle = self._party.prepare(bytes(16), self._backend, len(pixels))
        plain, second_bias, *answers = self._party.infer(bundle, pixels)
        second = np.stack(answers[:NEURONS], axis=1) - plain[:, None]

        def outputs(difference: Array) -> Array:
            """Outputs of the neurons, from what they did to the logits."""
            found: Array = np.rint(np.linalg.lstsq(second.astype(float), difference.astype(float), rcond=None)[0])
            assert np.array_equal(second @ found.astype(np.int64), difference)
            whole: Array = found.astype(np.int64)
            return whole

        lit, raised = answers[NEURONS : NEURONS + PIXELS], answers[NEURONS + PIXELS :]
        first = np.stack([outputs(answer - plain) for answer in lit], axis=1)
        high = outputs(plain - second_bias)  # (bias + OPEN) >> TRUNCATE
        low = sum(
            outputs(answer - second_bias) > high for answer in raised
        )  # how many of them carry into the next step
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
        party.infer(party.prepare(bytes(16), backend, IMAGES))

    _, found = run_parties(server, lambda channel: Cheat(channel, backend, monkeypatch).weights())
    assert Limits().batch >= IMAGES and sum(array.size for array in weights.values()) == 31
    for name, array in weights.items():
        np.testing.assert_array_equal(found[name], array)
