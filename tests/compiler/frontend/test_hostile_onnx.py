"""A small ONNX file asks for gigabytes, or for files that are not its own: it is refused before either is touched."""

from __future__ import annotations

import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import NodeProto, TensorProto, helper, numpy_helper

from sphynx.compiler.frontend.elsewhere import read_onnx
from sphynx.compiler.frontend.onnx.file import read_network, runnable
from sphynx.errors import InputError

Constants = dict[str, Any]
MANY = 1 << 14  # of two axes: 2^28 elements, two gigabytes
PEAK_BYTES = 160 << 20


def network(
    path: Path, nodes: list[NodeProto], constants: Constants, image: tuple[int, ...] = (3, 8, 8), opset: int = 17
) -> Path:
    """The nodes make `y` of the image `x`."""
    graph = helper.make_graph(
        nodes,
        "network",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, *image])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", "classes"])],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    onnx.save(model, path)
    return path


def node(kind: str, inputs: str, output: str, **attributes: Any) -> NodeProto:
    return helper.make_node(kind, ["" if name == "-" else name for name in inputs.split()], [output], **attributes)


def of_a_constant(*made: NodeProto) -> list[NodeProto]:
    """Adds the greatest number of the constant `large` to the image's."""
    return [
        *made,
        node("ReduceMax", "large", "most", keepdims=0),
        node("Flatten", "x", "flat"),
        node("Add", "flat most", "y"),
    ]


ONE: NDArray[np.float32] = np.ones((1, 1), np.float32)
FAR: NDArray[np.int64] = np.array([MANY, MANY])
ROW: NDArray[np.float32] = np.ones((1, MANY), np.float32)

CONSTANTS: dict[str, tuple[list[NodeProto], Constants]] = {
    "tile": ([node("Tile", "one far", "large")], {"one": ONE, "far": FAR}),
    "expand": ([node("Expand", "one far", "large")], {"one": ONE, "far": FAR}),
    "constant of shape": ([node("ConstantOfShape", "far", "large")], {"far": FAR}),
    "pad": ([node("Pad", "one pads", "large")], {"one": ONE, "pads": np.array([0, 0, MANY, MANY])}),
    "range": (
        [node("Range", "first last step", "large")],
        {"first": np.float32(0), "last": np.float32(1), "step": np.float32(2.0**-28)},
    ),
    "resize": (
        [node("Resize", "map - - sizes", "large")],
        {"map": np.ones((1, 1, 1, 1), np.float32), "sizes": np.array([1, 1, MANY, MANY])},
    ),
    "random": ([node("RandomUniform", "", "large", shape=[MANY, MANY])], {}),
    "product": ([node("MatMul", "column row", "large")], {"column": ROW.T.copy(), "row": ROW}),
    "sum": ([node("Add", "column row", "large")], {"column": ROW.T.copy(), "row": ROW}),
    "gather": (
        [node("Gather", "row index", "large", axis=0)],
        {"row": ROW, "index": np.zeros(MANY, np.int64)},
    ),
    "one hot": (
        [node("OneHot", "index depth values", "large")],
        {"index": np.zeros(MANY, np.int64), "depth": np.int64(MANY), "values": np.array([0, 1], np.float32)},
    ),
    "many small ones": (
        [
            *(node("Expand", "one far", f"part{number}") for number in range(64)),
            node("Sum", " ".join(f"part{number}" for number in range(64)), "large"),
        ],
        {"one": ONE, "far": np.array([2048, 2048])},
    ),
    "doubled again and again": (
        [node("Identity", "one", "part0")]
        + [node("Concat", f"part{n} part{n}", f"part{n + 1}", axis=0) for n in range(28)]
        + [node("Identity", "part28", "large")],
        {"one": ONE},
    ),
}


@pytest.mark.parametrize("case", CONSTANTS)
def test_constants_are_refused_before_they_are_computed(case: str, tmp_path: Path) -> None:
    made, constants = CONSTANTS[case]
    path = network(tmp_path / "network.onnx", of_a_constant(*made), constants)
    with pytest.raises(InputError, match=r"network.onnx, node .*: \w+ makes a constant of"):
        traced(path)


