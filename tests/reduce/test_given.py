"""Networks from elsewhere: as graphs that compute the same, train with batch norm again, are reduced and compiled."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor, nn

import sphynx
from sphynx.compiler.frontend.elsewhere import read_torch
from sphynx.compiler.frontend.graph import network_of
from sphynx.errors import InputError
from sphynx.network.build import build_network
from sphynx.network.graph import GraphNetwork
from sphynx.network.reduced import rectified_layers
from sphynx.network.trained import TrainedNetwork, count_parameters
from sphynx.reduce.settings import Method
from sphynx.space.files import any_design_from_json
from sphynx.space.reduced import ReducedDesign
from sphynx.space.tally import Shape
from tests.reduce.planted import noise, noisy_data

IMAGE, MEAN, STD = Shape(1, 8, 8), 0.5, 0.25
BRIEF = {"search_epochs": 2, "rounds": 1, "training.epochs": 2, "training.batch_size": 27}


class Block(nn.Module):
    def __init__(self, channels_in: int, channels: int, stride: int) -> None:
        super().__init__()
        self.first, self.norm = nn.Conv2d(channels_in, channels, 3, stride, 1, bias=False), nn.BatchNorm2d(channels)
        self.second = nn.Conv2d(channels, channels, 3, padding=1, groups=2)
        self.shortcut = nn.Conv2d(channels_in, channels, 1, stride) if stride > 1 else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.second(torch.relu(self.norm(self.first(x)))) + self.shortcut(x))


def module() -> nn.Module:
    torch.manual_seed(0)
    made = nn.Sequential(
        *(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), Block(4, 4, 1), Block(4, 8, 2)),
        *(nn.AvgPool2d(2), nn.Flatten(), nn.Linear(8, 3)),
    )
    made(normalised(noise(60, 2).images))  # batch norm is no longer 0 and 1
    head = made[-1]
    assert isinstance(head, nn.Linear)
    with torch.no_grad():
        head.weight *= 8
    return made.eval()


def normalised(images: Tensor) -> Tensor:
    return (images.float() / 255 - MEAN) / STD


def graph() -> GraphNetwork:
    made = network_of(read_torch(module(), IMAGE).walk((0.0,), (1 / 255,), outline=False), "mine")
    made.settle(normalised(noise(60, 2).images))
    return made


@torch.no_grad()
def test_the_graph_computes_what_the_module_does() -> None:
    x, made = normalised(noise(60, 2).images), graph()
    torch.testing.assert_close(made(x), module()(x), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(made.train()(x), module()(x), rtol=0.05, atol=0.05)  # by the batch's own statistics
    assert len(rectified_layers(made, IMAGE)) == len(made.norms) == 5
    assert made.design.account.total.comparisons == 192 and made.design.relus == 256
    assert count_parameters(made) == made.design.parameters


def test_the_graph_is_kept_as_a_file() -> None:
    made = graph()
    design = any_design_from_json(json.loads(json.dumps(made.design.to_json())))
    assert design == made.design
    build_network(design).load_state_dict(made.state_dict())
    with pytest.raises(InputError, match="cannot be computed here"):
        any_design_from_json({**made.design.to_json(), "steps": made.design.to_json()["steps"][1:]})


def test_the_graph_is_compiled_to_the_same() -> None:
    compiled = sphynx.compile_network(TrainedNetwork("mine", graph(), (MEAN,), (STD,)), calibrate=noisy_data())
    assert compiled.judged is not None and compiled.judged.read_error is not None
    assert compiled.judged.read_error < 1e-4 and compiled.judged.error < 0.05
    assert (compiled.relus, compiled.program.comparison_count) == (256, 192)


@pytest.mark.parametrize(
    "method", ["channels", pytest.param("snl", marks=pytest.mark.slow), pytest.param("stream", marks=pytest.mark.slow)]
)
def test_a_module_of_ones_own_is_reduced(tmp_path: Path, method: Method) -> None:
    result = sphynx.reduce_network(
        module(), noisy_data(), relu_budget=100, out=tmp_path, method=method, mean=MEAN, std=STD, settings=BRIEF
    )
    kept = sphynx.load_network(tmp_path)
    assert isinstance(kept.design, ReducedDesign) == (method != "stream") and kept.mean == (MEAN,)
    assert kept.design.relus == result.best.counts.relus <= 100 < result.original_relus == 256
    assert sphynx.compile_network(tmp_path, calibrate=noisy_data()).relus == kept.design.relus


def test_a_file_is_reduced_by_pictures_without_labels(tmp_path: Path) -> None:
    pictures, file = tmp_path / "pictures", tmp_path / "mine.pt2"
    pictures.mkdir()
    for number, image in enumerate(noise(120, 0).images[:, 0].numpy()):
        Image.fromarray(image).save(pictures / f"{number}.png")
    torch.export.save(torch.export.export(module(), (torch.zeros(1, *IMAGE),)), file)
    brief = {**BRIEF, "search_epochs": 0}
    result = sphynx.reduce_network(
        file, pictures, relu_budget=100, out=tmp_path / "run", method="channels", mean=MEAN, std=STD, settings=brief
    )
    assert result.original_accuracy == 1.0 and result.best.accuracy == result.best.agreement
    answers = sphynx.compile_network(tmp_path / "run", calibrate=pictures).infer(noise(5, 1).images.numpy())
    assert answers.shape == (5, 3) and np.isfinite(answers).all()


def test_what_cannot_be_trained_again_is_named(tmp_path: Path) -> None:
    smooth = nn.Sequential(nn.Conv2d(1, 4, 3), nn.Sigmoid(), nn.Flatten(), nn.Linear(144, 3))
    with pytest.raises(InputError, match=r"Sigmoid|curve"):
        sphynx.reduce_network(smooth, noisy_data(), relu_budget=10, out=tmp_path / "run")
    with pytest.raises(InputError, match="does not name its training data"):
        sphynx.reduce_network(module(), None, relu_budget=10, out=tmp_path / "run")
