"""A .pt2 file from a stranger runs nothing: pickles, expressions, names and operators that would leave a mark."""

from __future__ import annotations

import io
import json
import pickle
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.export import Dim, export, save

from sphynx.compiler.frontend.export.module import load_module, read_module
from sphynx.errors import InputError

pytestmark = pytest.mark.filterwarnings("ignore::Warning:torch")
Members = dict[str, bytes]


class Mark:
    """Unpickled, it makes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


def members_of(folder: Path) -> Members:
    """A good archive with an open batch, so that it has symbols."""
    torch.manual_seed(0)
    network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 6 * 6, 5)).eval()
    file = folder / "good.pt2"
    save(export(network, (torch.zeros(3, 3, 8, 8),), dynamic_shapes={"input": {0: Dim("n")}}), file)
    with zipfile.ZipFile(file) as archive:
        return {info.filename.split("/", 1)[1]: archive.read(info) for info in archive.infolist()}


def write(path: Path, members: Members, root: str = "good/", compression: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(root + name, content)
    return path


def pickled(mark: Path) -> bytes:
    buffer = io.BytesIO()
    torch.save(Mark(mark), buffer)
    return buffer.getvalue()


def edited(members: Members, name: str, edit: Callable[[Any], None]) -> Members:
    table = json.loads(members[name])
    edit(table)
    return {**members, name: json.dumps(table).encode()}


MODEL, WEIGHTS, CONSTANTS = (
    "models/model.json",
    "data/weights/model_weights_config.json",
    "data/constants/model_constants_config.json",
)


def _nodes(table: Any) -> list[Any]:
    found: list[Any] = table["graph_module"]["graph"]["nodes"]
    return found


def _call(target: str, **arguments: Any) -> dict[str, Any]:
    inputs = [{"name": name, "arg": given, "kind": 1} for name, given in arguments.items()]
    outputs = [{"as_tensor": {"name": "made"}}]
    return {"target": target, "inputs": inputs, "outputs": outputs, "metadata": {}, "name": "made"}


def in_sample_inputs(members: Members, mark: Path) -> Members:
    return {**members, "data/sample_inputs/model.pt": pickled(mark)}


def in_old_weights(members: Members, mark: Path) -> Members:
    return {**members, "data/weights/model.pt": pickled(mark)}


def in_old_constants(members: Members, mark: Path) -> Members:
    return {**members, "data/constants/model.pt": pickled(mark)}


def as_a_pickled_weight(members: Members, mark: Path) -> Members:
    found = edited(members, WEIGHTS, lambda t: t["config"]["0.weight"].update(use_pickle=True))
    return {**found, "data/weights/weight_0": pickled(mark)}


def _constant(members: Members, path: str, content: bytes) -> Members:
    meta = {"path_name": path, "is_param": False, "use_pickle": True, "tensor_meta": None}
    found = edited(members, CONSTANTS, lambda t: t["config"].update(held=meta))
    return {**found, f"data/constants/{path}": content}


def as_a_pickled_constant(members: Members, mark: Path) -> Members:
    return _constant(members, "tensor_0", pickled(mark))


def as_an_opaque_object(members: Members, mark: Path) -> Members:
    return _constant(members, "opaque_obj_0", pickle.dumps(Mark(mark)))


def in_an_expression(members: Members, mark: Path) -> Members:
    code = f"__import__('pathlib').Path({str(mark)!r}).touch()"

    def edit(table: Any) -> None:
        sizes = table["graph_module"]["graph"]["tensor_values"]["input"]["sizes"]
        sizes[0] = {"as_expr": {"expr_str": code, "hint": {"as_int": 3}}}

    return edited(members, MODEL, edit)


def in_a_guard(members: Members, mark: Path) -> Members:
    code = f"__import__('pathlib').Path({str(mark)!r}).touch() is None"
    return edited(members, MODEL, lambda t: t.update(guards_code=[code]))


def in_the_name_of_an_input(members: Members, mark: Path) -> Members:
    code = json.dumps(f"input=__import__('pathlib').Path({str(mark)!r}).touch()").encode()
    found = members[MODEL].replace(b'{"name": "input"}', b'{"name": ' + code + b"}")
    return {**members, MODEL: found.replace(b'"input": {"dtype"', code + b': {"dtype"')}


def as_a_python_function(members: Members, mark: Path) -> Members:
    call = _call("torch.os.mkdir", path={"as_string": str(mark)})
    return edited(members, MODEL, lambda t: _nodes(t).insert(0, call))


def as_an_operator_that_writes_files(members: Members, mark: Path) -> Members:
    """Its numbers are the last layer's bias."""
    given = {"filename": {"as_string": str(mark)}, "shared": {"as_bool": True}, "size": {"as_int": 5}}

    def edit(table: Any) -> None:
        _nodes(table).insert(0, _call("torch.ops.aten.from_file.default", **given))
        _nodes(table)[-1]["inputs"][2]["arg"]["as_tensor"]["name"] = "made"
        values = table["graph_module"]["graph"]["tensor_values"]
        values["made"] = values["p_3_bias"]

    return edited(members, MODEL, edit)


HOSTILE = (
    in_sample_inputs,
    in_old_weights,
    in_old_constants,
    as_a_pickled_weight,
    as_a_pickled_constant,
    as_an_opaque_object,
    in_an_expression,
    in_a_guard,
    in_the_name_of_an_input,
    as_a_python_function,
    as_an_operator_that_writes_files,
)


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Members:
    return members_of(tmp_path_factory.mktemp("archive"))


