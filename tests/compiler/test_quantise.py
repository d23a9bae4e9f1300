"""Integers against the float network: digits learned here, chains and pools with random weights, and refusals."""

from dataclasses import replace
from functools import cache, partial
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional

from sphynx.compiler.check import check, worst_case
from sphynx.compiler.compile import (
    COARSEST_LEVEL,
    FINEST_LEVEL,
    FIRST_TRY,
    LOGIT_ERROR,
    automatic_precision,
    calibration_images,
    coarsest_that_serves,
    compile_walk,
)
from sphynx.compiler.frontend.elsewhere import read_torch
from sphynx.compiler.frontend.torch_network import trace, walk_of
from sphynx.compiler.fusion.fuse import truncated_joint
from sphynx.compiler.measure import measure, measure_parts
from sphynx.compiler.precision import Precision
from sphynx.compiler.quantise import Quantised, quantise
from sphynx.compiler.settings import CompileSettings
from sphynx.compiler.trial import HEADROOM_BITS
from sphynx.data.images import Data, ImageSet
from sphynx.data.open import open_data
from sphynx.data.samples import Samples
from sphynx.errors import InputError, SphynxError
from sphynx.network.backend import fast_convolutions
from sphynx.network.build import AnyNetwork, build_network
from sphynx.program.convolve import Array
from sphynx.program.cost.widths import LEAST_LOGIT_BITS
from sphynx.program.interpret import evaluate, interpret
from sphynx.program.ir import Relu, Step
from sphynx.space.cell import cell
from sphynx.space.design import Design
from sphynx.space.genotype import Genotype
from sphynx.space.stream import Stage, StreamDesign
from sphynx.space.tally import Shape
from tests.compiler.frontend.torch_modules import Call
from tests.compiler.networks import MEAN, STD, normalised, random_network
from tests.space.strategies import designs

# Every operation once, a convolution of a convolution, and a pool of a convolution.
CELLS = Genotype(cell("skip 0, conv3 1", "avg_pool 2, dil3 0"), cell("conv3 0, skip 1", "skip 2, avg_pool 1"))
LEVELS = {automatic_precision(level): level for level in range(COARSEST_LEVEL, FINEST_LEVEL + 1)}
EPOCHS = 5


@cache
def digits() -> Data:
    return open_data("digits")


@cache
def learned() -> AnyNetwork:
    """A network that tells digits apart after a few seconds of training."""
    torch.manual_seed(0)
    data = digits()
    design = Design(CELLS, 4, 3, (1,), Shape(1, 8, 8), 10, conv_stack="single", name="digits")
    network = build_network(design).train()
    x = (data.train.images.float() / 255 - data.mean[0]) / data.std[0]
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
    with fast_convolutions(torch.device("cpu")):
        for epoch in range(EPOCHS):
            optimizer.param_groups[0]["lr"] = 0.01 * (1 - epoch / EPOCHS)
            for part in torch.randperm(len(x)).split(64):
                loss = functional.cross_entropy(network(x[part]), data.train.labels[part])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
    return network.eval()


def all_digits() -> ImageSet:
    """Training images too: whether integers follow the float network does not depend on what it learned from."""
    train, test = digits().train, digits().test
    return ImageSet(torch.cat([train.images, test.images]), torch.cat([train.labels, test.labels]), train.class_names)


def compiled(precision: Precision = Precision()) -> Quantised:
    data = digits()
    names = data.train.class_names
    settings = CompileSettings(precision=precision)
    walk, images = walk_of(learned()), calibration_images(data.train)
    return compile_walk(walk, data.mean, data.std, images, settings, class_names=names)


@pytest.mark.parametrize("precision", [Precision(), Precision(10, 12, 8)], ids=str)
def test_digits_lose_nothing_to_integers(precision: Precision) -> None:
    data = digits()
    made = compiled(precision)
    result = check(made.program, made.weights, Samples.of_set(all_digits()), learned(), (data.mean, data.std))
    assert result.accuracy and result.float_network is not None and result.float_network.accuracy
    assert result.float_network.accuracy > 0.95
    assert abs(result.accuracy - result.float_network.accuracy) <= 0.002
    assert result.float_network.agreement >= 0.99
    assert made.program.ring_bits <= 48
    assert all(layer.used_bits <= layer.bound_bits for layer in result.layers)
    assert all(layer.used_bits <= layer.range_bits for layer in result.layers if layer.range_bits)


