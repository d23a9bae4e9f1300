"""Networks from elsewhere: fused and compiled, compared with torch; asked by two processes, with the oracle."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from sphynx.bench.private_models import question
from sphynx.bench.private_parties import Job, run_parties
from sphynx.compiler.frontend.operators.network import OperatorNetwork
from sphynx.compiler.fusion.fuse import Fused, truncated_joint
from sphynx.compiler.quantise import Quantised
from sphynx.program.backends import Backend
from sphynx.program.folder import save_compiled
from sphynx.program.interpret import evaluate, interpret
from sphynx.program.ir import Graph
from tests.compiler.frontend.torch_modules import IMAGE

MEAN, STD = (0.0,) * 3, (1.0,) * 3


def pixels(count: int) -> NDArray[np.uint8]:
    return np.random.default_rng(0).integers(0, 256, (count, *IMAGE), np.uint8)


def fuse_with_cuts(found: OperatorNetwork, pixels: NDArray[Any], expected: NDArray[np.float64]) -> Graph:
    """Fuse the network with no cuts, with all, and with all truncated (by no bits yet): each computes what is expected
    of these pixels, and its outline has the same steps. Return the first one's."""
    channels = found.image.channels
    mean, std = (0.0,) * channels, (1.0,) * channels
    joints = found.trace(mean, std, outline=True).joints
    for cuts in ((), joints, tuple(map(truncated_joint, joints))):
        fused = found.trace(mean, std, cuts=cuts)
        assert fused.graph == found.trace(mean, std, cuts=cuts, outline=True).graph
        assert {name: array.shape for name, array in fused.weights.items()} == fused.graph.weight_shapes
        got = evaluate(fused.graph, fused.weights, pixels.astype(np.float64), lambda *_: None)
        assert np.abs(got.reshape(expected.shape) - expected).max() < 1e-9 * (1 + np.abs(expected).max())
    return found.trace(mean, std).graph


def fuse_exactly(found: OperatorNetwork, made: nn.Module, allowed: float) -> Iterator[Fused]:
    """The network without cuts, and with all; each says what torch says."""
    with torch.no_grad():
        expected = made(torch.from_numpy(pixels(3) / 255)).numpy()
    for cuts in ((), found.trace(MEAN, STD, outline=True).joints):
        fused = found.trace(MEAN, STD, cuts=cuts)
        assert fused.graph == found.trace(MEAN, STD, cuts=cuts, outline=True).graph
        got = evaluate(fused.graph, fused.weights, pixels(3).astype(np.float64), lambda *_: None)
        assert np.abs(got - expected).max() < allowed
        yield fused


def error_of(quantised: Quantised, made: nn.Module) -> float:
    """The error of the integers' outputs, beside the spread of torch's from image to image."""
    found = quantised.program.real_numbers(interpret(quantised.program, quantised.weights, pixels(20)))
    with torch.no_grad():
        expected = made(torch.from_numpy(pixels(20) / 255)).numpy()
    spread = (expected - expected.mean(axis=0)).std()
    return float(np.sqrt(np.square(found - expected).mean()) / spread)


def assert_two_processes_agree(quantised: Quantised, backend: Backend, folder: Path) -> None:
    save_compiled(folder, quantised)
    asked, wanted = question(folder, 2)
    _, client = run_parties(Job(folder, backend, 2, repeats=1, link=None), asked, wanted)
    assert client.details["equal_to_oracle"]
