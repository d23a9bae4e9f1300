"""Plan, build, load, evaluate, compile, check and run privately, all by the names of `import sphynx`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import sphynx
from sphynx.network.observe import observe
from sphynx.zoo.shipped import load_card, model_names


def test_a_design_counts_what_its_network_does(tmp_path: Path) -> None:
    planned = sphynx.plan("2k", image=(1, 8, 8), classes=10)
    design = planned.design
    seen = observe(sphynx.build_network(design), design.image)
    assert (design.relus, design.parameters, design.macs) == (seen.relus, seen.parameters, seen.macs)
    assert abs(design.relus - 2000) <= 100
    assert sphynx.plan(2000, image=(1, 8, 8), classes=10, tolerance="5%") == planned
    design.save(tmp_path / "design.json")
    assert sphynx.Design.load(tmp_path) == sphynx.Design.load(str(tmp_path / "design.json")) == design
    design.genotype.save(str(tmp_path / "cells.json"))
    assert sphynx.Genotype.load(tmp_path / "cells.json") == sphynx.find_cells("sphynx")


def test_what_an_interpreter_shows_is_one_line() -> None:
    planned = sphynx.plan("2k", image=(1, 8, 8), classes=10)
    plans, plan, data = map(repr, (planned, planned.chosen, sphynx.open_data("digits")))
    assert plan.startswith(f"Plan({planned.design.channels} channels, ") and f"{planned.design.relus:,} ReLUs" in plan
    assert plans == f"PlanList({len(planned.plans)} plans, chosen: {plan})"
    assert data == "Data('digits': 1,438 training and 359 test images of 1x8x8, 10 classes)"
    (name, *_) = model_names()
    network, compiled = sphynx.load_network(name), sphynx.Compiled.load(name)
    shown = f"{name!r}: {network.design.image}, "
    assert repr(network).startswith(f"TrainedNetwork({shown}") and "classes" in repr(network)
    assert repr(compiled).startswith(f"Compiled({shown}") and f"{compiled.relus:,} ReLUs" in repr(compiled)
    assert all("\n" not in repr(made) and len(repr(made)) < 150 for made in (planned, network, compiled))


def test_a_design_of_another_kind_is_named(tmp_path: Path) -> None:
    from sphynx.space.reference import ResNet18Design

    teacher = ResNet18Design(4, sphynx.Shape(3, 32, 32), 10, "small")
    teacher.save(tmp_path / "design.json")
    assert teacher.relus == observe(sphynx.build_network(teacher), teacher.image).relus
    with pytest.raises(sphynx.InputError, match="sphynx-resnet18/1"):
        sphynx.Design.load(tmp_path)


def test_a_latency_is_planned_for(monkeypatch: pytest.MonkeyPatch) -> None:
    from sphynx.api import rates
    from sphynx.program.cost.rates import REFERENCE

    monkeypatch.setattr(rates, "machine_rates", lambda: REFERENCE)
    found = sphynx.plan(latency_budget="5ms", link="loopback", backend="gc", image=(1, 8, 8), classes=10)
    assert found.estimate.total.online_seconds <= 0.005
    assert found.design == found.plans.chosen.design


def test_load_and_evaluate(run_folder: Path) -> None:
    network = sphynx.load_network(run_folder)
    data = sphynx.open_data("digits")
    assert (data.image, data.classes) == ((1, 8, 8), 10)
    assert network.class_names == tuple("0123456789") and network.design.relus == 128
    by_itself = sphynx.evaluate_network(network, data, device="cpu")
    assert by_itself == sphynx.evaluate_network(str(run_folder), device="cpu") and by_itself.images == 359
    assert sphynx.evaluate_network(network, "digits", split="train").images == 1438


@pytest.mark.parametrize("name", model_names())
def test_models_load_by_name(name: str) -> None:
    network = sphynx.load_network(name)
    card = load_card(name)
    assert (network.name, network.design.relus) == (name, card["relus"])
    assert len(network.class_names) == card["data"]["classes"] and network.source is not None


def test_compiled_networks_are_saved_checked_and_asked(
    compiled: sphynx.Compiled, run_folder: Path, tmp_path: Path
) -> None:
    assert (compiled.relus, compiled.image, compiled.class_names) == (128, (1, 8, 8), tuple("0123456789"))
    again = sphynx.Compiled.load(compiled.save(tmp_path / "compiled"))
    assert again.program == compiled.program and again.source == compiled.source
    checked = again.check(images=50, network=run_folder)
    assert checked.images == 50 and checked.float_network is not None
    assert checked.accuracy == compiled.check("digits", images=50).accuracy
    images = again.images(images=2).images
    in_the_clear = again.infer(images)
    for backend in ("gmw", "gc"):
        answers = again.infer_privately(images, backend=backend)
        assert [answer.backend for answer in answers] == [backend] * 2
        for answer, logits in zip(answers, in_the_clear, strict=True):
            assert np.array_equal(answer.logits, logits)  # the same integers, scaled by a power of two
            assert answer.class_names == compiled.class_names
            by_class = dict(zip(answer.class_names, np.exp(logits - np.logaddexp.reduce(logits)), strict=True))
            assert [by_class[label] for label in answer.labels] == pytest.approx(answer.probabilities)
            assert answer.label == str(int(logits.argmax())) and answer.online_bytes > 0 and answer.offline_bytes > 0


@pytest.mark.parametrize(
    ("image", "what", "remedy"),
    [
        ((3, 32), r"`image`: \(3, 32\) is not channels, height and width", "(3, 32, 32)"),
        (32, "`image`: 32 is not", "(3, 32, 32)"),
        ((32, 32, 3), "an image of 32 channels, 32 high and 3 wide", "(3, 32, 32)"),
        ((48, 40, 1), "an image of 48 channels", "(1, 48, 40)"),
    ],
)
def test_an_image_shape_is_channels_height_width(image: Any, what: str, remedy: str) -> None:
    for refused_by in (
        lambda: sphynx.plan(6144, image=image, classes=4),
        lambda: sphynx.plan(6144, family="stream", image=image, classes=4),
    ):
        with pytest.raises(sphynx.InputError, match=what) as refused:
            refused_by()
        assert remedy in refused.value.remedy


def test_images_are_a_batch_of_an_array_or_a_tensor(compiled: sphynx.Compiled) -> None:
    images = sphynx.open_data("digits").test.images[:2]
    assert np.array_equal(compiled.infer(images), compiled.infer(images.numpy()))
    assert [answer.label for answer in compiled.infer_privately(images)] == [
        str(logits.argmax()) for logits in compiled.infer(images)
    ]
    for ask in (compiled.infer, compiled.infer_privately):
        with pytest.raises(sphynx.InputError, match=r"uint8 of shape \[1, 8, 8\]") as refused:
            ask(images[0].numpy())
        assert "[n, 1, 8, 8]. The axis n is missing: images[None] adds it." in refused.value.remedy
        with pytest.raises(sphynx.InputError, match=r"float32 of shape \[2, 1, 8, 8\]"):
            ask((images / 255).numpy())


def test_classes_in_another_order_are_counted_right_and_others_refused(
    run_folder: Path, compiled: sphynx.Compiled
) -> None:
    data, network = sphynx.open_data("digits"), sphynx.load_network(run_folder)
    names = data.train.class_names
    turned = replace(data, test=replace(data.test, labels=9 - data.test.labels, class_names=names[::-1]))
    assert sphynx.evaluate_network(network, turned).accuracy == sphynx.evaluate_network(network, data).accuracy
    assert compiled.check(turned).accuracy == compiled.check(data).accuracy
    words = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
    other = replace(data.test, class_names=(*words[:8], "eleven", "nine"))
    named = replace(network, class_names=words)
    with pytest.raises(sphynx.InputError, match="class 8 is 'eleven' here and 'eight' in the network"):
        sphynx.evaluate_network(named, replace(data, test=other))
    [logits] = compiled.program.outputs
    program = replace(compiled.program, outputs=(replace(logits, class_names=words),))
    with pytest.raises(sphynx.InputError, match="which does not know 'eleven'"):
        replace(compiled, program=program).check(other)
    with pytest.raises(sphynx.InputError, match="which does not know 'eleven'"):
        sphynx.compile_network(named, calibrate=replace(data, train=other))


def test_a_torch_module_of_ours_is_compiled_with_its_data(run_folder: Path, compiled: sphynx.Compiled) -> None:
    module = sphynx.load_network(run_folder).module
    made = sphynx.compile_network(module, calibrate="digits")
    assert made.program.content_hash == compiled.program.content_hash
    with pytest.raises(sphynx.InputError, match="does not name its training data") as refused:
        sphynx.compile_network(module)
    assert refused.value.remedy == "Give `calibrate=DATA`."
    with pytest.raises(sphynx.InputError, match=r"torch\.export fails on it"):
        sphynx.compile_network(torch.nn.Linear(2, 2), calibrate="digits")
    with pytest.raises(sphynx.InputError, match="has its own"):
        sphynx.compile_network(run_folder, mean=0.5)


def test_an_estimate_of_a_link_that_is_written_out(compiled: sphynx.Compiled, monkeypatch: pytest.MonkeyPatch) -> None:
    from sphynx.api import rates
    from sphynx.program.cost.rates import REFERENCE

    monkeypatch.setattr(rates, "machine_rates", lambda: REFERENCE)
    near, far = (compiled.estimate(link, backend="gc").total for link in ("loopback", "40ms,100Mbit"))
    assert near.online_seconds < far.online_seconds and near.online_bytes == far.online_bytes
    with pytest.raises(sphynx.InputError, match="-1 is below zero") as refused:
        compiled.estimate(weight_memory_bytes=-1)
    assert refused.value.where == "`weight_memory_bytes`"


def test_wrong_images_are_refused_before_anything_runs(compiled: sphynx.Compiled) -> None:
    with pytest.raises(sphynx.InputError, match="float64") as refused:
        compiled.infer_privately(np.zeros((1, 1, 8, 8)))
    assert "uint8 images [n, 1, 8, 8]" in refused.value.remedy