def traced(path: Path) -> None:
    """Within the memory that a network of this size needs."""
    found = read_network(path)
    channels = found.image.channels
    tracemalloc.start()
    try:
        found.trace((0.0,) * channels, (1.0,) * channels, outline=True)
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < PEAK_BYTES


def endless(path: Path) -> Path:
    """A Loop whose body counts, 2^62 times."""
    body = helper.make_graph(
        [node("Identity", "going", "on"), node("Add", "n n", "next")],
        "body",
        [
            helper.make_tensor_value_info("count", TensorProto.INT64, []),
            helper.make_tensor_value_info("going", TensorProto.BOOL, []),
            helper.make_tensor_value_info("n", TensorProto.FLOAT, []),
        ],
        [
            helper.make_tensor_value_info("on", TensorProto.BOOL, []),
            helper.make_tensor_value_info("next", TensorProto.FLOAT, []),
        ],
    )
    loop = node("Loop", "times going first", "large", body=body)
    constants = {"times": np.int64(100_000), "going": np.bool_(True), "first": np.float32(1)}
    return network(path, of_a_constant(loop), constants)


def test_loops_over_constants_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Loop cannot be folded"):
        traced(endless(tmp_path / "network.onnx"))


MAPS: dict[str, tuple[list[NodeProto], Constants]] = {
    "gather": ([node("Gather", "x index", "large", axis=1)], {"index": np.zeros(1 << 22, np.int64)}),
    "concat": (
        [node("Identity", "x", "part0")]
        + [node("Concat", f"part{n} part{n}", f"part{n + 1}", axis=1) for n in range(24)]
        + [node("Identity", "part24", "large")],
        {},
    ),
    "sum": (
        [
            node("Tile", "x high", "rows"),
            node("Slice", "rows first last columns", "column"),
            node("Tile", "x wide", "columns_"),
            node("Slice", "columns_ first last rows_", "row"),
            node("Add", "column row", "large"),
        ],
        {
            "high": np.array([1, 1, 2048, 1]),
            "wide": np.array([1, 1, 1, 2048]),
            "first": np.array([0]),
            "last": np.array([1]),
            "columns": np.array([3]),
            "rows_": np.array([2]),
        },
    ),
    "padded convolution": (
        [node("Conv", "x kernel", "large", pads=[1 << 40] * 4)],
        {"kernel": np.ones((1, 3, 2, 2), np.float32)},
    ),
    "dilated convolution": (
        [node("Conv", "x kernel", "large", pads=[60_000] * 4, dilations=[40_000, 30_000], strides=[80_000, 80_000])],
        {"kernel": np.ones((64, 3, 2, 2), np.float32)},
    ),
    "transposed convolution": (
        [node("ConvTranspose", "x kernel", "large", strides=[60_000, 60_000])],
        {"kernel": np.ones((3, 1, 1, 1), np.float32)},
    ),
    "average pool": ([node("AveragePool", "x", "large", kernel_shape=[1 << 30] * 2, pads=[1 << 30] * 4)], {}),
    "max pool": ([node("MaxPool", "x", "large", kernel_shape=[50_000] * 2, pads=[49_999] * 4)], {}),
    "pad": ([node("Pad", "x pads", "large")], {"pads": np.array([0, 0, MANY, MANY, 0, 0, MANY, MANY])}),
    "resize": ([node("Resize", "x - - sizes", "large")], {"sizes": np.array([1, 3, MANY, MANY])}),
    "tile": ([node("Tile", "x far", "large")], {"far": np.array([1, 1, MANY, MANY])}),
    "dense layer of a few elements": (
        [
            node("Tile", "x far", "wide"),
            node("Relu", "wide", "positive"),
            node("Flatten", "positive", "flat"),
            node("Gather", "flat index", "few", axis=1),
            node("MatMul", "few kernel", "large"),
        ],
        {
            "far": np.array([1, 1, 256, 256]),
            "index": np.array([0, 4_000_000]),
            "kernel": np.ones((2, 100), np.float32),
        },
    ),
}