def test_finer_weights_come_nearer_and_widen_the_ring() -> None:
    coarse, fine = compiled(Precision(6, 8, 4)), compiled(Precision(12, 16, 12))
    data = digits()
    differences = []
    for made in (coarse, fine):
        result = check(made.program, made.weights, Samples.of_set(data.test), learned(), (data.mean, data.std))
        assert result.float_network is not None
        differences.append(result.float_network.largest_difference)
    assert differences[1] < differences[0] / 8
    assert coarse.program.ring_bits < fine.program.ring_bits


def test_ranges_and_weights_are_as_stated() -> None:
    made = compiled()
    program = made.program
    assert program.ring_bits == max(step.range_bits for step in program.linears)
    pixels = calibration_images(digits().train)
    largest = dict.fromkeys(program.shapes, 0)

    def watch(step: object, tensor: np.ndarray) -> None:
        name = step.name  # type: ignore[attr-defined]
        largest[name] = max(largest[name], int(np.abs(tensor).max()))

    interpret(program, made.weights, pixels, watch)
    for step in program.linears:
        if step.range_bits:
            assert step.range_bits == largest[step.name].bit_length() + 1 + HEADROOM_BITS
    for relu in (step for step in program.steps if isinstance(step, Relu)):
        assert largest[relu.name] < 2 ** (Precision().activation_bits + 1)
    weights = [array for name, array in made.weights.items() if not name.endswith("bias")]
    assert all(array.dtype == np.int8 and np.abs(array.astype(int)).max() <= 127 for array in weights)
    assert worst_case(program, made.weights)["logits"] >= largest["logits"]


@pytest.mark.parametrize("precision", [Precision(8), Precision(14, 12)], ids=str)
def test_only_weights_that_can_spare_bits_keep_the_logits_within_the_ring(precision: Precision) -> None:
    design = StreamDesign((Stage(4, (2,)), Stage(6, (3, 2))), Shape(1, 8, 8), 3)
    pixels = np.random.default_rng(0).integers(0, 256, (20, 1, 8, 8), np.uint8)
    with torch.no_grad():
        cut = trace(random_network(design), MEAN[:1], STD[:1], cuts=[truncated_joint("stages.1.0.stream")])
    made = quantise(measure(cut, pixels), precision)
    *others, logits = made.program.linears
    widest = max(step.range_bits for step in others)
    largest = max(int(np.abs(made.weights[logits.weight_name(n)]).max()) for n in range(len(logits.terms)))
    if precision.weight_bits == LEAST_LOGIT_BITS:
        assert largest.bit_length() + 1 == LEAST_LOGIT_BITS and made.program.ring_bits == logits.range_bits > widest
    else:
        assert largest.bit_length() + 1 < precision.weight_bits and logits.range_bits == widest
        assert made.logit_error < 0.002


def test_links_of_a_chain_have_their_own_bits_and_what_is_truncated_has_all() -> None:
    design = StreamDesign((Stage(4, (2,)), Stage(6, (3, 2))), Shape(1, 8, 8), 3)
    cuts = ["stages.1.0.stream", truncated_joint("stages.1.1.stream")]
    pixels = np.random.default_rng(0).integers(0, 256, (20, 1, 8, 8), np.uint8)
    with torch.no_grad():
        cut = trace(random_network(design), MEAN[:1], STD[:1], cuts=cuts)
    made = quantise(measure(cut, pixels), Precision(10, 12, 6))
    used = {
        step.name: max(int(np.abs(made.weights[step.weight_name(n)]).max()) for n in range(len(step.terms)))
        for step in made.program.linears
    }
    assert "stages.1.1.stream.map" in used
    for name, largest in used.items():
        assert largest.bit_length() + 1 == (6 if name == "stages.1.0.stream" else 10), name


