"""Rates are measured by running what they are rates of; how fast is not a test's business."""

from dataclasses import fields

import numpy as np
import pytest

from sphynx.bench import calibrate
from sphynx.bench.calibrate import measure_rates
from sphynx.bench.private_parties import plain_channel
from sphynx.bench.relu_work import MuteChannel
from sphynx.bench.small_network import BACKEND, small_network
from sphynx.program.cost.rates import HeSeconds, PartSeconds, ReluSeconds
from sphynx.program.interpret import interpret
from sphynx.protocol.channel import Channel
from sphynx.protocol.inference_client import InferenceClient
from sphynx.protocol.inference_server import InferenceServer
from sphynx.protocol.linear import ServerModel
from tests.protocol.parties import run_parties


def test_every_rate_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibrate, "REPEATS", 1)
    rates = measure_rates(plain_channel)
    for field in fields(rates):
        value = getattr(rates, field.name)
        is_several = isinstance(value, HeSeconds | PartSeconds | ReluSeconds)
        for number in [getattr(value, part.name) for part in fields(value)] if is_several else [value]:
            assert isinstance(number, str) or number >= 0, field.name
    for seconds in (rates.gc.offline, rates.gmw.offline, rates.step_s, rates.byte_s):
        assert 0 < seconds < 1


def test_the_small_network_that_is_measured_answers_as_the_oracle() -> None:
    program, weights = small_network()
    pixels = np.random.default_rng(0).integers(0, 60, (1, *program.image)).astype(np.uint8)

    def server(channel: Channel) -> None:
        party = InferenceServer(ServerModel(program, weights), channel)
        party.infer(party.prepare(bytes(16), BACKEND))

    def client(channel: Channel) -> np.ndarray:
        party = InferenceClient(program, channel)
        return party.infer(party.prepare(bytes(16), BACKEND), pixels)

    _, answer = run_parties(server, client)
    expected = interpret(program, weights, pixels)
    assert np.array_equal(answer, expected) and expected.any()


def test_the_mute_channel_gives_what_is_asked_for() -> None:
    channel = MuteChannel()
    channel.send(b"into nothing")
    assert channel.receive(3) == bytes(3)