@pytest.mark.parametrize("case", MAPS)
def test_maps_are_refused_before_they_are_computed(case: str, tmp_path: Path) -> None:
    made, constants = MAPS[case]
    nodes = [*made, node("GlobalAveragePool", "large", "mean"), node("Flatten", "mean", "y")]
    if case.startswith("dense"):
        nodes = [*made, node("Identity", "large", "y")]
    with pytest.raises(InputError, match=r"network.onnx, node"):
        found = read_network(network(tmp_path / "network.onnx", nodes, constants))
        found.trace((0.0,) * 3, (1.0,) * 3, outline=not case.startswith("dense"))


def external(path: Path, location: str, count: int = 1, offset: int = 0, length: int = 64) -> Path:
    """A dense layer whose weights lie in another file, 64 bytes of it."""
    nodes = [node("Flatten", "x", "flat")]
    nodes += [node("Gemm", f"{'flat' if not n else f'y{n}'} w{n}", f"y{n + 1}", transB=1) for n in range(count)]
    nodes.append(node("Identity", f"y{count}", "y"))
    weights = {f"w{n}": np.eye(4, dtype=np.float32) for n in range(count)}
    network(path, nodes, weights, image=(1, 2, 2))
    model = onnx.load(path)
    for tensor in model.graph.initializer:
        onnx.external_data_helper.set_external_data(tensor, location, offset, length)
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
    path.write_bytes(model.SerializeToString())
    return path


def test_weights_in_a_file_beside_the_network(tmp_path: Path) -> None:
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights" / "data").write_bytes(bytes(64) + np.eye(4, dtype=np.float32).tobytes())
    found = read_network(external(tmp_path / "network.onnx", "weights/data", offset=64, length=64))
    assert (found.graph.constants["w0"] == np.eye(4)).all()


def _outside(folder: Path) -> str:
    (folder.parent / "secret").write_bytes(bytes(64))
    return "../secret"


def _absolute(folder: Path) -> str:
    (folder / "own").write_bytes(bytes(64))
    return str(folder / "own")


def _linked(folder: Path) -> str:
    _outside(folder)
    (folder / "data").symlink_to(folder.parent / "secret")
    return "data"


def _linked_folder(folder: Path) -> str:
    _outside(folder)
    (folder / "data").symlink_to(folder.parent)
    return "data/secret"


def _pipe(folder: Path) -> str:
    os.mkfifo(folder / "data")
    return "data"


@pytest.mark.parametrize(
    "location",
    [_outside, _absolute, _linked, _linked_folder, _pipe, lambda _: "*/_ORT_MEM_ADDR_/*", lambda _: "missing"],
    ids=["outside", "absolute", "link", "linked folder", "pipe", "memory", "missing"],
)
def test_no_file_outside_the_networks_folder_is_read(location: Callable[[Path], str], tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    path = external(folder / "network.onnx", location(folder))
    with pytest.raises(InputError, match=r"its weights are said to be in .*, which is not a file below its own folder"):
        read_network(path)


def test_weights_are_no_more_than_the_file_beside(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(bytes(64))
    with pytest.raises(InputError, match="weights beyond the end of data"):
        read_network(external(tmp_path / "network.onnx", "data", offset=32, length=64))
    with pytest.raises(InputError, match="more weights than its files hold"):
        read_network(external(tmp_path / "network.onnx", "data", count=40, length=64))


@pytest.mark.parametrize("needed", [False, True])
def test_the_judge_computes_nothing_that_was_not_checked(needed: bool, tmp_path: Path) -> None:
    """ONNX Runtime would run nodes that nothing reads; what is read has been walked before the judge is asked for."""
    pytest.importorskip("onnxruntime")
    made, constants = CONSTANTS["tile"]
    nodes = of_a_constant(*made) if needed else [*made, node("Flatten", "x", "y")]
    path = network(tmp_path / "network.onnx", nodes, constants, image=(1, 2, 2))
    if needed:
        with pytest.raises(InputError, match="Tile makes a constant of"):
            read_onnx(path)
        return
    judge = read_onnx(path).judge()
    assert judge is not None and judge.by == "ONNX Runtime"
    pixels = np.arange(4, dtype=np.uint8).reshape(1, 1, 2, 2)
    assert np.allclose(judge.answer(pixels, (0.0,), (1.0,)), pixels.reshape(1, 4) / 255)
    ran = onnx.load_from_string(runnable(path))
    assert [each.op_type for each in ran.graph.node] == ["Flatten"]