@settings(max_examples=10)
@given(design=designs(), as_chains=st.booleans())
def test_any_design_follows_its_float_network(design: Design, as_chains: bool) -> None:
    """Finely quantised, so that what remains could only be a wrong scale, shift or divisor."""
    design = replace(design, inner_relus=False, depth=2, reduce_positions=design.reduce_positions[:1] and (1,))
    network = random_network(design)
    channels = design.image.channels
    pixels = torch.randint(0, 256, (8, *design.image), generator=torch.Generator().manual_seed(2), dtype=torch.uint8)
    fused = trace(network, MEAN[:channels], STD[:channels])
    if as_chains:
        fused = trace(network, MEAN[:channels], STD[:channels], cuts=fused.joints)
    try:
        made = quantise(measure(fused, pixels.numpy()), Precision(10, 14, 8))
    except SphynxError as error:  # long chains of the paper's stacks at this precision
        assert "`weight_bits`" in error.remedy
        return
    with torch.no_grad():
        expected = network(normalised(pixels)).numpy()
    got = made.program.real_numbers(interpret(made.program, made.weights, pixels.numpy()))
    assert np.abs(got - expected).max() < 0.05 * (np.abs(expected).max() + 1)


@pytest.mark.parametrize("stride", [1, 3, 7, 90])
def test_a_part_is_measured_as_if_it_were_all(stride: int) -> None:
    data = digits()
    fused, pixels = trace(learned(), data.mean, data.std), data.train.images[:150].numpy()
    _, part = measure_parts(fused, pixels, (1, stride))
    alone = measure(fused, pixels[::stride])
    assert (part.pixels == alone.pixels).all()
    np.testing.assert_allclose(part.logits, alone.logits)
    for name, size in alone.sizes.items():
        assert part.sizes[name].images == size.images
        assert part.sizes[name].largest == pytest.approx(size.largest)
        assert part.sizes[name].rms == pytest.approx(size.rms)
        np.testing.assert_allclose(part.sizes[name].channel_means, size.channel_means, atol=1e-12)


def test_calibration_of_another_shape_is_refused() -> None:
    data = digits()
    with pytest.raises(InputError, match="calibration data") as refusal:
        compile_walk(walk_of(learned()), data.mean, data.std, np.zeros((4, 1, 9, 9), np.uint8))
    assert "1x8x8" in refusal.value.remedy
    with pytest.raises(InputError, match="0 images"):
        compile_walk(walk_of(learned()), data.mean, data.std, np.zeros((0, 1, 8, 8), np.uint8))


@pytest.mark.parametrize("bits", [5, 17])
def test_impossible_precision_is_refused(bits: int) -> None:
    with pytest.raises(InputError, match="`weight_bits`"):
        Precision(weight_bits=bits)


def test_a_ring_that_no_bits_suffice_for_names_the_layer() -> None:
    data = digits()
    fused = trace(learned(), data.mean, data.std, cuts=trace(learned(), data.mean, data.std, outline=True).joints)
    with pytest.raises(SphynxError, match=r"cells\.\d.*(bits|ring)") as refusal:
        quantise(measure(fused, calibration_images(data.train)), Precision(16, 24, 16))
    assert "`weight_bits`" in refusal.value.remedy


@pytest.mark.parametrize("power", [-1000, -600])
def test_weights_that_vanish_name_the_layer(power: int) -> None:
    """At once, or layer by layer: a client would refuse the program that came of it."""
    data = digits()
    fused = trace(learned(), data.mean, data.std)
    fused = replace(fused, weights={name: array * 2.0**power for name, array in fused.weights.items()})
    with pytest.raises(InputError, match=r"cells\.0.*at any precision") as refusal:
        quantise(measure(fused, calibration_images(data.train)))
    assert "Train" in refusal.value.remedy


def test_precision_is_found_where_none_is_given() -> None:
    data = digits()
    made = compile_walk(walk_of(learned()), data.mean, data.std, calibration_images(data.train))
    assert made.logit_error <= LOGIT_ERROR


@cache
def digits_at(precision: Precision, images: int = 40) -> Quantised:
    """One fused network at any precision: compile itself would choose other cuts for another one."""
    data, network = digits(), learned()
    with torch.no_grad():
        return quantise(measure(trace(network, data.mean, data.std), calibration_images(data.train, images)), precision)


@given(allowed_error=st.floats(2e-4, 0.05))
def test_the_precision_found_is_the_coarsest(allowed_error: float) -> None:
    """One bit less would miss, however near the allowed error is to that of some bits."""
    found = coarsest_that_serves(digits_at, allowed_error)
    level = LEVELS[found.precision]
    assert found.logit_error <= allowed_error or level == FINEST_LEVEL
    assert level == COARSEST_LEVEL or digits_at(automatic_precision(level - 1)).logit_error > allowed_error


