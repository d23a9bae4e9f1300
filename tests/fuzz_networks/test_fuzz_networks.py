"""Random networks, each by one reader in turn, 90 in `make test` and 300 in `make test-all`: none is quiet and wrong.

`make fuzz-networks` draws more of them, and compiles each by all three readers."""

from __future__ import annotations

import pytest

from tests.fuzz_networks.networks import draw
from tests.fuzz_networks.report import LEAST_COMPILED, compiled_share, errors_of, lines
from tests.fuzz_networks.trial import READERS, attempt

FIRST_SEED, NETWORKS, PARTS, USUAL_PARTS = 0, 300, 10, 3


@pytest.mark.parametrize(
    "part",
    [pytest.param(part, marks=[] if part < USUAL_PARTS else pytest.mark.slow) for part in range(PARTS)],
)
def test_random_networks_are_compiled_right_or_refused(part: int) -> None:
    seeds = range(FIRST_SEED + part, FIRST_SEED + NETWORKS, PARTS)
    print(f"seeds {seeds}")
    outcomes = [found for seed in seeds for found in attempt(seed, (READERS[seed % len(READERS)],))]
    assert not errors_of(outcomes), "\n".join(lines(outcomes))
    assert compiled_share(outcomes) >= LEAST_COMPILED - 0.1, "\n".join(lines(outcomes))  # of thirty


@pytest.mark.parametrize("seed", [13273, 14806, 18284])
def test_a_pad_before_a_max_pool_is_judged_as_it_is(seed: int) -> None:
    """ONNX Runtime, when it optimises, answers for another network than the file's."""
    (found,) = attempt(seed, ("onnx",))
    assert found.verdict == "compiled", found


def test_a_seed_is_a_network() -> None:
    first, again = draw(7), draw(7)
    assert str(first.module) == str(again.module) and first.image == again.image
    pairs = zip(first.module.state_dict().values(), again.module.state_dict().values(), strict=True)
    assert all((one == other).all() for one, other in pairs)
    images, others = (drawn.pictures().train.images for drawn in (first, again))
    assert (images == others).all()


def test_networks_are_thin_square_and_padded_by_layers_of_their_own() -> None:
    drawn = [draw(seed) for seed in range(60)]
    shapes = [(each.image.height == 1, each.image.width == 1) for each in drawn]
    assert min(shapes.count(kind) for kind in ((True, False), (False, True), (False, False))) > 8
    kinds = {type(layer).__name__ for each in drawn for layer in each.module.modules()}
    assert {"ZeroPad2d", "ReflectionPad2d", "ConvTranspose2d", "MaxPool2d", "AvgPool2d", "Conv1d", "Call"} <= kinds
