"""Weights derived from a model, its program and its corrections are those that compiling made, bit for bit."""

from pathlib import Path

import numpy as np
import pytest

from sphynx.compiler.derive import derive_weights
from sphynx.compiler.precision import Precision
from sphynx.errors import InputError
from sphynx.program.cost.deployment import Deployment
from sphynx.program.cost.link import LINKS, Link
from sphynx.program.folder import CORRECTIONS, WEIGHTS, load_program
from sphynx.program.ir import Truncate
from sphynx.space.choices import ConvStack
from sphynx.space.published_cells import SPHYNX
from tests.zoo.models import compile_model, save_random_model

FAR = Link(10.0, 1e12, "far")  # a link of a chain is a round trip


@pytest.mark.parametrize(
    ("stack", "precision", "link"),
    [
        ("single", Precision(), LINKS["lan"]),
        ("single", Precision(12, 10, 11), FAR),
        ("paper", Precision(), FAR),
    ],
    ids=["single-cut", "single-fused", "paper-fused"],
)
def test_derived_weights_are_the_compiled_ones(
    stack: ConvStack, precision: Precision, link: Link, tmp_path: Path
) -> None:
    save_random_model(tmp_path, stack, cells=SPHYNX)
    made = compile_model(tmp_path, precision, Deployment(link=link))
    program = load_program(tmp_path / "program")
    has_chains = any(not step.range_bits for step in program.linears)
    is_truncated = any(isinstance(step, Truncate) for step in program.steps)
    assert (has_chains or is_truncated) == (link.name == "lan")
    assert {file.name for file in (tmp_path / "program").iterdir()} == {"program.json", CORRECTIONS}
    derived = derive_weights(tmp_path, tmp_path / "program", program)
    assert derived.keys() == made.weights.keys() == program.weight_shapes.keys()
    for name, array in made.weights.items():
        assert derived[name].dtype == array.dtype and np.array_equal(derived[name], array), name
    assert any(correction.any() for correction in made.corrections.values())


def test_weights_of_an_older_program_do_not_stay(tmp_path: Path) -> None:
    save_random_model(tmp_path)
    (tmp_path / "program").mkdir()
    (tmp_path / "program" / WEIGHTS).write_bytes(b"older")
    compile_model(tmp_path)
    assert not (tmp_path / "program" / WEIGHTS).exists()


def test_the_program_of_another_network_is_refused(tmp_path: Path) -> None:
    save_random_model(tmp_path)
    compile_model(tmp_path)
    save_random_model(tmp_path, depth=3)
    with pytest.raises(InputError, match="not compiled from the model") as refusal:
        derive_weights(tmp_path, tmp_path / "program", load_program(tmp_path / "program"))
    assert "--derivable" in refusal.value.remedy


def test_damaged_corrections_are_refused(tmp_path: Path) -> None:
    save_random_model(tmp_path)
    compile_model(tmp_path)
    file = tmp_path / "program" / CORRECTIONS
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    with pytest.raises(InputError, match="does not match its hash"):
        derive_weights(tmp_path, tmp_path / "program", load_program(tmp_path / "program"))


def test_truncated_joints_are_derived(tmp_path: Path) -> None:
    """Narrow links make the ring's width expensive; a truncation keeps it."""
    save_random_model(tmp_path, "paper")
    made = compile_model(tmp_path, Precision(12, 10, 11), Deployment("gc", Link(0.0, 1e5, "narrow")))
    program = load_program(tmp_path / "program")
    assert any(isinstance(step, Truncate) for step in program.steps)
    derived = derive_weights(tmp_path, tmp_path / "program", program)
    assert all(np.array_equal(derived[name], array) for name, array in made.weights.items())
