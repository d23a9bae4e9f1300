"""A client around an inference: it measures the link, chooses a backend, reads pictures, names labels."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from sphynx.errors import InputError
from sphynx.program.cost.kept_rates import keep_rates
from sphynx.program.cost.link import Link
from sphynx.program.cost.rates import REFERENCE
from sphynx.program.ir import MAX_SCALE, Linear
from sphynx.protocol.channel import Channel, local_pair
from sphynx.service import session
from sphynx.service.link_measurement import beyond_hosts, choose_backend, measure_link
from sphynx.service.pictures import read_picture
from sphynx.service.prediction import ranked
from sphynx.service.session import Bye, Ping
from sphynx.space.tally import Shape
from tests.program.programs import program_reading
from tests.service.tiny import tiny_program


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No rates but those that a test keeps."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


@pytest.mark.usefixtures("own_cache")
def test_the_backend_follows_the_link() -> None:
    """Few bytes where bytes are expensive, few rounds where the way is long."""
    program = tiny_program()
    assert choose_backend(program, Link(round_trip_s=1e-4, bits_per_s=1e6)) == "gmw"
    assert choose_backend(program, Link(round_trip_s=0.2, bits_per_s=1e9)) == "gc"


@pytest.mark.usefixtures("own_cache")
def test_the_backend_follows_the_machine_as_the_estimate_does() -> None:
    program, link = tiny_program(), Link(round_trip_s=0.02, bits_per_s=1e9)
    assert choose_backend(program, link) == "gc"
    keep_rates(replace(REFERENCE, gc=replace(REFERENCE.gc, online=1e-3)))  # a machine that is slow at AES
    assert choose_backend(program, link) == "gmw"


def test_a_measured_link_is_relieved_of_the_hosts_work() -> None:
    """The estimate adds the hosts' work on every message and byte to the link."""
    hosts = Link(2 * REFERENCE.message_s, 8 / REFERENCE.byte_s)
    assert beyond_hosts(hosts, REFERENCE) == Link(0.0, math.inf)
    far = beyond_hosts(Link(0.04 + hosts.round_trip_s, 8 / (8e-8 + REFERENCE.byte_s)), REFERENCE)
    assert far.round_trip_s == pytest.approx(0.04) and far.bits_per_s == pytest.approx(1e8)


def _answer_pings(channel: Channel) -> None:
    while isinstance(request := session.receive(channel), Ping):
        channel.receive(request.up_bytes)
        channel.send(bytes(request.down_bytes))


def test_the_link_is_measured() -> None:
    left, right = local_pair(Link(round_trip_s=0.02, bits_per_s=16e6))
    with ThreadPoolExecutor(1) as pool:
        answering = pool.submit(_answer_pings, left)
        link = measure_link(right)
        session.send(right, Bye())
        answering.result()
    assert link.round_trip_s >= 0.02 and link.bits_per_s <= 20e6


def test_labels_come_with_softmax_probabilities() -> None:
    program = tiny_program()  # its logits are real numbers times 2^16
    labels, probabilities = ranked(program, np.array([0, 2 << 16, 1 << 16]))
    powers = np.exp([2.0, 1.0, 0.0])
    assert labels == ("dog", "bird", "cat")
    assert np.allclose(probabilities, powers / powers.sum())
    assert ranked(program, np.array([2**40, 0, -(2**40)]))[1] == (1.0, 0.0, 0.0)


@pytest.mark.parametrize("scale", [-MAX_SCALE, MAX_SCALE])
def test_the_farthest_scales_that_a_server_may_send_give_probabilities(scale: int) -> None:
    """Whatever integers come out: labels are ranked after the bundle is spent, when it is too late to refuse."""
    program = tiny_program()
    last = program.steps[-1]
    assert isinstance(last, Linear)
    program = replace(program, steps=(*program.steps[:-1], replace(last, scale=scale)))
    extremes = np.iinfo(np.int64)
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        labels, probabilities = ranked(program, np.array([extremes.min, extremes.max, 0]))
    assert sum(probabilities) == pytest.approx(1)
    if scale < 0:
        assert labels[0] == "dog" and probabilities == (1.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("channels", "make"),
    [
        (3, lambda: np.random.default_rng(0).integers(0, 256, (6, 8, 3), np.uint8)),
        (1, lambda: np.eye(8, dtype=np.uint8)),
    ],
)
def test_pictures_of_the_right_size_are_taken_as_they_are(
    tmp_path: Path, channels: int, make: Callable[[], np.ndarray]
) -> None:
    pixels = make()
    Image.fromarray(pixels).save(tmp_path / "a.png")
    read = read_picture(tmp_path / "a.png", program_reading(Shape(channels, *pixels.shape[:2])))
    assert np.array_equal(read, pixels.reshape(*pixels.shape[:2], channels).transpose(2, 0, 1))


def test_other_sizes_are_resized_as_in_training(tmp_path: Path) -> None:
    from sphynx.data.decode import decode_image

    pixels = np.random.default_rng(1).integers(0, 256, (50, 70, 3), np.uint8)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    trained = decode_image(tmp_path / "a.png", "a", size=32).transpose(2, 0, 1)
    assert np.array_equal(read_picture(tmp_path / "a.png", program_reading(Shape(3, 32, 32))), trained)


def test_what_is_no_picture_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"not a picture")
    with pytest.raises(InputError, match=r"a\.png"):
        read_picture(tmp_path / "a.png", program_reading(Shape(3, 32, 32)))
    with pytest.raises(InputError, match="2 channels"):
        read_picture(tmp_path / "a.png", program_reading(Shape(2, 32, 32)))