@given(allowed_error=st.floats(2e-4, 0.05))
def test_a_sketch_only_says_where_to_begin(allowed_error: float) -> None:
    """A precision found on ten images may be too coarse for forty: the one that is returned serves all of them."""
    found = coarsest_that_serves(digits_at, allowed_error, sketch=partial(digits_at, images=10))
    sketched = coarsest_that_serves(partial(digits_at, images=10), allowed_error)
    assert len(found.logits) == 40
    assert found.logit_error <= allowed_error or LEVELS[found.precision] == FINEST_LEVEL
    assert LEVELS[found.precision] >= LEVELS[sketched.precision]


def test_finer_levels_than_the_weights_have_bits_leave_the_activations_more() -> None:
    precisions = [automatic_precision(level) for level in range(COARSEST_LEVEL, FINEST_LEVEL + 1)]
    assert precisions[-1] == Precision(16, 18, 16)
    assert all(
        a.weight_bits <= b.weight_bits and a.activation_bits <= b.activation_bits for a, b in pairwise(precisions)
    )


def test_chains_that_overflow_at_first_get_the_most_bits_that_fit() -> None:
    chain = cell("conv3 0, conv3 1", "conv3 2, skip 0")
    design = Design(Genotype(chain, chain), 3, 2, (1,), Shape(1, 8, 8), 10, conv_stack="paper")
    network = random_network(design)
    joints = trace(network, MEAN[:1], STD[:1], outline=True).joints
    with torch.no_grad():
        fused = trace(network, MEAN[:1], STD[:1], cuts=joints)
    at = partial(quantise, measure(fused, calibration_images(digits().train, 20)))
    with pytest.raises(SphynxError, match=r"bits|ring"):
        at(FIRST_TRY)
    found = coarsest_that_serves(at, allowed_error=1e-6)
    with pytest.raises(SphynxError, match=r"bits|ring"):
        at(automatic_precision(LEVELS[found.precision] + 1))


def test_bias_takes_up_the_mean_error_of_rounded_weights() -> None:
    """At six bits the sums of positive numbers would drift; each channel's mean stays where real numbers have it."""
    data = digits()
    pixels = calibration_images(data.train)
    network = learned()
    with torch.no_grad():
        fused = trace(network, data.mean, data.std)
    made = quantise(measure(fused, pixels), Precision(6, 10, 6))
    seen: dict[str, list[np.ndarray]] = {}

    def watch(step: Step, tensor: Array) -> None:
        seen.setdefault(step.name, []).append(tensor)

    evaluate(fused.graph, fused.weights, pixels.astype(np.float64), watch)
    evaluate(made.program, made.weights, pixels.astype(np.int64), watch)
    truncations = {step.source: step.truncate for step in made.program.steps if isinstance(step, Relu)}
    for step in made.program.linears:
        wanted, found = (tensor.mean(axis=(0, 2, 3)) for tensor in seen[step.name])
        truncate = truncations.get(step.name, 0)
        half = 1 << (truncate - 1) if truncate else 0
        assert np.abs(found - wanted * 2.0**step.scale - half).max() <= 0.5 + 1e-6


def test_logits_get_more_bits_where_theirs_alone_miss() -> None:
    """Kept to the ring of one small layer, their weights of eight bits would be off by more than is allowed, however
    many bits everything else gets."""
    torch.manual_seed(1)
    residual = Call(lambda m, x: torch.relu(m.branch(x)) + x, branch=nn.Conv2d(3, 3, 1))
    network = nn.Sequential(residual, Call(lambda _, x: x.mean(3)), nn.Flatten(), nn.Linear(27, 3))
    random = np.random.default_rng(1)
    light = random.uniform(64, 192, (12, 1, 1, 1))
    pixels = np.clip(light + random.uniform(-100, 100, (12, 3, 9, 12)), 0, 255).astype(np.uint8)
    read = read_torch(network.eval(), Shape(3, 9, 12), CompileSettings(mean=0.4, std=0.9))
    made = compile_walk(read.walk, read.mean, read.std, pixels)
    assert made.logit_error <= LOGIT_ERROR and made.program.ring_bits < 32
