"""Rates are measured by running what they are rates of; how fast is not a test's business."""

from dataclasses import fields

import pytest

from sphynx.bench import calibrate
from sphynx.bench.calibrate import measure_rates
from sphynx.bench.private_parties import plain_channel
from sphynx.bench.relu_work import MuteChannel
from sphynx.program.cost.rates import HeSeconds, ReluSeconds


def test_every_rate_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibrate, "REPEATS", 1)
    rates = measure_rates(plain_channel)
    for field in fields(rates):
        value = getattr(rates, field.name)
        parts = (
            [getattr(value, part.name) for part in fields(value)] if isinstance(value, HeSeconds | ReluSeconds) else []
        )
        for number in parts or [value]:
            assert isinstance(number, str) or number >= 0, field.name
    for seconds in (rates.gc.offline, rates.gmw.offline, rates.step_s, rates.byte_s, rates.message_s):
        assert 0 < seconds < 1


def test_the_mute_channel_gives_what_is_asked_for() -> None:
    channel = MuteChannel()
    channel.send(b"into nothing")
    assert channel.receive(3) == bytes(3)
