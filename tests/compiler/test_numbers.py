"""Networks that read numbers: their range is calibrated, clients clip to it, ONNX Runtime is the judge."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import sphynx
from sphynx.compiler.precision import Precision
from sphynx.errors import InputError
from tests.compiler.frontend.onnx_models import Maker, write

FINE = Precision(12, 12)
random = np.random.default_rng(0)


def signal_network(path: Path) -> Path:
    make = Maker(("n", 64))
    x = make.node("Unsqueeze", "x", make.constant([1]))
    x = make.node("Relu", make.node("Conv", x, make.normal(4, 1, 5), make.normal(4, scale=0.2), strides=[2]))
    return write(make.model(make.dense(make.node("Flatten", x), 120, 3)), path)


def test_the_range_is_that_of_the_data(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    sound, told = random.normal(size=(50, 64)).astype(np.float32), list[str]()
    path = signal_network(tmp_path / "sound.onnx")
    compiled = sphynx.compile_network(path, calibrate=sound, precision=FINE, warn=told.append)
    source, (output,) = compiled.program.input, compiled.program.outputs
    assert (source.kind, source.bits, source.dims, source.name) == ("numbers", 12, (64,), "x")
    assert source.low == (float(sound.min()),) and source.high == (float(sound.max()),)
    assert "the program reads numbers, not pictures" in told[0]
    assert compiled.judged is not None and compiled.judged.error < 0.01 and compiled.judged.read_error == 0
    again = sphynx.Compiled.load(compiled.save(tmp_path / "compiled")).judge(sound)
    assert again is not None and abs(again.error - compiled.judged.error) < 1e-5
    clipped = np.clip(3 * sound[:2], *source.low, *source.high)
    assert np.array_equal(compiled.outputs(3 * sound[:2])[output.name], compiled.outputs(clipped)[output.name])
    assert compiled.check(sound, images=10).images == 10


def test_the_network_sees_what_the_client_gives() -> None:
    """Also where it is normalised first, and channels differ."""
    torch.manual_seed(0)
    module = nn.Sequential(nn.Conv2d(2, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(64, 3)).eval()
    numbers = (100 + 20 * random.normal(size=(60, 2, 6, 6))).astype(np.float32)
    compiled = sphynx.compile_network(
        module,
        calibrate=numbers,
        precision=FINE,
        mean=(90, 110),
        std=(10, 30),
        input_bits=16,
        warn=lambda _line: None,
    )
    mean, std = torch.tensor([90.0, 110]).view(2, 1, 1), torch.tensor([10.0, 30]).view(2, 1, 1)
    with torch.no_grad():
        wanted = module((torch.from_numpy(numbers) - mean) / std).numpy()
    found = compiled.outputs(numbers)["logits"]
    assert np.abs(found - wanted).max() < 0.02 * wanted.std()
    (answer,) = compiled.infer_privately(numbers[:1])
    assert np.array_equal(answer.outputs["logits"], compiled.outputs(numbers[:1])["logits"][0])


@pytest.mark.parametrize(
    ("numbers", "low", "high", "bits"),
    [
        (random.integers(-20000, 20000, (40, 64)).astype(np.int16), -32768, 32767, 16),
        (random.integers(0, 4000, (40, 64)).astype(np.uint16), 0, 4095, 12),
    ],
)
def test_whole_numbers_are_kept(numbers: np.ndarray, low: int, high: int, bits: int, tmp_path: Path) -> None:
    path = signal_network(tmp_path / "sound.onnx")
    compiled = sphynx.compile_network(path, calibrate=numbers, std=10000, precision=FINE, warn=lambda _line: None)
    source = compiled.program.input
    assert (source.low, source.high, source.bits) == ((low,), (high,), bits)
    integers = source.quantise(numbers, compiled.program.image, where="test")
    assert np.array_equal(source.real(integers).reshape(numbers.shape), numbers)


def test_whole_numbers_of_many_bits_are_rounded(tmp_path: Path) -> None:
    path, numbers = signal_network(tmp_path / "sound.onnx"), random.integers(-100000, 100000, (40, 64))
    compiled = sphynx.compile_network(path, calibrate=numbers, std=10000, precision=FINE, warn=lambda _line: None)
    assert (compiled.program.input.bits, compiled.program.input.low) == (16, (float(numbers.min()),))


def test_a_range_may_be_given(tmp_path: Path) -> None:
    path, sound = signal_network(tmp_path / "sound.onnx"), random.uniform(-0.5, 0.5, (40, 64))
    compiled = sphynx.compile_network(
        path, calibrate=sound, precision=FINE, input_range=(-1, 1), input_bits=10, warn=lambda _line: None
    )
    assert (compiled.program.input.low, compiled.program.input.high, compiled.program.input.bits) == ((-1,), (1,), 10)
    for wrong in ((1, -1), (0,), (0, np.inf)):
        with pytest.raises(InputError, match="is not a range"):
            sphynx.CompileSettings(input_range=wrong)
    with pytest.raises(InputError, match="not a valid number of bits"):
        sphynx.CompileSettings(input_bits=17)
    with pytest.raises(InputError, match=r"all of its numbers are 0\.5"):
        sphynx.compile_network(path, calibrate=np.full((4, 64), 0.5), warn=lambda _line: None)
