"""Look at a network without compiling it: what it reads and gives, all that stands in the way, what it would cost.

Costs come from shapes alone, with guessed widths (program/cost/widths.py), and cuts for them as the compiler takes.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import torch

from sphynx.compiler.compile import FIRST_TRY
from sphynx.compiler.frontend.onnx.file import describe, load_graph
from sphynx.compiler.frontend.operators.network import OperatorNetwork, find_faults
from sphynx.compiler.frontend.readable import Readable
from sphynx.compiler.fusion.approximate import outlined
from sphynx.compiler.fusion.choose import choose_cuts
from sphynx.compiler.fusion.fuse import Fused, truncated_joint
from sphynx.compiler.settings import CompileSettings
from sphynx.core import rlwe
from sphynx.errors import InputError, OpenSizesError
from sphynx.program.backends import BACKENDS, Backend
from sphynx.program.cost.cost import total_cost
from sphynx.program.cost.deployment import RESIDUE_BYTES
from sphynx.program.cost.estimate import estimate
from sphynx.program.cost.kept_rates import kept_rates
from sphynx.program.cost.link import LINKS
from sphynx.program.cost.rates import REFERENCE, Rates
from sphynx.program.cost.widths import guess_bits, guess_program
from sphynx.program.ir import Program
from sphynx.record import Record

MOST_JOINTS = 40  # beyond, a choice of cuts takes longer than a look may: all of them are cut
SHOWN_LINKS = ("lan", "wan")


@dataclass(frozen=True)
class Blocker(Record):
    """Something that keeps a network from being compiled: where it is, and what to do."""

    what: str
    where: str
    remedy: str


@dataclass(frozen=True)
class PrivateCost(Record):
    """The estimated cost of one private inference."""

    backend: Backend
    link: str
    offline_seconds: float
    online_seconds: float
    offline_bytes: float
    online_bytes: float


@dataclass(frozen=True)
class Inspection(Record):
    """A network as `inspect_network` found it. Counts and costs are those of a network without blockers.

    >>> found: sphynx.Inspection = sphynx.inspect_network("runs/digits")
    >>> found.can_be_compiled, found.relus
    (True, 512)
    """

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    image: tuple[int, ...] = ()  # channels, height, width
    blockers: tuple[Blocker, ...] = ()
    notes: tuple[str, ...] = ()
    heads: tuple[str, ...] = ()  # of a file with blockers: outputs, and values before the blockers, that can be had
    relus: int = 0
    comparisons: int = 0
    truncations: int = 0
    he_products: int = 0
    ring_bits: int = 0  # guessed
    weight_bytes: int = 0  # that a server holds prepared weights in
    machine: str = ""  # whose rates the costs are
    costs: tuple[PrivateCost, ...] = ()

    @property
    def can_be_compiled(self) -> bool:
        return not self.blockers


def inspect_onnx(path: Path, settings: CompileSettings) -> Inspection:
    """Inspect a file. Open sizes that nobody gave are a blocker; what else there is is told for usual sizes."""
    try:
        inputs, outputs = describe(path)
    except InputError as error:
        return _blocked(path.stem, (), (), [error])
    faults: list[InputError] = []
    shape = settings.input_shape
    try:
        try:
            graph, feed = load_graph(path, shape, settings.inputs, settings.heads)
        except OpenSizesError as error:
            faults.append(error)
            graph, feed = load_graph(path, error.example, settings.inputs, settings.heads)
        others, heads = find_faults(graph, approximate=settings.approximate)
        faults += others
    except InputError as error:
        return _blocked(path.stem, inputs, outputs, [*faults, error])
    found = _blocked(path.stem, inputs, outputs, faults)
    found = replace(found, image=tuple(feed.image), notes=feed.notes, heads=heads if others else ())
    try:
        walk = partial(OperatorNetwork(graph, approximate=True).trace, *_plain(feed.image.channels))
        return priced(found, lambda cuts: outlined(walk(cuts=cuts, outline=True), settings.knees))
    except InputError as error:  # found behind the others
        return found if faults else _blocked(path.stem, inputs, outputs, [error])


def inspect_read(name: str, read: Callable[[], Readable], settings: CompileSettings) -> Inspection:
    """Inspect what a reader gives, or refuses."""
    try:
        readable = read()
    except InputError as error:
        return _blocked(name, (), (), [error])
    image = readable.outline.image
    found = Inspection(name, (f"image [n, {', '.join(map(str, image))}]",), (), tuple(image))

    def outline(cuts: Container[str]) -> Fused:
        return outlined(readable.walk(readable.mean, readable.std, cuts=cuts, outline=True), settings.knees)

    try:
        return priced(found, outline)
    except InputError as error:
        return replace(found, blockers=(_blocker(error),))


@torch.no_grad()
def priced(found: Inspection, outline: Callable[[Container[str]], Fused]) -> Inspection:
    """The inspection with counts, and with costs for each backend and link."""
    joints = outline(()).joints
    if len(joints) <= MOST_JOINTS:
        cuts: Container[str] = choose_cuts(outline, FIRST_TRY)
    else:
        cuts = frozenset(map(truncated_joint, joints))
    graph = outline(cuts).graph
    bits = guess_bits(graph, FIRST_TRY.weight_bits, FIRST_TRY.activation_bits, FIRST_TRY.link_bits)
    program = guess_program(graph, bits, FIRST_TRY.weight_bits)
    total, params = total_cost(program), rlwe.Params.for_ring(program.ring_bits)
    rates = kept_rates() or REFERENCE
    return replace(
        found,
        relus=program.relu_count,
        comparisons=program.comparison_count,
        truncations=total.truncations,
        he_products=total.he_products,
        ring_bits=program.ring_bits,
        weight_bytes=total.he_weights * RESIDUE_BYTES * params.n * len(params.primes),
        machine=rates.machine,
        costs=tuple(_cost(program, rates, backend, link) for backend in BACKENDS for link in SHOWN_LINKS),
    )


def _cost(program: Program, rates: Rates, backend: Backend, link: str) -> PrivateCost:
    total = estimate(program, rates, LINKS[link], backend).total
    return PrivateCost(
        backend, link, total.offline_seconds, total.online_seconds, total.offline_bytes, total.online_bytes
    )


def _plain(channels: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    return (0.0,) * channels, (1.0,) * channels


def _blocked(name: str, inputs: object, outputs: object, faults: list[InputError]) -> Inspection:
    assert isinstance(inputs, list | tuple) and isinstance(outputs, list | tuple)
    return Inspection(name, tuple(inputs), tuple(outputs), blockers=tuple(map(_blocker, faults)))


def _blocker(error: InputError) -> Blocker:
    return Blocker(error.what, error.where, error.remedy)
