"""Judgements of logits that are close, far off, or hardly vary; and the file of the float network's answers."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from sphynx.compiler.frontend.readable import torch_judge
from sphynx.errors import InputError
from sphynx.program.ir import Graph, Linear, Term
from sphynx.program.judgement import ORIGINAL, Original, hash_of, judge, load_original, save_original
from sphynx.program.outputs import Output
from sphynx.space.tally import Shape

random = np.random.default_rng(0)
IMAGES = random.integers(0, 256, (50, 1, 4, 4), np.uint8)
LABELS = random.integers(0, 3, 50)


def original(answers: np.ndarray) -> Original:
    return Original(answers, LABELS, hash_of(IMAGES), "torch")


def test_error_is_relative_to_the_spread_from_image_to_image() -> None:
    wanted = random.normal(size=(50, 3)) + np.array([100, 0, -100])
    judged = judge(original(wanted), wanted + 0.05)
    assert 0.04 < judged.error < 0.06 and judged.fault is None and judged.same_class == 1
    assert abs(judged.largest_difference - 0.05) < 1e-9
    assert judged.accuracy == judged.float_accuracy == (LABELS == 0).mean()
    far = judge(original(wanted), wanted + 0.5)
    assert far.is_far_off and far.fault is not None and "`weight_bits`" in far.fault[1]
    nothing = judge(original(wanted), wanted * np.nan)
    assert nothing.is_far_off and nothing.fault is not None


def test_a_network_that_was_read_wrongly_is_told_from_rounding() -> None:
    wanted = random.normal(size=(50, 3))
    rounded = judge(original(wanted), wanted + 0.3, read=wanted + 1e-6)
    assert not rounded.is_misread and rounded.fault is not None and "`weight_bits`" in rounded.fault[1]
    misread = judge(original(wanted), wanted + 0.03, read=wanted + 0.03)
    assert not misread.is_far_off and misread.is_misread
    assert misread.fault is not None and "report it" in misread.fault[1]
    steady = 1e-5 * wanted + 100  # what single precision leaves of such logits is as large as their spread
    assert not judge(original(steady), steady, read=steady + 1e-5).is_misread


def test_logits_that_hardly_vary_are_named() -> None:
    wanted = 1e-3 * random.normal(size=(50, 3)) + np.array([1, 2, 3])
    judged = judge(original(wanted), wanted + 0.01)
    assert judged.hardly_varies and judged.same_class == 1
    assert judged.fault is not None and "hardly vary" in judged.fault[0] and "trained weights" in judged.fault[1]
    assert judge(original(wanted), wanted).hardly_varies and judge(original(wanted), wanted).fault is None
    constant = np.ones((50, 3))
    assert judge(original(constant), constant).fault is None
    assert judge(original(constant), constant + 1).fault is not None


def test_probabilities_that_are_as_good_as_none_hardly_vary() -> None:
    """Text is looked for where there is none: what is left of a sigmoid is how single precision rounds it."""
    steps = (Linear("map", (Term("pixels", 1, 1),), Shape(3, 1, 1)),)
    layout = Graph(Shape(1, 1, 1), steps, outputs=(Output("text", "map", final="sigmoid"),))
    wanted = 1e-9 * random.uniform(size=(50, 3))
    judged = judge(original(wanted), 1.5 * wanted, 1.2 * wanted, layout)
    assert judged.hardly_varies and judged.read_error == 0 and judged.fault is not None
    assert "hardly vary" in judged.fault[0] and "trained weights" in judged.fault[1]


def test_a_network_that_only_guesses_is_doubted() -> None:
    """Program and float network agree on it all the same."""
    right = np.eye(3)[LABELS]
    assert judge(original(right), right).doubt is None
    guessed = judge(original(np.roll(right, 1, axis=0)), np.roll(right, 1, axis=0))
    assert guessed.fault is None and guessed.same_class == 1 and guessed.is_guessing
    assert guessed.doubt is not None and "`mean` and `std`" in guessed.doubt and "33.3 %" in guessed.doubt
    assert judge(original(right[:, :1]), right[:, :1]).doubt is None  # one output leaves nothing to guess


@pytest.mark.parametrize("final", ["", "softmax", "log_softmax", "sigmoid"])
@pytest.mark.parametrize(("dims", "axis"), [((6,), 0), ((2, 3), 0), ((2, 3), 1), ((1, 2, 3), 2)])
def test_ours_are_taken_to_where_the_float_networks_end(final: str, dims: tuple[int, ...], axis: int) -> None:
    logits = torch.randn(50, *dims, dtype=torch.float64)
    ends = {
        "softmax": nn.Softmax(axis + 1),
        "log_softmax": nn.LogSoftmax(axis + 1),
        "sigmoid": nn.Sigmoid(),
        "": nn.Identity(),
    }
    output = Output("x", "x", dims, final, axis)  # type: ignore[arg-type]
    wanted = ends[final](logits).numpy()
    assert np.abs(output.finished(logits.numpy()) - wanted).max() < 1e-12


def test_a_module_answers_as_in_evaluation() -> None:
    module = nn.Sequential(nn.Flatten(), nn.Dropout(), nn.Linear(16, 3))
    answers = torch_judge(module).answer(IMAGES, (0.5,), (0.25,))
    assert module.training
    with torch.no_grad():
        expected = module.eval()(torch.from_numpy((IMAGES / 255 - 0.5) / 0.25).float()).numpy()
    assert np.abs(answers - expected).max() < 1e-5


def test_the_file(tmp_path: Path) -> None:
    assert load_original(tmp_path) is None
    save_original(tmp_path, original(random.normal(size=(50, 3))))
    found = load_original(tmp_path)
    assert found is not None and found.by == "torch" and found.is_of(IMAGES) and not found.is_of(IMAGES[1:])
    assert (tmp_path / ORIGINAL).stat().st_mode & 0o077 == 0
    whole = (tmp_path / ORIGINAL).read_bytes()
    for damaged in (b"", whole[:20], whole[: len(whole) // 2]):
        (tmp_path / ORIGINAL).write_bytes(damaged)
        with pytest.raises(InputError, match=r"original.safetensors: it cannot be read"):
            load_original(tmp_path)
    save_original(tmp_path, None)
    assert load_original(tmp_path) is None
