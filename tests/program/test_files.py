"""Programs and weights as files: the round trip, and everything that must be refused."""

import json
import os
import stat
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from sphynx.errors import InputError
from sphynx.program.folder import WEIGHTS, load_corrections, load_program, load_weights, save_program, save_weights
from sphynx.program.ir import MAX_SCALE, Input, Program
from sphynx.program.parse import program_from_json
from sphynx.space.artifact import PROGRAM
from sphynx.zoo.shipped import model_names, program_path
from tests.program.foreign_kinds import FOREIGN_KINDS, change_kind
from tests.program.programs import gated_program, public_program, random_weights, several_program, small_program


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    program = small_program()
    save_program(tmp_path, program)
    save_weights(tmp_path, program, random_weights(program))
    return tmp_path


def test_round_trip(folder: Path) -> None:
    program = load_program(folder)
    assert program == small_program() and program.content_hash == small_program().content_hash
    weights = load_weights(folder, program)
    assert all((weights[name] == array).all() for name, array in random_weights(program).items())
    assert load_program(folder / PROGRAM) == program


def test_what_a_client_feeds_and_gets_is_kept(tmp_path: Path) -> None:
    program = several_program()
    save_program(tmp_path, program)
    assert load_program(tmp_path) == program
    for change in (
        replace(program, made_from="onnx other.onnx"),
        replace(program, input=replace(program.input, high=(1.0, 9.0))),
        replace(program, outputs=program.outputs[::-1]),
        replace(program, outputs=program.outputs[:1]),
    ):
        assert change.content_hash != program.content_hash


def test_a_part_of_the_picture_is_kept(tmp_path: Path) -> None:
    program = replace(small_program(), input=Input(picture_part=7 / 8))
    save_program(tmp_path, program)
    assert load_program(tmp_path) == program and program.content_hash != small_program().content_hash


def test_shipped_programs_are_of_this_format() -> None:
    """Corrections and bundles are bound to their hashes."""
    for name in model_names():
        shipped = load_program(program_path(name))  # holds it against the hash that the file states
        assert shipped.input == Input() and load_corrections(program_path(name), shipped)
        assert shipped.made_from == f"model {name}" and len(shipped.outputs) == 1


def test_an_output_without_a_layout_is_a_vector_or_a_map() -> None:
    program = several_program()
    assert [output.dims for output in program.outputs] == [(3, 3, 5), (3, 2), (15, 3), (6,)]
    assert program.output_names == ("first", "scores", "boxes") and program.output_size == 45 + 6 + 45 + 6
    assert program.scales == {"map": 0, "scores": 3, "boxes": 5, "again": 3} and program.classes is None


def test_the_weights_are_for_their_owner_only(folder: Path) -> None:
    assert stat.S_IMODE((folder / WEIGHTS).stat().st_mode) == 0o600
    public = (folder / PROGRAM).read_text()
    assert "bias" not in public  # nothing but shapes, scales and ranges


def test_weights_of_another_user_are_not_called_damaged(folder: Path) -> None:
    program = load_program(folder)
    with tempfile.TemporaryDirectory() as shared:  # not below a folder that root alone may enter
        Path(shared).chmod(0o755)
        file = Path(shared) / WEIGHTS
        file.write_bytes((folder / WEIGHTS).read_bytes())
        file.chmod(0)
        user = os.geteuid()
        if user == 0:
            os.seteuid(65534)  # root may read everything
        try:
            with pytest.raises(InputError, match="this user may not read it") as refused:
                load_weights(file, program)
        finally:
            os.seteuid(user)
    assert "chown" in refused.value.remedy


def test_weights_of_another_program_are_refused(folder: Path) -> None:
    with pytest.raises(InputError, match="another program"):
        load_weights(folder, small_program(ring_bits=37))


