"""A client that flips choices in one tree of its OT extensions and corrects its labels by a guess of the offset.

Whoever guesses four bits right has an honest run, so without a check the answers tell the offset, sixteen guesses an
inference: the fixture `unchecked` puts that back. With the check the server refuses before it answers, in every
extension of every protocol; a client that also answers the check by its guess passes as often as the guess is right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import pytest
from benchmarks.ot_check_price import without_checks
from numpy.typing import NDArray
from tests.program.programs import gated_program, random_weights, small_program
from tests.protocol.flipping_receiver import flipping
from tests.protocol.own_receiver import PARAMETER, TREES, OwnReceiver, Stake
from tests.protocol.parties import run_parties
from tests.protocol.test_cheating_client import NEURONS
from tests.protocol.test_cheating_client import PROGRAM as TINY

from sphynx.core import Prg, garbling, ot
from sphynx.errors import InconsistentOtError
from sphynx.program.backends import Backend
from sphynx.program.ir import Program
from sphynx.protocol.activations import activation_layers
from sphynx.protocol.channel import Channel
from sphynx.protocol.gmw_material import _Batch
from sphynx.protocol.inference_client import InferenceClient
from sphynx.protocol.inference_server import InferenceServer
from sphynx.protocol.linear import ServerModel
from sphynx.protocol.relu_layer import ReluLayer

Words = NDArray[np.uint64]
GUESSES = 16


@pytest.fixture
def unchecked() -> Iterator[None]:
    """Both parties without checks, as it was."""
    with without_checks():
        yield


def places(backend: Backend) -> list[int]:
    """An OT for each of sixteen images, on which all of its answer depends: one of its first neuron's."""
    if backend == "gc":
        return [NEURONS * image for image in range(GUESSES)]  # the lowest bit of x_c
    (layer,) = activation_layers(TINY, GUESSES).values()
    assert isinstance(layer, ReluLayer)
    batch = _Batch(layer.shape)
    return [(batch.node_rows - 1) * batch.row + NEURONS * image for image in range(GUESSES)]  # of delta


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("backend", ["gc", "gmw"])
def test_without_a_check_answers_tell_the_offset(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    model, trees = ServerModel(TINY, random_weights(TINY, seed=3)), (1, 17, TREES - 1)
    pixels = np.full((GUESSES, 1, 2, 2), 7, np.uint8)

    def server(channel: Channel) -> int:
        party = InferenceServer(model, channel)
        for number in range(len(trees) + 1):
            party.infer(party.prepare(bytes([number] * 16), backend, GUESSES))
        assert party._session is not None
        return int.from_bytes(party._session[1].delta.tobytes(), "little")

    def client(channel: Channel) -> dict[int, int]:
        party, found = InferenceClient(TINY, channel), {}
        honest = party.infer(party.prepare(bytes(16), backend, GUESSES), pixels)[0]
        down = receiver()
        for number, tree in enumerate(trees):
            down.tree, down.flips = tree, {place: guess for guess, place in enumerate(places(backend))}
            # with gmw the second extension of three, in which choices are random
            down.start = down.done + (backend == "gmw")
            answers = party.infer(party.prepare(bytes([number + 1] * 16), backend, GUESSES), pixels)
            right = [guess for guess in range(GUESSES) if np.array_equal(answers[guess], honest)]
            assert len(right) == 1
            found[tree] = right[0]
        return found

    receiver = flipping(monkeypatch)
    offset, found = run_parties(server, client)
    assert found == {tree: offset >> PARAMETER * tree & 15 for tree in trees}


EXTENSIONS = {  # of `down`, the set-up's among them
    ("gc", "small"): 1 + 1 + 5,
    ("gmw", "small"): 1 + 3 + 5,
    ("gc", "gated"): 1 + 2 + 1 + 2,
    ("gmw", "gated"): 1 + 6 + 1 + 2,
}
PROGRAMS: dict[str, Callable[[], Program]] = {"small": partial(small_program, ring_bits=44), "gated": gated_program}


@pytest.mark.parametrize(("backend", "name"), EXTENSIONS)
def test_no_extension_with_other_choices_in_a_tree_is_answered(
    backend: Backend, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each kind of OT in turn: labels, leaves, nodes, conversions, products, truncations, gates, the seeds of `up`."""
    program = PROGRAMS[name]()
    model = ServerModel(program, random_weights(program, seed=3))

    def server(channel: Channel, changed: int) -> int:
        party, answered = InferenceServer(model, channel), count_late_tweaks(monkeypatch)
        if changed == EXTENSIONS[backend, name]:
            party.prepare(bytes(16), backend)
        else:
            with pytest.raises(InconsistentOtError, match="extension"):
                party.prepare(bytes(16), backend)
        return len(answered)

    for changed in range(EXTENSIONS[backend, name] + 1):
        with monkeypatch.context() as patched:
            flipping(patched, start=changed, tree=1 + changed, flips={0: 0})
            answered, _ = run_parties(partial(server, changed=changed), partial(ask, program, backend))
            assert answered == changed


def ask(program: Program, backend: Backend, channel: Channel) -> None:
    party = InferenceClient(program, channel)
    try:
        party.prepare(bytes(16), backend)
    except Exception as error:
        assert "closed" in str(error)


def count_late_tweaks(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """List the tweaks that the server draws from now on: nothing that depends on q leaves without one."""
    drawn: list[bytes] = []
    honest = ot.FixedLabels.late_tweak

    def late_tweak(labels: ot.FixedLabels) -> bytes:
        drawn.append(honest(labels))
        return drawn[-1]

    monkeypatch.setattr(ot.FixedLabels, "late_tweak", late_tweak)
    return drawn


def test_a_stake_passes_as_often_as_its_guess_is_right() -> None:
    """One of sixteen for a tree; of the first one of eight, since the offset's lowest bit is 1. Two trees at once."""
    delta = 0x_A5_37
    assert [guess for guess in range(16) if stake_passes({1: guess}, delta)] == [3]
    assert [guess for guess in (6, 7, 9) if stake_passes({0: guess}, delta)] == [7]
    assert stake_passes({1: 3, 3: 10}, delta) and not stake_passes({1: 3, 3: 11}, delta)


def stake_passes(guesses: dict[int, int], delta: int) -> bool:
    prg = Prg()
    offset = np.frombuffer(delta.to_bytes(16, "little"), np.uint64).reshape(garbling.random_delta(prg).shape)
    pairs = np.empty((ot.BASE_OTS, 2, 2), np.uint64)
    prg.fill_words(pairs)
    bits = np.unpackbits(offset.view(np.uint8).reshape(-1), bitorder="little")
    keys = np.ascontiguousarray(pairs[np.arange(ot.BASE_OTS), bits])
    receiver = OwnReceiver(pairs)
    sender = ot.OtSender(4, offset, keys, receiver.setup, prg, checked=True)
    choices = np.array([5, 0, 1], np.uint64)
    message, t = receiver.correlated(choices, 130)
    q = sender.correlated(message, 130, random_choices=False).zeros  # without stakes it follows the protocol
    r = np.unpackbits(choices.view(np.uint8), bitorder="little")[:130].astype(np.uint64)
    assert (t == q ^ (r[:, None] * offset)).all()
    receiver.stakes = [Stake(tree, guess, (2, 129)) for tree, guess in guesses.items()]
    message, t = receiver.correlated(choices, 130)
    try:
        q = sender.correlated(message, 130, random_choices=False).zeros
    except InconsistentOtError:
        receiver.stakes = []
        with pytest.raises(InconsistentOtError):  # nothing more with this offset
            sender.correlated(receiver.correlated(choices, 130)[0], 130, random_choices=False)
        return False
    assert (t == q ^ (r[:, None] * offset)).all()  # and it has the labels of its own choices, as in an honest run
    return True
