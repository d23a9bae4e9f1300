"""Programs that `compile_network` refuses: those that answer otherwise than their network, or cannot run."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import sphynx
from sphynx.compiler.frontend.operators import value
from sphynx.compiler.precision import Precision
from sphynx.data.images import Data, ImageSet, make_data
from sphynx.program.convolve import Array
from sphynx.protocol import runnable
from sphynx.space.tally import Shape

pytestmark = pytest.mark.filterwarnings("ignore::Warning:torch")


def noise(image: Shape, classes: int = 4, count: int = 24) -> Data:
    random = np.random.default_rng(0)
    pixels = torch.from_numpy(random.integers(0, 256, (count, *image)).astype(np.uint8))
    images = ImageSet(pixels, torch.arange(count) % classes, tuple(map(str, range(classes))))
    return make_data("noise", images, images, where="noise")


def padded(image: Shape) -> nn.Module:
    torch.manual_seed(0)
    size = 3 * (image.height + 2) * (image.width + 1)
    return nn.Sequential(
        nn.ZeroPad2d((1, 0, 0, 2)),
        nn.Conv2d(1, 3, 1),
        nn.ReLU(),
        nn.Conv2d(3, 3, 3, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(size, 4),
    )


IMAGE = Shape(1, 6, 5)


def test_a_program_that_is_far_off_is_refused_unless_that_is_accepted() -> None:
    coarse, told = Precision(6, 4), list[str]()
    with pytest.raises(sphynx.SphynxError, match=r"off by \d+ % of their spread") as refusal:
        sphynx.compile_network(padded(IMAGE), calibrate=noise(IMAGE), precision=coarse)
    assert "more bits" in refusal.value.remedy and "accept_error=" in refusal.value.remedy
    made = sphynx.compile_network(
        padded(IMAGE), calibrate=noise(IMAGE), precision=coarse, accept_error=float("inf"), warn=told.append
    )
    assert made.judged is not None and made.judged.is_far_off and not made.judged.is_misread
    assert "This is accepted" in told[0]
    with pytest.raises(sphynx.SphynxError, match=r"more than 0 %"):
        sphynx.compile_network(padded(IMAGE), calibrate=noise(IMAGE), accept_error=1e-6)
    with pytest.raises(sphynx.InputError, match="`accept_error`: nan"):
        sphynx.compile_network(padded(IMAGE), calibrate=noise(IMAGE), accept_error=float("nan"))


def test_a_network_that_was_read_wrongly_is_an_error_of_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reader is broken as numpy broke it: it loses its way between the elements of a map that is moved."""
    right = value._coordinates

    def lost(order: value.Order, shape: Shape) -> list[Array]:
        channels, rows, columns = right(order, shape)
        return [channels, np.where(rows > 0, 0, rows), columns]

    monkeypatch.setattr(value, "_coordinates", lost)
    with pytest.raises(sphynx.SphynxError, match="read as a different network") as refusal:
        sphynx.compile_network(padded(IMAGE), calibrate=noise(IMAGE))
    assert "report it" in refusal.value.remedy and "doctor --json" in refusal.value.remedy
    made = sphynx.compile_network(padded(IMAGE), calibrate=noise(IMAGE), accept_error=10, warn=lambda _: None)
    assert made.judged is not None and made.judged.is_misread


def test_what_does_not_fit_a_ciphertext_is_refused_when_it_is_compiled() -> None:
    """A dense layer reads a channel of 65x64 elements at once; 4,096 fit."""
    image = Shape(1, 65, 64)
    network = nn.Sequential(nn.Flatten(), nn.Linear(image.size, 4))
    with pytest.raises(sphynx.InputError, match=r"logits: one output reads 65 rows and 64 columns .* 4,160 elements"):
        sphynx.compile_network(network, calibrate=noise(image))


def test_a_program_whose_shares_would_be_off_by_one_too_often_gets_a_wider_ring(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    narrow = sphynx.compile_network(padded(IMAGE), calibrate=noise(IMAGE), warn=lambda _: None)
    usual = runnable.log2_off_by_one(narrow.program, narrow.weights)
    assert narrow.program.ring_bits < 40 and usual < runnable.MAX_LOG2_OFF_BY_ONE
    monkeypatch.setattr(runnable, "MAX_LOG2_OFF_BY_ONE", usual - 1)  # as if it had many more elements
    wide = sphynx.compile_network(padded(IMAGE), calibrate=noise(IMAGE), warn=lambda _: None)
    assert wide.program.ring_bits == 49 and wide.program.steps == narrow.program.steps  # 40 bits would be no rarer here
    pixels = noise(IMAGE).test.images[:1].numpy()
    (answer,) = wide.infer_privately(pixels)
    assert np.array_equal(answer.logits, narrow.infer(pixels)[0])
    monkeypatch.setattr(runnable, "MAX_LOG2_OFF_BY_ONE", -100.0)
    with pytest.raises(sphynx.SphynxError, match="off by one with probability"):
        sphynx.compile_network(padded(IMAGE), calibrate=noise(IMAGE), warn=lambda _: None)


def test_convolutions_that_fit_apart_are_not_fused_beyond_a_ciphertext() -> None:
    """65x1 and 1x65 together would be a kernel of 65x65."""
    image = Shape(1, 66, 67)
    torch.manual_seed(0)
    network = nn.Sequential(
        nn.Conv2d(1, 1, (65, 1)), nn.Conv2d(1, 2, (1, 65)), nn.ReLU(), nn.Flatten(), nn.Linear(2 * 2 * 3, 4)
    )
    compiled = sphynx.compile_network(network, calibrate=noise(image), precision=Precision(12, 12), warn=lambda _: None)
    assert len(tuple(compiled.program.linears)) == 3
    pixels = noise(image).test.images[:1].numpy()
    (answer,) = compiled.infer_privately(pixels)
    assert np.array_equal(answer.logits, compiled.infer(pixels)[0])
