"""A compiled stream network, run privately: the integer oracle's logits, bit for bit."""

import pytest
import torch
from tests.compiler.networks import MEAN, STD, random_network
from tests.protocol.random_programs import Case
from tests.protocol.test_inference import ask

from sphynx.compiler.compile import compile_walk
from sphynx.compiler.frontend.torch_network import trace, walk_of
from sphynx.compiler.fusion.fuse import truncated_joint
from sphynx.compiler.measure import measure
from sphynx.compiler.precision import Precision
from sphynx.compiler.quantise import quantise
from sphynx.compiler.settings import CompileSettings
from sphynx.program.backends import Backend
from sphynx.program.ir import Truncate
from sphynx.space.stream import Stage, StreamDesign
from sphynx.space.tally import Shape


@pytest.mark.parametrize("backend", ["gc", "gmw"])
def test_private_logits_are_the_oracles(backend: Backend) -> None:
    design = StreamDesign((Stage(4, (2,)), Stage(6, (3, 2))), Shape(1, 8, 8), 3)
    pixels = torch.randint(0, 256, (20, 1, 8, 8), generator=torch.Generator().manual_seed(3)).to(torch.uint8).numpy()
    settings = CompileSettings(precision=Precision(8, 10, 7))
    made = compile_walk(walk_of(random_network(design).float()), MEAN[:1], STD[:1], pixels, settings)
    ask(Case(made.program, made.weights, pixels[:2]), backend)


@pytest.mark.parametrize("backend", ["gc", "gmw"])
@pytest.mark.parametrize("joints", [("stages.1.0.stream",), ("stages.1.0.stream", "stages.1.1.stream")])
def test_a_stream_that_is_cut_and_truncated(backend: Backend, joints: tuple[str, ...]) -> None:
    design = StreamDesign((Stage(4, (2,)), Stage(6, (3, 2))), Shape(1, 8, 8), 3)
    pixels = torch.randint(0, 256, (20, 1, 8, 8), generator=torch.Generator().manual_seed(3)).to(torch.uint8).numpy()
    cuts = [truncated_joint(joint) for joint in joints]
    with torch.no_grad():
        cut = trace(random_network(design).float(), MEAN[:1], STD[:1], cuts=cuts)
    made = quantise(measure(cut, pixels), Precision(8, 10, 7))
    assert [step.name for step in made.program.steps if isinstance(step, Truncate)] == cuts
    assert made.logit_error < 0.1
    ask(Case(made.program, made.weights, pixels[:2]), backend)
