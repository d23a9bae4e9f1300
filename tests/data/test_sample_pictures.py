"""Sample pictures: those that the network knows, with their licences; what the shipped networks make of them."""

from __future__ import annotations

import pytest

import sphynx
from sphynx.data.drawn_pictures import DRAWN
from sphynx.data.sample_pictures import sample_pictures
from sphynx.program.interpret import interpret
from sphynx.service.pictures import pixels_of
from sphynx.zoo.shipped import load_card, model_names

CIFAR = [name for name in model_names() if load_card(name)["data"]["name"] == "cifar100"]


def test_a_network_for_digits_gets_all_ten_digits() -> None:
    found = sample_pictures(1, 8, [str(digit) for digit in range(10)])
    assert list(found) == [f"digit-{digit}" for digit in range(10)]
    assert all(sample.is_known and "CC BY" in sample.licence for sample in found.values())


def test_what_a_network_knows_comes_first_and_everything_has_a_licence() -> None:
    found = sample_pictures(3, 32, ["lamp", "orange", "wolf"])
    assert list(found)[:2] == ["orange", "lamp"] and "clock" not in found and "china" in found
    assert [name for name, sample in found.items() if sample.is_known] == ["orange", "lamp"]
    assert all(sample.licence for sample in found.values())
    assert list(sample_pictures(3, 32, ["wolf"]))[-2:] == ["sunset", "stripes"]


@pytest.mark.slow
@pytest.mark.parametrize("name", CIFAR)
def test_the_shipped_networks_recognise_what_is_drawn(name: str) -> None:
    compiled = sphynx.Compiled.load(name)
    program = compiled.program
    for drawn, draw in DRAWN.items():
        logits = interpret(program, compiled.weights, pixels_of(draw(), program)[None])[0]
        assert program.class_names[int(logits.argmax())] == drawn
