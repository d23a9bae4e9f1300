"""Stream networks as fused graphs: equal to torch in double precision, and with halo borders without any remainder."""

from collections.abc import Container

import pytest
import torch
from hypothesis import given, settings

from sphynx.api.both_parties import ask_privately
from sphynx.compiler.compile import compile_walk
from sphynx.compiler.frontend.torch_network import trace, walk_of
from sphynx.compiler.fusion.choose import choose_cuts
from sphynx.compiler.fusion.fuse import Fused, truncated_joint
from sphynx.compiler.precision import Precision
from sphynx.compiler.settings import CompileSettings
from sphynx.network.build import build_network
from sphynx.program.backends import BACKENDS
from sphynx.program.cost.cost import total_cost
from sphynx.program.cost.deployment import Deployment
from sphynx.program.cost.widths import compared_tensors, guess_bits, guess_program
from sphynx.program.interpret import interpret
from sphynx.program.ir import INPUT, Graph, Linear, Pool, Relu, Step
from sphynx.space.choices import Borders
from sphynx.space.stream import Stage, StreamDesign
from sphynx.space.stream_planner import plan_stream
from sphynx.space.tally import Shape
from tests.compiler.fusion.test_fuse import assert_equal, fused
from tests.compiler.networks import MEAN, STD, random_network
from tests.space.strategies import stream_designs

TINY = (Stage(4, (2,)), Stage(6, (3, 3)))


@settings(max_examples=8, deadline=None)
@given(stream_designs)
def test_any_design(design: StreamDesign) -> None:
    graph = assert_equal(design).graph
    assert {step.name for step in graph.linears} == compared_tensors(graph)  # one map per ReLU layer


def test_with_a_halo_every_layer_is_one_convolution_of_each_earlier_one() -> None:
    stages = (Stage(4, (2, 2)), Stage(5, ()), Stage(6, (3, 1)))
    graph = assert_equal(StreamDesign(stages, Shape(3, 16, 16), 4)).graph
    earlier = [INPUT]
    for step in graph.steps:
        if isinstance(step, Relu):
            earlier.append(step.name)
        elif isinstance(step, Linear) and step is not graph.steps[-1]:
            assert sorted(step.sources) == sorted(earlier)  # no crops: nothing is taken back at borders


def test_the_head_reads_fewer_window_sums_than_pixels() -> None:
    graph = assert_equal(StreamDesign((Stage(4, (2,)), Stage(6, (3, 1))), Shape(3, 16, 16), 4)).graph
    logits = graph.steps[-1]
    assert isinstance(logits, Linear)
    assert isinstance(logits, Linear)
    assert all(isinstance(graph_step(graph, source), Pool) for source in logits.sources)
    inputs = sum(term.kernel_height * term.kernel_width for term in logits.terms)
    assert inputs < 16 * 16 + 8 * 8 + 2 * 4 * 4  # of each channel of the image and of three ReLU layers


def test_zero_borders_can_be_cut_instead_of_fused() -> None:
    design = StreamDesign(TINY, Shape(1, 8, 8), 3, borders="zero")
    whole = assert_equal(design)
    assert whole.joints and any(isinstance(step, Pool) for step in whole.graph.steps)
    cut = assert_equal(design, lambda joints: joints)
    assert len(list(cut.graph.linears)) > len(list(whole.graph.linears))


def test_a_halo_can_be_cut_before_any_block_but_the_first() -> None:
    design = StreamDesign((*TINY, Stage(5, (2,))), Shape(1, 16, 16), 3)
    cut = assert_equal(design, lambda joints: joints[2:])
    assert cut.joints == ("stages.1.0.stream", "stages.1.1.stream", "stages.2.0.stream")
    by_name = {step.name: step for step in cut.graph.linears}
    assert by_name["stages.2.0.activation.input"].sources == ("stages.2.0.stream",)
    truncated = assert_equal(design, lambda joints: [truncated_joint(joint) for joint in joints])
    by_name = {step.name: step for step in truncated.graph.linears}
    assert by_name["stages.1.1.activation.input"].sources == (truncated_joint("stages.1.1.stream"),)
    assert by_name["stages.2.0.activation.input"].sources == (truncated_joint("stages.2.0.stream"),)


def test_a_large_halo_is_cut_and_truncated_in_a_ring_of_a_bit_more_at_most() -> None:
    """As shipped: without the truncation the ring would be wider, with fewer bits inside the chain the logits worse."""
    stages = (Stage(96, (20, 20)), Stage(192, (80,) * 4), Stage(384, (320,) * 4))
    network = build_network(StreamDesign(stages, Shape(3, 32, 32), 100))

    def outline(cuts: Container[str]) -> Fused:
        return trace(network, MEAN, STD, cuts=cuts, outline=True)

    def guessed(precision: Precision, cuts: Container[str]) -> tuple[int, int]:
        graph = outline(cuts).graph
        bits = guess_bits(graph, precision.weight_bits, precision.activation_bits, precision.link_bits)
        program = guess_program(graph, bits, precision.weight_bits)
        return program.ring_bits, total_cost(program).he_products

    precision = Precision(13, 11)
    cuts = choose_cuts(outline, precision, Deployment("gmw"))
    assert cuts == {truncated_joint("stages.2.0.stream")}
    (fused_ring, fused_products), (ring, products) = guessed(precision, ()), guessed(precision, cuts)
    assert ring <= fused_ring + 1 and products < 0.65 * fused_products


def graph_step(graph: Graph, name: str) -> Step:
    return next(step for step in graph.steps if step.name == name)


@pytest.mark.parametrize("borders", ["zero", "halo"])
def test_it_compiles(borders: Borders) -> None:
    design = StreamDesign(TINY, Shape(1, 8, 8), 3, borders=borders)
    network = random_network(design).float()
    pixels = torch.randint(0, 256, (20, 1, 8, 8), generator=torch.Generator().manual_seed(2)).to(torch.uint8).numpy()
    settings = CompileSettings(precision=Precision(12, 12, 11))
    made = compile_walk(walk_of(network), MEAN[:1], STD[:1], pixels, settings)
    assert made.program.relu_count == design.relus and made.logit_error < 0.05
    if borders == "halo":  # so small a network is not worth a chain
        assert fused(network).joints and not [step for step in made.program.linears if not step.range_bits]


@pytest.mark.slow
def test_large_grey_pictures_are_answered_privately_as_the_oracle_does() -> None:
    """The plan for X-rays: a stem of 9x9 with stride 4, four maps, 11,264 ReLUs, fused without a cut."""
    torch.manual_seed(0)
    network = build_network(plan_stream(11_264, 0.05, Shape(1, 128, 128), 3).design)
    images = torch.randint(0, 256, (20, 1, 128, 128), dtype=torch.uint8)
    with torch.no_grad():
        network.train()(images.float() / 255)
    network.eval()
    made = compile_walk(walk_of(network), (0.0,), (1.0,), images.numpy(), CompileSettings())
    assert made.program.relu_count == 11_264 and made.logit_error < 0.01
    asked = images[:2].numpy()
    expected = interpret(made.program, made.weights, asked)
    for backend in BACKENDS:
        answers = ask_privately(made.program, made.weights, asked, backend)
        assert [answer.integer_logits.tolist() for answer in answers] == expected.tolist()
