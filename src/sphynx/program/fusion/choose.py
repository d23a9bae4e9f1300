"""Where a network is cut into chains of linear maps: by cost.

Fusing two convolutions saves a hop and ring bits; it costs a wider kernel and, where the outer one reads padding, terms
for the border. Every joint (fuse.py) can be cut instead. What a cut costs its cell depends on other cells only through
the ring's width, so for each of a few widths every cell takes its cheapest cuts that the width allows, and then the
cheapest width is taken. The price is the estimated time of one inference, offline and online: one core, a LAN, garbled
circuits, widths guessed from shapes, and a share of preparing the weights, which also stands for the memory they take.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from itertools import chain, combinations

from sphynx.program.cost.cost import layer_costs
from sphynx.program.cost.estimate import REFERENCE, layer_times
from sphynx.program.cost.link import LINKS
from sphynx.program.cost.widths import compared_tensors, guess_bits, guess_program
from sphynx.program.fusion.fuse import Fused
from sphynx.program.ir import MAX_RING_BITS, Program
from sphynx.program.quantise import Precision

Cuts = frozenset[str]
Outline = Callable[[Collection[str]], Fused]

RING_BITS = (*range(28, 48, 4), 48, 56, MAX_RING_BITS)
PREPARED_PRODUCT_SECONDS = 10e-6  # a weight polynomial's transform takes ten times that, and serves many inferences
_FEW_JOINTS = 3  # all their subsets are tried


def choose_cuts(outline: Outline, precision: Precision = Precision()) -> Cuts:
    """`outline` makes the network's outline with these cuts."""
    joints = outline(()).joints
    cells = {
        cell: Cuts(joint for joint in joints if _cell(joint) == cell) for cell in dict.fromkeys(map(_cell, joints))
    }
    search = _Search(outline, precision, cells)
    return min((search.best(ring_bits) for ring_bits in RING_BITS), key=lambda found: found[0])[1]


@dataclass(frozen=True)
class _Form:
    """A cell with some cuts: its linear maps, the bits that their widest range needs, the program in a ring."""

    layers: tuple[str, ...]
    bits: int
    program: Callable[[int], Program]


@dataclass
class _Search:
    outline: Outline
    precision: Precision
    cells: dict[str, Cuts]
    forms: dict[tuple[str, Cuts], _Form] = field(default_factory=dict)
    prices: dict[tuple[str, Cuts, int], float] = field(default_factory=dict)

    def best(self, most_bits: int) -> tuple[float, Cuts]:
        """The price of all cells and their cuts in the narrowest ring; infinite where some cell needs more bits."""
        chosen = {cell: self.best_cuts(cell, most_bits) for cell in self.cells}
        parts = [*chosen.items(), ("", Cuts())]
        ring_bits = min(most_bits, max(self.form(cell, cuts).bits for cell, cuts in parts))
        return sum(self.seconds(cell, cuts, ring_bits) for cell, cuts in parts), Cuts().union(*chosen.values())

    def best_cuts(self, cell: str, ring_bits: int) -> Cuts:
        """Ties go to fewer cuts. Of many joints the one whose flip helps most is flipped until none helps."""
        joints = sorted(self.cells[cell])

        def price(cuts: Cuts) -> float:
            return self.seconds(cell, cuts, ring_bits)

        if len(joints) <= _FEW_JOINTS:
            sizes = range(len(joints) + 1)
            return min(map(Cuts, chain.from_iterable(combinations(joints, size) for size in sizes)), key=price)
        found = Cuts()
        for start in (Cuts(), Cuts(joints)):
            best, before = start, None
            while best != before:
                before = best
                best = min((best, *(best ^ {joint} for joint in joints)), key=price)
            found = min((found, best), key=price)
        return found

    def seconds(self, cell: str, cuts: Cuts, ring_bits: int) -> float:
        """Of the cell alone; of all that belongs to no cell with joints where its name is empty."""
        key = (cell, cuts, ring_bits)
        if key not in self.prices:
            self.prices[key] = self.price(cell, cuts, ring_bits)
        return self.prices[key]

    def price(self, cell: str, cuts: Cuts, ring_bits: int) -> float:
        form = self.form(cell, cuts)
        if form.bits > ring_bits:
            return float("inf")
        program = form.program(ring_bits)
        costs = dict(layer_costs(program, form.layers))
        times = layer_times(program, costs, REFERENCE, LINKS["lan"], "gc")
        seconds = sum(time.offline_seconds + time.online_seconds for time in times)
        return seconds + sum(cost.he_products for cost in costs.values()) * PREPARED_PRODUCT_SECONDS

    def form(self, cell: str, cuts: Cuts) -> _Form:
        """All other cells are cut everywhere: their outlines are made fastest then."""
        if (cell, cuts) not in self.forms:
            others = (joints for name, joints in self.cells.items() if name != cell)
            graph = self.outline(cuts.union(*others)).graph
            precision = self.precision
            bits = guess_bits(graph, precision.weight_bits, precision.activation_bits, precision.link_bits)
            own = tuple(step.name for step in graph.linears if self.owner(step.name) == cell)
            compared = [name for name in compared_tensors(graph) if self.owner(name) == cell]
            self.forms[cell, cuts] = _Form(
                own,
                max((bits[name] for name in compared), default=0),
                lambda ring_bits: guess_program(graph, bits, precision.weight_bits, ring_bits),
            )
        return self.forms[cell, cuts]

    def owner(self, layer: str) -> str:
        cell = _cell(layer)
        return cell if cell in self.cells else ""


def _cell(name: str) -> str:
    return ".".join(name.split(".")[:2])
