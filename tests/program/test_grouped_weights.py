"""Grouped convolutions: stored without the zeros between groups, and computed as the dense kernels that they are."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from sphynx.program.convolve import convolve
from sphynx.program.folder import WEIGHTS, content_hash, load_weights, save_weights, ungrouped
from sphynx.program.interpret import interpret
from sphynx.program.ir import INPUT, Linear, Program, Relu, Term
from sphynx.space.tally import Shape

DEPTHWISE = Linear("wide", (Term(INPUT, 3, 3, pad_top=1, pad_left=1, groups=3),), Shape(6, 5, 5), range_bits=24)
LOGITS = Linear("logits", (Term("relu", 5, 5),), Shape(4, 1, 1), range_bits=30)
PROGRAM = Program(Shape(3, 5, 5), (DEPTHWISE, Relu("relu", "wide", 4), LOGITS), 32, 8)


def weights() -> dict[str, np.ndarray]:
    drawn = np.random.default_rng(0)
    return {
        "wide/0": ungrouped(drawn.integers(-100, 100, (6, 1, 3, 3)).astype(np.int8), 3),
        "wide/bias": drawn.integers(-100, 100, (6, 5, 5)),
        "logits/0": drawn.integers(-100, 100, (4, 6, 5, 5)).astype(np.int8),
        "logits/bias": drawn.integers(-100, 100, (4, 1, 1)),
    }


def test_only_what_lies_inside_a_group_is_stored(tmp_path: Path) -> None:
    given = weights()
    save_weights(tmp_path, PROGRAM, given)
    assert load_file(tmp_path / WEIGHTS)["wide/0"].shape == (6, 1, 3, 3)
    loaded = load_weights(tmp_path, PROGRAM)
    assert content_hash(loaded) == content_hash(given)


def test_files_with_all_pairs_of_channels_are_read(tmp_path: Path) -> None:
    given = weights()
    metadata = {"program": PROGRAM.content_hash, "content": content_hash(given)}
    save_file(given, tmp_path / WEIGHTS, metadata)
    assert content_hash(load_weights(tmp_path, PROGRAM)) == content_hash(given)


def test_the_oracle_is_that_of_dense_kernels() -> None:
    dense = replace(DEPTHWISE, terms=(replace(DEPTHWISE.terms[0], groups=1),))
    program = Program(PROGRAM.image, (dense, *PROGRAM.steps[1:]), 32, 8)
    pixels = np.random.default_rng(1).integers(0, 256, (3, 3, 5, 5)).astype(np.uint8)
    np.testing.assert_array_equal(interpret(PROGRAM, weights(), pixels), interpret(program, weights(), pixels))


@pytest.mark.parametrize(("groups", "inputs", "outputs"), [(2, 2, 3), (80, 1, 1), (50, 1, 2), (3, 40, 1)])
def test_a_grouped_convolution_is_the_dense_one(groups: int, inputs: int, outputs: int) -> None:
    drawn = np.random.default_rng(2)
    kernel = ungrouped(drawn.integers(-9, 9, (groups * outputs, inputs, 3, 2)), groups)
    x = drawn.integers(-9, 9, (2, groups * inputs, 6, 5))
    term = Term("x", 3, 2, stride=2, pad_top=1)
    grouped = convolve(x, kernel, replace(term, groups=groups), (3, 2))
    np.testing.assert_array_equal(grouped, convolve(x, kernel, term, (3, 2)))
