"""Blocks of products: fused and compiled, compared with torch; asked by two processes, with the oracle."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from sphynx.bench.private_models import question
from sphynx.bench.private_parties import Job, run_parties
from sphynx.compiler.frontend.operators.network import OperatorNetwork
from sphynx.compiler.fusion.fuse import Fused
from sphynx.compiler.quantise import Quantised
from sphynx.program.backends import Backend
from sphynx.program.folder import save_compiled
from sphynx.program.interpret import evaluate, interpret
from tests.compiler.frontend.torch_modules import IMAGE

MEAN, STD = (0.0,) * 3, (1.0,) * 3


def pixels(count: int) -> NDArray[np.uint8]:
    return np.random.default_rng(0).integers(0, 256, (count, *IMAGE), np.uint8)


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