@pytest.mark.parametrize("attack", HOSTILE, ids=lambda attack: attack.__name__)
def test_nothing_runs(attack: Callable[[Members, Path], Members], good: Members, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    path = write(tmp_path / "evil.pt2", attack(good, mark))
    try:
        read_and_run(path)
    except InputError as refused:
        assert "evil.pt2" in str(refused)
    finally:
        assert not mark.exists()


def read_and_run(path: Path) -> torch.Tensor:
    module, image = load_module(path)
    read_module(module, image, where=str(path)).trace((0.0,) * 3, (1.0,) * 3)
    answer: torch.Tensor = module(torch.linspace(0, 1, image.size).reshape(1, *image))
    return answer


@pytest.mark.parametrize(
    "attack, message",
    [
        (
            in_sample_inputs,
            r"sample_inputs/model.pt is a pickle that torch's safe loader rejects .it refers to getattr",
        ),
        (as_a_pickled_weight, r"its weights hold a pickled object \(data/weights/weight_0\)"),
        (as_an_opaque_object, r"its constants hold a pickled object"),
        (as_a_python_function, r"torch.os.mkdir cannot be compiled"),
        (as_an_operator_that_writes_files, r"aten.from_file cannot be compiled"),
    ],
)
def test_what_would_run_is_refused_by_name(attack: Any, message: str, good: Members, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        load_module(write(tmp_path / "evil.pt2", attack(good, tmp_path / "mark")))


def _repeated_weight(table: Any) -> None:
    """Four bytes as a tensor of a terabyte."""
    table["config"]["0.weight"]["tensor_meta"].update(sizes=[{"as_int": 1 << 40}], strides=[{"as_int": 0}])


def _outside(table: Any) -> None:
    table["config"]["0.weight"]["tensor_meta"].update(storage_offset={"as_int": 1000})


def _large_constant(table: Any) -> None:
    made = _call("torch.ops.aten.full.default", size={"as_ints": [1 << 14, 1 << 14]}, fill_value={"as_float": 1.0})
    total = _call("torch.ops.aten.sum.default", self={"as_tensor": {"name": "made"}})
    total["outputs"] = [{"as_tensor": {"name": "total"}}]
    _nodes(table)[:0] = [made, total]
    _nodes(table)[-1]["inputs"][2]["arg"]["as_tensor"]["name"] = "total"


def _large_number(table: Any) -> None:
    """Squared again and again; the last is an argument."""
    squared: dict[str, Any] = {"as_sym_int": {"as_int": 3}}
    for number in range(40):
        call = _call("_operator.mul", a=squared, b=squared)
        call["outputs"] = [{"as_sym_int": {"as_name": f"power{number}"}}]
        _nodes(table).insert(number, call)
        squared = {"as_sym_int": {"as_name": f"power{number}"}}
    _nodes(table)[40]["inputs"][0]["arg"] = squared


@pytest.mark.parametrize(
    "name, edit, message",
    [
        (WEIGHTS, _repeated_weight, "0.weight is larger than its numbers"),
        (WEIGHTS, _outside, "it is not a valid .pt2 file .*out of bounds"),
        (MODEL, _large_constant, "full makes 268,435,456 elements"),
        (MODEL, _large_number, "mul of something other than a number below"),
    ],
)
def test_a_small_file_stays_small(name: str, edit: Any, message: str, good: Members, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        read_and_run(write(tmp_path / "large.pt2", edited(good, name, edit)))


def test_members_are_neither_compressed_nor_doubled(good: Members, tmp_path: Path) -> None:
    path = write(tmp_path / "bomb.pt2", good, compression=zipfile.ZIP_DEFLATED)
    with pytest.raises(InputError, match="compressed members"):
        load_module(path)
    write(path, {**good, "data/weights/weight_0": bytes(1 << 16)})
    content = path.read_bytes()
    directory = content.index(b"PK\1\2")
    entry = next(at for at in range(directory, len(content)) if content.startswith(b"weight_0", at)) - 46 - 18
    content = content[:entry] + content[entry:].replace(struct.pack("<I", 1 << 16), struct.pack("<I", 1 << 30))
    path.write_bytes(content)
    with pytest.raises(InputError, match="its members are larger than the file"):
        load_module(path)


def test_files_of_older_versions_of_torch_are_read(good: Members, tmp_path: Path) -> None:
    """2.8 pickled all weights into one member; 2.6 had other names, and no folder."""
    new = read_and_run(write(tmp_path / "new.pt2", good))
    config = json.loads(good[WEIGHTS])["config"]
    weights = {
        name: torch.frombuffer(bytearray(good[f"data/weights/{meta['path_name']}"]), dtype=torch.float32).reshape(
            [size["as_int"] for size in meta["tensor_meta"]["sizes"]]
        )
        for name, meta in config.items()
    }
    buffers = [io.BytesIO(), io.BytesIO()]
    for buffer, held in zip(buffers, (weights, {}), strict=True):
        torch.save(held, buffer)
    state, constants = (buffer.getvalue() for buffer in buffers)
    pickled_in_2_8 = {"data/weights/model.pt": state, "data/constants/model.pt": constants}
    kept = {name: good[name] for name in (MODEL, "data/sample_inputs/model.pt", "archive_format", "byteorder")}
    assert torch.equal(read_and_run(write(tmp_path / "old.pt2", {**kept, **pickled_in_2_8})), new)
    oldest = {
        "serialized_exported_program.json": good[MODEL],
        "serialized_state_dict.pt": state,
        "serialized_constants.pt": constants,
        "serialized_example_inputs.pt": good["data/sample_inputs/model.pt"],
        "version": b"8.2",
    }
    assert torch.equal(read_and_run(write(tmp_path / "oldest.pt2", oldest, root="")), new)
    with pytest.raises(InputError, match=r"serialized_state_dict\.pt is a pickle that torch's safe loader rejects"):
        load_module(write(tmp_path / "oldest.pt2", {**oldest, "serialized_state_dict.pt": pickled(tmp_path)}, root=""))
