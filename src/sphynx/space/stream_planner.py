"""From a ReLU budget to stream networks: one for each number of blocks, and a default choice with its reason.

Maps halve from half of the image's size down to 4 pixels or a few more. Most ReLUs go to the two smallest maps, where
one costs the fewest multiplications and sees the most of the image; an eighth to a quarter is before them. Blocks of a
stage share its ReLUs evenly, in channels that are multiples of 4 (of 8 at the two smallest maps), and what rounding
leaves goes to the last stage. The stream gets wider with the root of the budget and doubles at every reduction.

Images of 128 pixels or more begin with a stem of 9x9 and stride 4, and each of their last four maps rectifies, the
larger ones more in all and fewer channels each: X-rays show fine things, and the stream before a first ReLU is linear.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt

from sphynx.errors import InputError
from sphynx.space.choices import Borders
from sphynx.space.stream import STEM_KERNEL, Stage, Stem, StreamDesign
from sphynx.space.tally import Shape
from sphynx.units import percent

SMALLEST_MAP = 4
SMALL_IMAGES = 128  # below, the stem halves the image; from here on it quarters it
SMALL_STEM, LARGE_STEM = Stem(STEM_KERNEL, 2), Stem(9, 4)
# Blocks of the earlier stages together, the last but one and the last; then the first two's shares of the ReLUs. Of
# five blocks the first needs a quarter: with an eighth they are a point worse (docs/stream.md).
FORMS = (
    ((1, 2, 2), (0.25, 0.36)),
    ((1, 3, 3), (0.12, 0.42)),
    ((1, 3, 4), (0.12, 0.42)),
    ((1, 4, 4), (0.12, 0.42)),
    ((2, 4, 4), (0.20, 0.40)),
)
# Of large images: blocks of the last four stages, the shares of the ReLUs of all but the last, and the widths beside
# the last one's. 11,264 ReLUs in the first form were as good on chest X-rays as ResNet18's 754K, in one seed each.
LARGE_FORMS = (
    ((1, 1, 1, 2), (0.37, 0.275, 0.185)),
    ((1, 2, 2, 2), (0.37, 0.275, 0.185)),
    ((2, 2, 2, 3), (0.36, 0.28, 0.2)),
)
LARGE_WIDTHS = (1 / 4, 1 / 2, 2 / 3, 1.0)
LARGE_WIDTH_STEP = 16
REFERENCE_BUDGET, REFERENCE_WIDTH = 25_600, 256  # of the last stage
WIDTH_STEP = 64


@dataclass(frozen=True)
class StreamPlan:
    design: StreamDesign
    relus: int
    parameters: int
    macs: int
    chosen: bool = False


@dataclass(frozen=True)
class StreamPlanList:
    plans: tuple[StreamPlan, ...]
    reason: str
    relu_budget: int

    @property
    def chosen(self) -> StreamPlan:
        return next(plan for plan in self.plans if plan.chosen)

    @property
    def design(self) -> StreamDesign:
        return self.chosen.design


def plan_stream(
    relu_budget: int, tolerance: float, image: Shape, classes: int, borders: Borders = "halo", width: int = 0
) -> StreamPlanList:
    """Networks of at most `relu_budget` ReLUs, and at least that less the tolerance. `width`: of the last stage."""
    if min(image[1:]) < SMALL_IMAGES:
        designs = [_design(relu_budget, form, image, classes, borders, width) for form in FORMS]
    else:
        designs = [_large_design(relu_budget, form, image, classes, borders, width) for form in LARGE_FORMS]
    found = list(dict.fromkeys(design for design in designs if design is not None))
    within = [design for design in found if design.relus >= relu_budget * (1 - tolerance)]
    if not within:
        nearest = max((design.relus for design in found), default=0)
        raise InputError(
            f"no stream network has {relu_budget:,} ReLUs within {percent(tolerance, 1)} on {image} images",
            remedy=f"The nearest has {nearest:,}: use it as the budget, or raise `tolerance`."
            if nearest
            else "Raise `relu_budget`: a block at the smallest map needs at least 8 channels.",
        )
    best = within[0]
    plans = tuple(StreamPlan(d, d.relus, d.parameters, d.macs, d is best) for d in within)
    why = f"{best.blocks} blocks: the fewest, and each of them costs rounds of messages in private inference."
    return StreamPlanList(plans, why, relu_budget)


def _design(
    budget: int,
    form: tuple[tuple[int, int, int], tuple[float, float]],
    image: Shape,
    classes: int,
    borders: Borders,
    width: int,
) -> StreamDesign | None:
    """None where the budget has no room for this many blocks."""
    counts, (early_share, middle_share) = form
    number = _stage_count(image, SMALL_STEM.stride)
    last = width or _last_width(budget)
    widths = [max(1, last >> (number - 1 - stage)) for stage in range(number)]
    empty = StreamDesign(tuple(Stage(W, (1,)) for W in widths), image, classes, SMALL_STEM.stride, borders)
    pixels = [place.height * place.width for place in empty.maps]
    channels: list[tuple[int, ...]] = [() for _ in range(number)]
    left = budget
    if number > 2:
        # Of several early stages only the last rectifies: in the others one channel would take a whole large map.
        each = _even(budget * early_share / counts[0] / pixels[-3], 4)
        channels[-3] = (each,) * counts[0] if each else ()
        left -= sum(channels[-3]) * pixels[-3]
    if number > 1:
        each = _even(budget * middle_share / counts[1] / pixels[-2], 8)
        channels[-2] = (each,) * counts[1] if each else ()
        left -= sum(channels[-2]) * pixels[-2]
    channels[-1] = _share(left // pixels[-1], counts[2])
    stages = tuple(Stage(stage.width, own) for stage, own in zip(empty.stages, channels, strict=True))
    return replace(empty, stages=stages) if channels[-1] else None


def _large_design(
    budget: int,
    form: tuple[tuple[int, ...], tuple[float, ...]],
    image: Shape,
    classes: int,
    borders: Borders,
    width: int,
) -> StreamDesign | None:
    """Fill the last four stages; those before them only reduce. None where the budget has no room."""
    counts, shares = form
    number = _stage_count(image, LARGE_STEM.stride)
    last, bare = width or _last_width(budget), max(0, number - len(counts))
    parts = ((LARGE_WIDTHS[0],) * bare + LARGE_WIDTHS)[-number:]
    widths = [last if part == 1 else max(1, round(last * part / LARGE_WIDTH_STEP)) * LARGE_WIDTH_STEP for part in parts]
    empty = StreamDesign(
        tuple(Stage(W, (1,)) for W in widths), image, classes, LARGE_STEM.stride, borders, stem_kernel=LARGE_STEM.kernel
    )
    pixels = [place.height * place.width for place in empty.maps]
    channels: list[tuple[int, ...]] = [() for _ in range(number)]
    left = budget
    for stage in range(bare, number - 1):
        place = stage - number + len(counts)
        step, wanted = 8 if stage >= number - 2 else 4, budget * shares[place] / counts[place] / pixels[stage]
        each = round(wanted / step) * step or round(wanted)
        channels[stage] = (each,) * counts[place] if each else ()
        left -= sum(channels[stage]) * pixels[stage]
    channels[-1] = _share(left // pixels[-1], counts[-1])
    stages = tuple(Stage(stage.width, own) for stage, own in zip(empty.stages, channels, strict=True))
    return replace(empty, stages=stages) if channels[-1] else None


def _last_width(budget: int) -> int:
    return max(1, round(REFERENCE_WIDTH * sqrt(budget / REFERENCE_BUDGET) / WIDTH_STEP)) * WIDTH_STEP


def _stage_count(image: Shape, stride: int) -> int:
    size, count = -(-min(image[1:]) // stride), 1
    while -(-size // 2) >= SMALLEST_MAP:
        size, count = -(-size // 2), count + 1
    return count


def _even(channels: float, step: int) -> int:
    """Rounded down to the step; below it, whole numbers."""
    return int(channels) // step * step or int(channels)


def _share(channels: int, blocks: int) -> tuple[int, ...]:
    """Share channels as evenly as multiples of 8 allow, the rest in the last block: 728 in three is 256, 256, 216."""
    if channels < blocks:
        return ()
    each = -(-channels // blocks)
    each = -(-each // 8) * 8 if channels >= 8 * blocks * blocks else channels // blocks
    return (*(each,) * (blocks - 1), channels - each * (blocks - 1))
