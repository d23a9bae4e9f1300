"""Files as people have them: open sizes, further inputs, channels last, signals. ONNX Runtime says what is right."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from sphynx.compiler.frontend.elsewhere import read_onnx
from sphynx.compiler.frontend.onnx.file import load_graph, read_network
from sphynx.compiler.settings import CompileSettings
from sphynx.errors import InputError, OpenSizesError
from sphynx.program.interpret import evaluate
from tests.compiler.frontend.onnx_models import Maker, plain_cnn, write

pytest.importorskip("onnxruntime")


def assert_as_onnx_runtime(path: Path, **settings: Any) -> tuple[int, ...]:
    """Compare what is read with ONNX Runtime on two images; return their shape."""
    read = read_onnx(path, CompileSettings(warn=lambda _line: None, **settings))
    judge, image = read.judge(), read.outline.image
    assert judge is not None
    pixels = np.random.default_rng(0).integers(0, 256, (2, *image)).astype(np.uint8)
    expected = judge.answer(pixels, read.mean, read.std)
    fused = read.walk(read.mean, read.std)
    got = evaluate(fused.graph, fused.weights, pixels.astype(np.float64), lambda *_: None)
    assert np.abs(got.reshape(expected.shape) - expected).max() < 1e-5 * np.abs(expected).max()
    return tuple(image)


def pooled(image: tuple[int | str, ...], channels: int = 3) -> onnx.ModelProto:
    make = Maker(image)
    x = make.node("Relu", make.conv("x", channels, 4, pads=[1, 1, 1, 1]))
    return make.model(make.dense(make.node("Flatten", make.node("GlobalAveragePool", x)), 4, 5))


def test_open_sizes_are_filled(tmp_path: Path) -> None:
    path = write(pooled(("n", 3, "height", "width")), tmp_path / "open.onnx")
    assert assert_as_onnx_runtime(path, input_shape=(3, 6, 9)) == (3, 6, 9)
    assert assert_as_onnx_runtime(path, input_shape=(1, 3, 5, 4)) == (3, 5, 4)
    with pytest.raises(OpenSizesError, match=r"x \[n, 3, height, width\] has open sizes") as refused:
        read_network(path)
    assert "`input_shape=3x224x224`" in refused.value.remedy
    for wrong in ((4, 6, 9), (3, 6), (3, 6, 0)):
        with pytest.raises(InputError, match="does not take"):
            read_network(path, shape=wrong)


def test_a_length_of_minus_one_is_open(tmp_path: Path) -> None:
    path = write(pooled((-1, 3, -1, -1)), tmp_path / "open.onnx")
    assert assert_as_onnx_runtime(path, input_shape=(3, 6, 9)) == (3, 6, 9)


def channels_last(transposed: bool) -> onnx.ModelProto:
    """As tf2onnx writes Keras: normalised, transposed, and so back before the classes."""
    make = Maker(("n", 6, 5, 3) if transposed else ("n", "height", "width", 3))
    x = make.node("Sub", "x", make.constant(np.array([0.1, 0.2, 0.3], np.float32)))
    x = make.conv(make.node("Transpose", x, perm=[0, 3, 1, 2]), 3, 4, pads=[1, 1, 1, 1])
    x = make.node("Transpose", make.node("Relu", x), perm=[0, 2, 3, 1])
    x = make.node("ReduceMean", x, axes=[1, 2], keepdims=0)
    return make.model(make.dense(x, 4, 5))


def test_channels_last_are_recognised_and_said(tmp_path: Path) -> None:
    told: list[str] = []
    path = write(channels_last(True), tmp_path / "keras.onnx")
    assert assert_as_onnx_runtime(path) == (3, 6, 5)
    read_onnx(path, CompileSettings(warn=told.append))
    assert "channels last, [n, 6, 5, 3]" in told[0] and "[n, 3, 6, 5]" in told[0]
    opened = write(channels_last(False), tmp_path / "open.onnx")
    assert assert_as_onnx_runtime(opened, input_shape=(7, 5, 3)) == (3, 7, 5)
    assert assert_as_onnx_runtime(opened, input_shape=(3, 7, 5)) == (3, 7, 5)


def test_channels_last_by_their_sizes_alone(tmp_path: Path) -> None:
    make = Maker(("n", 6, 5, 3))
    path = write(make.model(make.dense(make.node("Flatten", "x"), 90, 4)), tmp_path / "dense.onnx")
    assert assert_as_onnx_runtime(path) == (3, 6, 5)
    steps = load_graph(path)[1]
    assert steps.is_channels_last and steps.dims == (6, 5, 3)


def test_signals_and_features(tmp_path: Path) -> None:
    make = Maker(("n", 2, 32))
    weights = make.normal(4, 2, 5)
    x = make.node("Relu", make.node("Conv", "x", weights, strides=[2]))
    path = write(make.model(make.dense(make.node("Flatten", x), 56, 3)), tmp_path / "signal.onnx")
    assert assert_as_onnx_runtime(path) == (2, 1, 32)
    make = Maker(("n", "samples"))
    path = write(make.model(make.dense("x", 24, 3)), tmp_path / "features.onnx")
    assert assert_as_onnx_runtime(path, input_shape=(24,)) == (1, 1, 24)


def two_inputs() -> onnx.ModelProto:
    make = Maker(("n", 1, 6, 6))
    x = make.node("Mul", make.node("Add", "x", "gain"), make.node("Cast", "rate", to=TensorProto.FLOAT))
    x = make.node("Relu", make.conv(x, 1, 3))
    model = make.model(make.dense(make.node("Flatten", x), 48, 3))
    model.graph.input.append(helper.make_tensor_value_info("gain", TensorProto.FLOAT, ["n", 1, 1, 6]))
    model.graph.input.append(helper.make_tensor_value_info("rate", TensorProto.INT64, []))
    return model


def test_further_inputs_are_constants(tmp_path: Path) -> None:
    path = write(two_inputs(), tmp_path / "two.onnx")
    np.save(tmp_path / "gain.npy", np.arange(6.0).reshape(1, 1, 1, 6))
    for gain in (0.5, "1,2,3,4,5,6", [1, 2, 3, 4, 5, 6], str(tmp_path / "gain.npy")):
        assert_as_onnx_runtime(path, inputs={"gain": gain, "rate": 3})
    with pytest.raises(InputError, match=r"3 inputs \(x \[n, 1, 6, 6\], gain \[n, 1, 1, 6\], rate \[\]\)") as refused:
        read_network(path)
    assert "`inputs={'gain': 0, 'rate': 0}`" in refused.value.remedy
    for given, what in (({"gain": "1,2"}, "does not fit its input gain"), ({"gian": 1}, "has no input gian; it has x")):
        with pytest.raises(InputError, match=what):
            read_network(path, inputs=given)


def test_a_huge_further_input_is_refused_before_it_is_made(tmp_path: Path) -> None:
    model = plain_cnn()
    model.graph.input.append(helper.make_tensor_value_info("z", TensorProto.FLOAT, [1 << 40]))
    with pytest.raises(InputError, match="too large for a constant"):
        read_network(write(model, tmp_path / "network.onnx"), inputs={"z": 0})


def test_an_output_along_another_axis_is_a_vector(tmp_path: Path) -> None:
    """As Keras gives embeddings, [n, 1, 1, 4]."""
    make = Maker(("n", 6, 5, 3))
    x = make.conv(make.node("Transpose", "x", perm=[0, 3, 1, 2]), 3, 4)
    x = make.node("Transpose", make.node("GlobalAveragePool", make.node("Relu", x)), perm=[0, 2, 3, 1])
    assert assert_as_onnx_runtime(write(make.model(x), tmp_path / "embedding.onnx")) == (3, 6, 5)
