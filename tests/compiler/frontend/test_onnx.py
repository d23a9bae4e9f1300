"""ONNX networks: fused they equal ONNX's own reference evaluator, as integers they choose its classes."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from sphynx.compiler.compile import compile_walk
from sphynx.compiler.frontend.onnx.file import read_network
from sphynx.compiler.frontend.operators.network import OperatorNetwork
from sphynx.errors import InputError, MissingPartError
from sphynx.program.interpret import evaluate, interpret
from sphynx.program.ir import Linear
from sphynx.space.tally import windows
from tests.compiler.frontend.onnx_models import Maker, joined, plain_cnn, residual, write
from tests.compiler.networks import MEAN, STD

Pixels = NDArray[np.uint8]


def pixels_for(network: OperatorNetwork, count: int) -> Pixels:
    return np.random.default_rng(1).integers(0, 256, (count, *network.image), np.uint8)


def statistics(network: OperatorNetwork) -> tuple[tuple[float, ...], tuple[float, ...]]:
    return MEAN[: network.image.channels], STD[: network.image.channels]


def reference(model: onnx.ModelProto, pixels: Pixels) -> NDArray[np.float64]:
    """One image at a time: some of the networks are exported for a batch of one."""
    channels = pixels.shape[1]
    mean, std = (np.array(values[:channels])[:, None, None] for values in (MEAN, STD))
    images = ((pixels / 255 - mean) / std).astype(np.float32)
    evaluator = ReferenceEvaluator(model)
    answers = [next(iter(evaluator.run(None, {"x": image[None]}))) for image in images]
    return np.stack([np.asarray(answer).reshape(-1) for answer in answers]).astype(np.float64)


def assert_equal(model: onnx.ModelProto, tmp_path: Path) -> OperatorNetwork:
    """With no cuts and with all of them; also that the outline has the very steps of the network with its weights."""
    network = read_network(write(model, tmp_path / "network.onnx"))
    pixels = pixels_for(network, 3)
    expected = reference(model, pixels)
    mean, std = statistics(network)
    joints = network.trace(mean, std, outline=True).joints
    for cuts in ((), joints):
        fused = network.trace(mean, std, cuts=cuts)
        assert fused.graph == network.trace(mean, std, cuts=cuts, outline=True).graph
        got = evaluate(fused.graph, fused.weights, pixels.astype(np.float64), lambda *_: None)
        assert np.abs(got.reshape(expected.shape) - expected).max() < 1e-5 * np.abs(expected).max()
        assert {name: array.shape for name, array in fused.weights.items()} == fused.graph.weight_shapes
    return network


@pytest.mark.parametrize("make", [plain_cnn, residual, joined])
def test_networks(make: Callable[[], onnx.ModelProto], tmp_path: Path) -> None:
    model = make()
    network = assert_equal(model, tmp_path)
    mean, std = statistics(network)
    pixels = pixels_for(network, 60)
    compiled = compile_walk(network.trace, mean, std, pixels[:40], name=network.name)
    assert compiled.program.name == "network" and compiled.logit_error < 0.02
    logits = interpret(compiled.program, compiled.weights, pixels).reshape(len(pixels), -1)
    agreement = (logits.argmax(axis=1) == reference(model, pixels).argmax(axis=1)).mean()
    assert agreement >= 0.95


def test_parts_lie_between_relus(tmp_path: Path) -> None:
    """The joints of a part and the maps that read them share their first two words: choose.py goes by them."""
    network = assert_equal(joined(), tmp_path)
    fused = network.trace(*statistics(network))
    ends = ("part.2.matmul11", "part.2.add14")
    assert fused.joints == ("part.0.conv0", "part.0.conv1", "part.0.batchnormalization3", *ends)
    assert [step.name for step in fused.graph.steps if isinstance(step, Linear)] == [
        "part.0.relu6.activation.input",
        "part.1.relu9.activation.input",
        "part.2.relu13.activation.input",
        "part.2.logits",
    ]


POOLS: dict[str, dict[str, Any]] = {
    "halving": {"kernel_shape": [2, 2], "strides": [2, 2]},
    "uneven": {"kernel_shape": [3, 2], "strides": [2, 3], "pads": [0, 1, 1, 0]},
    "pads counted": {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "count_include_pad": 1},
    "pads left out": {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]},
    "rounded up": {"kernel_shape": [2, 2], "strides": [2, 2], "ceil_mode": 1},
    "rounded up, pads counted": {  # by one: the reference evaluator begins earlier than pads say where it is by two
        "kernel_shape": [2, 3],
        "strides": [2, 2],
        "pads": [0, 1, 0, 1],
        "ceil_mode": 1,
        "count_include_pad": 1,
    },
    "same": {"kernel_shape": [3, 3], "strides": [2, 2], "auto_pad": "SAME_UPPER"},
}


@pytest.mark.parametrize("attributes", POOLS.values(), ids=POOLS)
@pytest.mark.parametrize("between", ["", "Relu", "Pad"])
def test_average_pools(attributes: dict[str, Any], between: str, tmp_path: Path) -> None:
    """Behind a convolution, a ReLU, and a ReLU and zero padding, which must count as pixels."""
    make = Maker(("n", 1, 7, 9))
    x = make.conv("x", 1, 3, pads=[1, 1, 1, 1])
    if between:
        x = make.node("Relu", x)
    if between == "Pad":
        x = make.node("Pad", x, make.constant([0, 0, 1, 0, 0, 0, 1, 1]))
    x = make.node("Relu", make.conv(make.node("AveragePool", x, **attributes), 3, 4, 1))
    assert_equal(make.model(make.node("GlobalAveragePool", x)), tmp_path)


def test_padding_and_the_pool_that_reads_it_are_one_public_map(tmp_path: Path) -> None:
    make = Maker()
    x = make.node("Pad", make.node("Relu", make.conv("x", 1, 3)), make.constant([0, 0, 1, 1, 0, 0, 1, 1]))
    x = make.node("Relu", make.conv(make.node("AveragePool", x, kernel_shape=[3, 3]), 3, 4, 1))
    network = assert_equal(make.model(make.node("GlobalAveragePool", x)), tmp_path)
    linears = network.trace(*statistics(network)).graph.linears
    assert [step.name for step in linears] == [
        "part.0.relu1.activation.input",
        "part.1.relu5.activation.input",
        "part.2.logits",
    ]


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    size=st.tuples(st.integers(6, 9), st.integers(6, 9)),
    kernels=st.lists(st.tuples(st.integers(1, 3), st.integers(1, 3)), min_size=2, max_size=2),
    strides=st.tuples(st.integers(1, 3), st.integers(1, 2)),
    pads=st.lists(st.integers(0, 2), min_size=8, max_size=8),
    dilations=st.tuples(st.integers(1, 2), st.integers(1, 2)),
    group=st.sampled_from([1, 2, 4]),
)
def test_two_convolutions_of_any_geometry(
    size: tuple[int, int],
    kernels: list[tuple[int, int]],
    strides: tuple[int, int],
    pads: list[int],
    dilations: tuple[int, int],
    group: int,
    tmp_path: Path,
) -> None:
    """No ReLU between them: borders, uneven padding, dilations and strides are fused."""
    make = Maker(("n", 2, *size))
    x = make.conv("x", 2, 4, kernels[0], strides=[strides[0]] * 2, pads=pads[:4], dilations=list(dilations))
    for axis in (0, 1):  # what the first one leaves, with its own padding, must hold the second kernel
        padded_length = size[axis] + pads[axis] + pads[axis + 2]
        left = windows(padded_length, kernels[0][axis], strides[0], 0, dilations[axis])
        assume(left + pads[axis + 4] + pads[axis + 6] >= kernels[1][axis])
    x = make.conv(x, 4, 4, kernels[1], strides=[strides[1]] * 2, pads=pads[4:], group=group)
    assert_equal(make.model(make.node("GlobalAveragePool", make.node("Relu", x))), tmp_path)


def pool(length: int = 8, **attributes: Any) -> onnx.ModelProto:
    make = Maker(("n", 1, 8, length))
    return make.model(make.node("GlobalAveragePool", make.node("AveragePool", "x", **attributes)))


def last(kind: str, *shapes: tuple[int, ...], **attributes: Any) -> onnx.ModelProto:
    """A network whose last operation reads the image and constants of these shapes."""
    make = Maker()
    return make.model(make.node(kind, "x", *(make.normal(*shape) for shape in shapes), **attributes))


def padded(mode: str, *inputs: Any) -> onnx.ModelProto:
    make = Maker()
    return make.model(make.node("Pad", "x", *(make.constant(value) for value in inputs), mode=mode))


def two_unknown() -> onnx.ModelProto:
    make = Maker()
    x = make.node("Tanh", make.node("Tanh", make.conv("x", 1, 2)))
    return make.model(make.node("Softplus", make.node("Softmax", make.node("Flatten", x))))


def unequal_join() -> onnx.ModelProto:
    make = Maker()
    return make.model(make.node("Concat", make.conv("x", 1, 2), make.conv("x", 1, 2, 1), axis=1))


def unequal(kind: str) -> onnx.ModelProto:
    make = Maker()
    return make.model(make.node(kind, make.conv("x", 1, 2), make.conv("x", 1, 2, 1)))


def branch() -> onnx.ModelProto:
    make = Maker()
    bodies = []
    for number in range(2):
        y = helper.make_tensor_value_info(f"y{number}", TensorProto.FLOAT, None)
        node = helper.make_node("Identity", ["x"], [f"y{number}"])
        bodies.append(helper.make_graph([node], f"body{number}", [], [y]))
    condition = make.node("Greater", make.node("ReduceSum", "x", keepdims=0), make.normal())
    return make.model(make.node("If", condition, then_branch=bodies[0], else_branch=bodies[1]))


def recurrent() -> onnx.ModelProto:
    make = Maker()
    x = make.node("Reshape", "x", make.constant([8, 1, 8]))
    return make.model(make.node("GRU", x, make.normal(1, 9, 8), make.normal(1, 9, 3), hidden_size=3))


def reordered(kind: str, *inputs: Any, **attributes: Any) -> onnx.ModelProto:
    make = Maker()
    return make.model(make.node(kind, "x", *(make.constant(value) for value in inputs), **attributes))


def two_feature_maps() -> onnx.ModelProto:
    make = Maker()
    return make.model(make.node("MatMul", make.node("Flatten", "x"), make.node("Flatten", "x")))


REFUSED: dict[str, tuple[onnx.ModelProto, str, str]] = {
    "unknown operators": (
        two_unknown(),
        r"network.onnx: 3 errors:\n.*Tanh cannot be compiled exactly \(2 times, first in node tanh1\): "
        r".*`approximate=True`.*\n.*Softmax cannot be compiled exactly \(node softmax4\): .*\n.*Softplus",
        "sphynx compile --operators",
    ),
    "control flow": (branch(), r"network.onnx: If cannot be compiled \(node if2\)", "must not depend on the input"),
    "recurrent": (recurrent(), r"network.onnx: GRU cannot be compiled \(node gru1\)", "use convolutions"),
    "unequal product": (unequal("Mul"), "Mul multiplies maps of 2x6x6 and 2x8x8", "the same shape"),
    "open height": (plain_cnn(("n", 1, "height", 8)), r"input x \[n, 1, height, 8\] has open sizes", "=1x224x8"),
    "batch of four": (plain_cnn((4, 1, 8, 8)), r"input x \[4, 1, 8, 8\] takes 4 images", "Export it for one, or n"),
    "huge": (plain_cnn(("n", 1, 1 << 20, 1 << 20)), "1x1048576x1048576 is not a valid image shape", "smaller images"),
    "no image": (plain_cnn(("n",)), "not an image or a signal", "Export"),
    "3-d kernel": (last("Conv", (2, 1, 3, 3, 3)), "node conv0: Conv has weights of 2x1x3x3x3", "one or two axes"),
    "channels": (last("Conv", (2, 3, 3, 3)), "Conv has weights of 2x3x3x3, not nx1xnxn", "one or two axes"),
    "groups": (last("Conv", (3, 0, 3, 3), group=2), "Conv has 2 groups", "group"),
    "large kernel": (last("Conv", (2, 1, 9, 9)), "Conv has a kernel that reaches over 9 of 8", "larger image"),
    "mean of images": (last("ReduceMean", axes=[0, 2]), r"ReduceMean is over axes \[0, 2\]", "leave axis 0 out"),
    "mean of all": (last("ReduceMean"), r"ReduceMean is over axes \[0, 1, 2, 3\]", "leave axis 0 out"),
    "no axis left": (last("ReduceMean", axes=[1, 2, 3], keepdims=0), "leaves no axis beside the batch", "keepdims = 1"),
    "many sizes": (pool(40, kernel_shape=[1, 19], pads=[0, 9, 0, 9]), "windows of too many sizes", "pad less"),
    "only padding": (pool(kernel_shape=[1, 1], pads=[1, 1, 1, 1]), "sees only padding", "Pad by less"),
    "unequal join": (unequal_join(), "Concat joins maps that do not fit", "one size"),
    "unequal sum": (unequal("Add"), "Add adds maps of 2x6x6 and 2x8x8", "the same shape"),
    "wide constant": (last("Add", (5, 1, 1)), "Add cannot combine its input 1 with a map of 1x8x8", "the same shape"),
    "wide rows": (last("MatMul", (7, 3)), "MatMul has weights of 7x3, not 8xn", "dense layers"),
    "scaled pixels": (last("Mul", (1, 8, 8)), "Mul multiplies by a constant that differs from pixel", "each channel"),
    "images mixed": (reordered("Transpose", perm=[1, 0, 2, 3]), "Transpose reorders axes", "leave axis 0"),
    "images split": (reordered("Reshape", [2, 1, 4, 8]), r"makes \[2, 1, 4, 8\] out of a map of 1x8x8", "axis 0"),
    "nothing left": (reordered("Slice", [9], [12], [2]), "Slice makes a map of 1x0x8", "map's size"),
    "outside": (reordered("Gather", [8], axis=2), "Gather takes positions that do not exist", "one axis"),
    "cubic": (
        reordered("Resize", np.zeros(0, np.float32), np.array([1, 1, 2, 2], np.float32), mode="cubic"),
        "Resize has mode cubic",
        "nearest",
    ),
    "blocks": (reordered("SpaceToDepth", blocksize=3), "SpaceToDepth has blocks of 3", "divide"),
    "rounded": (
        reordered("Cast", to=TensorProto.INT32),
        "Cast to whole numbers cannot be compiled",
        "sphynx compile --operators",
    ),
    "endless": (
        reordered("Resize", np.zeros(0, np.float32), np.array([1, 1, np.inf, 2], np.float32)),
        "Resize has scales that are not finite",
        "by constants",
    ),
    "bounds": (reordered("Clip", np.float32(2), np.float32(1)), "Clip has bounds 2 and 1", "below"),
    "two feature maps": (two_feature_maps(), "MatMul multiplies maps of 64 and 64", "sizes match"),
    "learning norm": (
        last("BatchNormalization", (1,), (1,), (1,), (1,), training_mode=1),
        "BatchNormalization has no fixed statistics",
        "eval",
    ),
    "mirrored": (padded("reflect", [0, 0, 9, 1, 0, 0, 1, 1]), "Pad pads by", "map's size"),
    "padded by ones": (
        padded("constant", [0, 0, 1, 1, 0, 0, 1, 1], np.float32(1)),
        "Pad pads with a number other than 0",
        "with zeros",
    ),
    "padded images": (padded("constant", [1, 0, 0, 0, 0, 0, 0, 0]), "Pad pads by", "rows and columns"),
}


@pytest.mark.parametrize("model, message, remedy", REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_compiled_is_refused(model: onnx.ModelProto, message: str, remedy: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message) as refused:
        read_network(write(model, tmp_path / "network.onnx")).trace((0.0,), (1.0,), outline=True)
    assert remedy in refused.value.remedy and "network.onnx" in str(refused.value)


def test_two_inputs_are_refused(tmp_path: Path) -> None:
    model = plain_cnn()
    model.graph.input.append(helper.make_tensor_value_info("z", TensorProto.FLOAT, [1]))
    with pytest.raises(InputError, match=r"2 inputs \(x \[n, 1, 8, 8\], z \[1\]\), not one image"):
        read_network(write(model, tmp_path / "network.onnx"))


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    path, whole = tmp_path / "network.onnx", plain_cnn().SerializeToString()
    for length in (0, 1, 9, len(whole) // 3, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(InputError, match="not a valid ONNX file"):
            read_network(path)
    path.write_text("not a network")
    with pytest.raises(InputError, match="not a valid ONNX file"):
        read_network(path)
    with pytest.raises(InputError, match=r"nowhere.onnx: there is no such file"):
        read_network(tmp_path / "nowhere.onnx")


def test_weights_in_a_file_of_their_own(tmp_path: Path) -> None:
    path, model = tmp_path / "network.onnx", plain_cnn()
    onnx.save(plain_cnn(), path, save_as_external_data=True, location="weights", size_threshold=0)
    apart, within = (read_network(file).trace((0.0,), (1.0,)) for file in (path, write(model, tmp_path / "whole.onnx")))
    assert apart.weights.keys() == within.weights.keys()
    assert all(np.array_equal(apart.weights[name], array) for name, array in within.weights.items())
    weights = (tmp_path / "weights").read_bytes()
    (tmp_path / "weights").write_bytes(weights[: len(weights) // 2])
    with pytest.raises(InputError, match="it has weights beyond the end of weights"):
        read_network(path)
    (tmp_path / "weights").unlink()
    with pytest.raises(InputError, match="not a file below its own folder"):
        read_network(path)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.floats(0, 0.999), byte=st.integers(0, 255), near_end=st.booleans())
def test_a_changed_byte_gives_a_network_or_a_refusal(place: float, byte: int, near_end: bool, tmp_path: Path) -> None:
    data = bytearray(plain_cnn().SerializeToString())
    structure = 1500  # the nodes come first, inputs and output last; between them are weights, where bytes are numbers
    data[int(place * structure) - (structure if near_end else 0)] = byte
    path = tmp_path / "network.onnx"
    path.write_bytes(data)
    try:
        network = read_network(path)
        network.trace((0.0,) * network.image.channels, (1.0,) * network.image.channels, outline=True)
    except InputError:
        pass


def test_old_files_are_refused(tmp_path: Path) -> None:
    make = Maker()
    padded = make.node("Pad", "x", pads=[0, 0, 1, 0, 0, 0, 1, 2])
    output = make.node("GlobalAveragePool", make.conv(padded, 1, 3, pads=[1, 1, 0, 0]))
    assert_equal(make.model(output, opset=10), tmp_path)
    with pytest.raises(InputError, match="it has opset 8"):
        read_network(write(make.model(output, opset=8), tmp_path / "network.onnx"))


def test_names_need_not_be_there_nor_differ(tmp_path: Path) -> None:
    for name in ("", "logits", "/layer.1/Relu", "pixels"):
        model = residual()
        for node in model.graph.node:
            node.name = name
        assert_equal(model, tmp_path)


def test_what_the_output_does_not_need_is_left_out(tmp_path: Path) -> None:
    model = plain_cnn()
    model.graph.node.append(helper.make_node("Softmax", [model.graph.output[0].name], ["unused"]))
    assert_equal(model, tmp_path)


def test_without_the_package_the_remedy_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(plain_cnn(), tmp_path / "network.onnx")
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingPartError) as missing:
        read_network(path)
    assert missing.value.remedy == "pip install onnx"


def test_other_classes_and_images_are_refused(tmp_path: Path) -> None:
    network = read_network(write(plain_cnn(), tmp_path / "network.onnx"))
    with pytest.raises(InputError, match="it has 2 classes, the network has 10"):
        compile_walk(network.trace, (0.0,), (1.0,), pixels_for(network, 2), class_names=("cat", "dog"))
    with pytest.raises(InputError, match="there are 2 images of 1x9x9"):
        compile_walk(network.trace, (0.0,), (1.0,), np.zeros((2, 1, 9, 9), np.uint8))


def extremes(make: Maker) -> str:
    """A map beside a constant for each channel, beside a number, and two maps."""
    x = make.conv("x", 1, 3, pads=[1, 1, 1, 1])
    y = make.node("Max", make.constant(np.full((3, 1, 1), 0.1, np.float32)), x)
    z = make.node("Min", make.conv("x", 1, 3, pads=[1, 1, 1, 1]), make.constant(np.array(0.3, np.float32)), x)
    return make.node("Max", y, z)


@pytest.mark.parametrize("axes, keeps", [([2, 3], 1), ([2, 3], 0), ([3], 0), ([1, 2], 1)], ids=str)
def test_extremes_and_maxima_along_axes(axes: list[int], keeps: int, tmp_path: Path) -> None:
    make = Maker(("n", 1, 6, 5))
    x = extremes(make)
    channels_last = axes == [1, 2]
    if channels_last:
        x = make.node("Transpose", x, perm=[0, 2, 3, 1])
    x = make.node("Flatten", make.node("ReduceMax", x, axes=axes, keepdims=keeps))
    model = make.model(make.dense(x, 18 if axes == [3] else 3, 4))
    assert_equal(model, tmp_path)