def test_a_truncated_file_is_refused(folder: Path) -> None:
    for name, load in (
        (WEIGHTS, lambda: load_weights(folder, small_program())),
        (PROGRAM, lambda: load_program(folder)),
    ):
        content = (folder / name).read_bytes()
        for kept in (0, 7, len(content) // 2, len(content) - 2):
            (folder / name).write_bytes(content[:kept])
            with pytest.raises(InputError, match=name):
                load()


def test_a_damaged_weight_is_refused(folder: Path) -> None:
    content = bytearray((folder / WEIGHTS).read_bytes())
    content[-3] ^= 1
    (folder / WEIGHTS).write_bytes(content)
    with pytest.raises(InputError, match="damaged"):
        load_weights(folder, small_program())


def test_weights_of_another_shape_are_refused(folder: Path) -> None:
    program = small_program()
    weights = random_weights(program) | {"link/0": np.zeros((1, 1, 1, 1), np.int8)}
    save_file(weights, folder / WEIGHTS, {"program": program.content_hash})
    with pytest.raises(InputError, match="link/0"):
        load_weights(folder, program)


def test_a_changed_program_is_refused(folder: Path) -> None:
    text = (folder / PROGRAM).read_text()
    (folder / PROGRAM).write_text(text.replace('"truncate": 3', '"truncate": 2'))
    with pytest.raises(InputError, match="does not match its hash"):
        load_program(folder)


def test_a_newer_version_says_so() -> None:
    with pytest.raises(InputError, match="version 7") as refusal:
        program_from_json({**small_program().to_json(), "format": "sphynx-program/7"})
    assert "newer sphynx" in refusal.value.remedy


def test_comparisons_are_counted_apart_from_relus() -> None:
    program = public_program()
    assert (program.relu_count, program.comparison_count) == (60, 30)
    assert small_program().comparison_count == 0


def changed(change: Callable[[dict[str, Any]], None], program: Program | None = None) -> Any:
    data = json.loads(json.dumps((program or small_program()).to_json()))
    change(data)
    return data


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.update(format="sphynx-program/" + "9" * 5000),
        lambda d: d.update(image=[2, 5]),
        lambda d: d.update(image=[2, 5, 10**9]),
        lambda d: d.update(image=[2, 5, -5]),
        lambda d: d.update(ring_bits=65),
        lambda d: d.update(ring_bits="36"),
        lambda d: d.update(ring_bits=30),
        lambda d: d.update(steps=[]),
        lambda d: d.update(steps=None),
        lambda d: d.update(steps=[[]]),
        lambda d: d.update(extra=1),
        lambda d: d.update(class_names=["a"]),
        lambda d: d.update(format="sphynx-program/2"),
        lambda d: d.update(format=3),
        lambda d: d.update(made_from=3),
        lambda d: d.update(made_from="\x1b[2J"),
        lambda d: d.pop("made_from"),
        lambda d: d.pop("input"),
        lambda d: d.pop("outputs"),
        lambda d: d.update(input=[]),
        lambda d: d.update(input={}),
        lambda d: d["input"].pop("picture_part"),
        lambda d: d["input"].update(extra=1),
        lambda d: d["input"].update(kind="text"),
        lambda d: d["input"].update(kind=["picture"]),
        lambda d: d["input"].update(bits=0),
        lambda d: d["input"].update(bits=9),
        lambda d: d["input"].update(low=[0.5]),
        lambda d: d["input"].update(high=[255.0]),
        lambda d: d["input"].update(dims=[50]),
        lambda d: d["input"].update(name="\x1b[2J"),
        lambda d: d.update(outputs=[]),
        lambda d: d.update(outputs={}),
        lambda d: d.update(outputs=[3]),
        lambda d: d.update(outputs=d["outputs"] * 65),
        lambda d: d.update(outputs=d["outputs"] * 2),
        lambda d: d["outputs"][0].pop("axis"),
        lambda d: d["outputs"][0].update(extra=1),
        lambda d: d["outputs"][0].update(name=""),
        lambda d: d["outputs"][0].update(name="\x1b[2J"),
        lambda d: d["outputs"][0].update(source="pixels"),
        lambda d: d["outputs"][0].update(source="relu"),
        lambda d: d["outputs"][0].update(source="pool"),
        lambda d: d["outputs"][0].update(source="link", dims=[2, 3, 2], class_names=[]),  # which has no range
        lambda d: d["outputs"][0].update(source="nothing"),
        lambda d: d["outputs"][0].update(dims=[5]),
        lambda d: d["outputs"][0].update(dims=[-2, -2]),
        lambda d: d["outputs"][0].update(dims=[4] + [1] * 8),
        lambda d: d["outputs"][0].update(dims=[4, 10**400, 0]),
        lambda d: d["outputs"][0].update(final="relu"),
        lambda d: d["outputs"][0].update(axis=1),
        lambda d: d["outputs"][0].update(axis=-1),
        lambda d: d["outputs"][0].update(class_names=["a"]),
        lambda d: d["outputs"][0].update(class_names=["a", "b", "c", "\x1b[2J"]),
        lambda d: d["outputs"][0].update(reveals="weights"),
        lambda d: d["outputs"][0].update(reveals="label"),  # without a margin
        lambda d: d["outputs"][0].update(reveals="label", margin=-1),
        lambda d: d["outputs"][0].update(reveals="label", margin=1 << 36),
        lambda d: d["outputs"][0].update(reveals="label", margin=0, class_names=[]),
        lambda d: d["outputs"][0].update(margin=1),
        lambda d: d.pop("name"),
        lambda d: d["input"].update(picture_part=0),
        lambda d: d["input"].update(picture_part=-0.875),
        lambda d: d["input"].update(picture_part=1e-9),
        lambda d: d["input"].update(picture_part=1.01),
        lambda d: d["input"].update(picture_part=10**400),
        lambda d: d["input"].update(picture_part=float("nan")),
        lambda d: d["input"].update(picture_part=float("inf")),
        lambda d: d["input"].update(picture_part=True),
        lambda d: d["input"].update(picture_part=None),
        lambda d: d["input"].update(picture_part="0.875"),
        lambda d: d["steps"].pop(0),
        lambda d: d["steps"].pop(),
        lambda d: d["steps"][0].update(kind="conv"),
        lambda d: d["steps"][0].update(terms=[]),
        lambda d: d["steps"][0].update(terms=[1]),
        lambda d: d["steps"][0].update(terms="no"),
        lambda d: d["steps"][0].update(shape=[1 << 20, 1 << 20, 1 << 20]),
        lambda d: d["steps"][0].update(name="pixels"),
        lambda d: d["steps"][0].update(range_bits=0),
        lambda d: d["steps"][0]["terms"][0].update(stride=0),
        lambda d: d["steps"][0]["terms"][0].update(kernel_height=1 << 40),
        lambda d: d["steps"][0]["terms"][0].update(shift=1000),
        lambda d: d["steps"][0]["terms"][0].update(shift=True),
        lambda d: d["steps"][0]["terms"][0].update(weight_scale=10**6),
        lambda d: d["steps"][0]["terms"][0].update(weight_scale=-(10**6)),
        lambda d: d["steps"][0].update(scale=10**30),
        lambda d: d["steps"][-1].update(scale=10**30),
        lambda d: d["steps"][-1].update(scale=-(10**30)),
        lambda d: d["steps"][-1].update(scale=MAX_SCALE + 1),
        lambda d: d["steps"][-1].update(scale=-MAX_SCALE - 1),
        lambda d: d["steps"][-1].update(scale=1.5),
        lambda d: d["steps"][1].update(truncate=-1),
        lambda d: d["steps"][1].update(truncate=20),
        lambda d: d["steps"][2].update(row_windows=[[0, 9]] * 5),
        lambda d: d["steps"][2].update(row_windows=[[0]] * 5),
        lambda d: d["steps"][2].update(row_windows=3),
        lambda d: d["steps"][2].update(row_factors=[1]),
        lambda d: d["steps"][5].update(truncate_after=-1),
    ],
)
def test_hostile_programs_are_refused(change: Callable[[dict[str, Any]], None]) -> None:
    with pytest.raises(InputError):
        program_from_json(changed(change))
    assert program_from_json(changed(lambda _: None)) == small_program()


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d["steps"][1].update(summands=[]),
        lambda d: d["steps"][1].update(summands=[3]),
        lambda d: d["steps"][1].update(summands="no"),
        lambda d: d["steps"][1].pop("summands"),
        lambda d: d["steps"][1].update(shape=[3, 5]),
        lambda d: d["steps"][1].update(shape=[1 << 20, 1 << 20, 1 << 20]),
        lambda d: d["steps"][1].update(shape=[3, 5, 3]),
        lambda d: d["steps"][1].update(range_bits=0),
        lambda d: d["steps"][1].update(range_bits=37),
        lambda d: d["steps"][1].update(scale=10**30),
        lambda d: d["steps"][1]["summands"][0].update(source="logits"),
        lambda d: d["steps"][1]["summands"][0].update(source="difference"),
        lambda d: d["steps"][1]["summands"][0].update(columns=[0, 5]),
        lambda d: d["steps"][1]["summands"][0].update(columns=[0, -2]),
        lambda d: d["steps"][1]["summands"][0].update(columns=[0, 10**30]),
        lambda d: d["steps"][1]["summands"][0].update(columns=[0, 1.5]),
        lambda d: d["steps"][1]["summands"][0].update(columns=[0, True]),
        lambda d: d["steps"][1]["summands"][0].update(columns=[0, None]),
        lambda d: d["steps"][1]["summands"][0].update(columns=[0]),
        lambda d: d["steps"][1]["summands"][0].update(columns=[]),
        lambda d: d["steps"][1]["summands"][0].update(columns=3),
        lambda d: d["steps"][1]["summands"][0].update(rows=[0] * 6),
        lambda d: d["steps"][1]["summands"][0].update(channels=[0, 1, 3]),
        lambda d: d["steps"][1]["summands"][0].update(shift=64),
        lambda d: d["steps"][1]["summands"][0].update(shift=-1),
        lambda d: d["steps"][1]["summands"][0].update(negative=2),
        lambda d: d["steps"][1]["summands"][0].update(extra=1),
        lambda d: d["steps"][2].update(comparison=1),
        lambda d: d["steps"][3].update(constants=[4, 4]),
        lambda d: d["steps"][3].update(constants=[4, 4, 1 << 63]),
        lambda d: d["steps"][3].update(constants=[4, 4, 0.5]),
        lambda d: d["steps"][3].update(constants=4),
        lambda d: d["steps"][3].update(factors=[3]),
        lambda d: d["steps"][3].update(factors=[3, (1 << 16) + 1]),
        lambda d: d["steps"][3].update(factors=[3, 0.5]),
        lambda d: d["steps"][5].update(truncate=0),
        lambda d: d["steps"][5].update(truncate=-3),
        lambda d: d["steps"][5].update(truncate=20),
        lambda d: d["steps"][5].update(source="relu"),
        lambda d: d["steps"][5].update(source="first"),
        lambda d: d["steps"][3].update(range_bits=36),  # a signed truncation needs a bit beyond
        lambda d: d["steps"].pop(),
        lambda d: d["steps"][6]["terms"][0].update(groups=2),
        lambda d: d["steps"][6]["terms"][0].update(groups=0),
        lambda d: d["steps"][6]["terms"][0].update(groups=-3),
        lambda d: d["steps"][6]["terms"][0].update(groups=1.0),
        lambda d: d.update(final="argmax"),
        lambda d: d.update(final=1),
    ],
)
def test_hostile_programs_of_format_2_are_refused(change: Callable[[dict[str, Any]], None]) -> None:
    with pytest.raises(InputError):
        program_from_json(changed(change, public_program()))
    assert program_from_json(changed(lambda _: None, public_program())) == public_program()


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d["steps"][5].update(gate="map"),
        lambda d: d["steps"][5].update(gate="logits"),
        lambda d: d["steps"][5].update(gate=3),
        lambda d: d["steps"][5].pop("gate"),
        lambda d: d["steps"][5].update(source="sums", gate="pixels"),
        lambda d: d["steps"][7].update(source="product"),
        lambda d: d.update(format="sphynx-program/1"),
        lambda d: d["steps"][5].update(kind="curve", function="sigmoid"),
    ],
)
def test_hostile_gates_are_refused(change: Callable[[dict[str, Any]], None]) -> None:
    with pytest.raises(InputError):
        program_from_json(changed(change, gated_program()))
    assert program_from_json(changed(lambda _: None, gated_program())) == gated_program()


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d["steps"][1].update(indices=[]),
        lambda d: d["steps"][1].update(indices=[0] * 5),
        lambda d: d["steps"][1].update(indices=[0] * 7),
        lambda d: d["steps"][1].update(indices=[0, 1, 2, 3, 4, 45]),
        lambda d: d["steps"][1].update(indices=[0, 1, 2, 3, 4, -2]),
        lambda d: d["steps"][1].update(indices=[0, 1, 2, 3, 4, 10**30]),
        lambda d: d["steps"][1].update(indices=[0, 1, 2, 3, 4, 1.5]),
        lambda d: d["steps"][1].update(indices=[0, 1, 2, 3, 4, True]),
        lambda d: d["steps"][1].update(indices=[0, 1, 2, 3, 4, None]),
        lambda d: d["steps"][1].update(indices="012345"),
        lambda d: d["steps"][1].update(shape=[6, 1]),
        lambda d: d["steps"][1].update(shape=[0, 1, 1]),
        lambda d: d["steps"][1].update(shape=[1 << 20, 1 << 20, 1 << 20]),
        lambda d: d["steps"][1].update(source="scores"),
        lambda d: d["steps"][1].update(extra=1),
        lambda d: d["steps"][3].update(source="taken"),  # a gather has no range
        lambda d: d["input"].update(bits=17),
        lambda d: d["input"].update(bits=12.5),
        lambda d: d["input"].update(low=[]),
        lambda d: d["input"].update(low=[0, 1, 2]),
        lambda d: d["input"].update(low=[1.0, 0.0]),
        lambda d: d["input"].update(low=[float("nan"), 0]),
        lambda d: d["input"].update(high=[float("inf"), 8]),
        lambda d: d["input"].update(high=[1e31, 8]),
        lambda d: d["input"].update(high=[10**400, 8]),
        lambda d: d["input"].update(high="1"),
        lambda d: d["input"].update(dims=[2, 16]),
        lambda d: d["input"].update(dims=[1] * 8 + [30]),
        lambda d: d["input"].update(dims=[-2, -15]),
        lambda d: d["input"].update(kind="picture"),
        lambda d: d["input"].update(picture_part=0.875),
        lambda d: d["outputs"][1].update(axis=2),
        lambda d: d["outputs"][2].update(name="map"),
        lambda d: d["outputs"][0].update(source="turned"),
        lambda d: d.update(ring_bits=11),
    ],
)
def test_hostile_gathers_inputs_and_outputs_are_refused(change: Callable[[dict[str, Any]], None]) -> None:
    with pytest.raises(InputError):
        program_from_json(changed(change, several_program()))
    assert program_from_json(changed(lambda _: None, several_program())) == several_program()


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.update(name="\x1b[2Jnetwork"),
        lambda d: d["outputs"][0].update(class_names=["cat\x1b]0;dog\x07", "b", "c", "d"]),
        lambda d: d["outputs"][0].update(name="\x1b[2Jlogits"),
        lambda d: d["input"].update(name="\x1b[2Jimage"),
        lambda d: d.update(made_from="\x1b[2Jfile"),
        lambda d: d["steps"][-1].update(name="\x1b[2Jlogits"),
    ],
)
def test_no_name_steers_a_clients_terminal(change: Callable[[dict[str, Any]], None]) -> None:
    with pytest.raises(InputError, match="a name has characters that cannot be printed") as refused:
        program_from_json(changed(change))
    assert "\x1b" not in str(refused.value)


@pytest.mark.parametrize("kind", FOREIGN_KINDS)
def test_weights_of_kinds_that_numpy_does_not_have_are_refused(kind: str, folder: Path) -> None:
    change_kind(folder / WEIGHTS, kind)
    with pytest.raises(InputError, match=f"numbers of an unexpected type \\({kind}"):
        load_weights(folder, small_program())
