"""Choose by cost where a network is cut into chains of linear maps.

Fusing two convolutions saves a hop and ring bits; it costs a wider kernel, terms for the border where the outer one
reads padding, and in a residual stream one convolution for each earlier block. Every joint (fuse.py) can be cut
instead: into a chain, which widens the ring, or into a chain with a truncation, which takes messages.

Joints that a linear map may read together are an island; what a cut costs depends on other islands only through the
ring's width. So for each of a few widths every island takes its cheapest cuts that the width allows, and then the
cheapest width is taken. Widths are guessed from shapes; cost/deployment.py says what the price is for.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice, product

from sphynx.compiler.fusion.affine import keeping_outlines
from sphynx.compiler.fusion.fuse import Fused, truncated_joint
from sphynx.compiler.fusion.graph_builder import SUM_SUFFIX
from sphynx.compiler.precision import Precision
from sphynx.errors import InputError
from sphynx.program.backends import BACKENDS, Backend
from sphynx.program.cost.cost import LayerCost, layer_costs
from sphynx.program.cost.deployment import ONLINE_WEIGHT, Deployment
from sphynx.program.cost.estimate import layer_times
from sphynx.program.cost.rates import REFERENCE
from sphynx.program.cost.widths import guess_bits, guess_program, guess_ring
from sphynx.program.ir import MAX_RING_BITS, Combine, Graph, Program

Cuts = frozenset[str]
States = tuple[int, ...]  # of joints: 0 fused, 1 cut, 2 cut and truncated
Outline = Callable[[Collection[str]], Fused]

RING_BITS = (*range(28, 48, 4), 48, 56, MAX_RING_BITS)
_FEW_JOINTS = 2  # all their states are tried
_PATIENCE = 4  # widths: a link of a chain takes a dozen bits


@keeping_outlines()
def choose_cuts(outline: Outline, precision: Precision = Precision(), deployment: Deployment = Deployment()) -> Cuts:
    """`outline` makes the network's outline with these cuts."""
    joints = outline(()).joints
    if not joints:
        return Cuts()
    search = _Search(outline, precision, deployment, find_islands(outline, joints))
    backend = deployment.backend or search.cheaper_backend()
    held = (True,) if deployment.memory_bytes is None else (True, False)
    best: tuple[float, Cuts] = (float("inf"), Cuts())
    worse = 0  # widths in a row that made nothing cheaper
    for ring_bits in RING_BITS:
        found = min((search.plan(ring_bits, backend, held=h) for h in held), key=lambda plan: plan[0])
        worse = 0 if found[0] < best[0] else worse + (best[0] < float("inf"))
        best = min(best, found, key=lambda plan: plan[0])
        if worse == _PATIENCE or all(form.ring_bits <= ring_bits for form in search.forms.values()):
            break  # a wider ring pays no more, or allows no more
    return best[1]


@dataclass(frozen=True)
class _Form:
    """An island with some cuts: its linear maps, the ring that it needs, the program in a ring."""

    layers: tuple[str, ...]
    ring_bits: int
    program: Callable[[int], Program]


@dataclass(frozen=True)
class _Pricing:
    ring_bits: int
    backend: Backend
    held: bool  # whether weights are held in memory or transformed for each preparation


@dataclass
class _Search:
    outline: Outline
    precision: Precision
    deployment: Deployment
    islands: Islands
    forms: dict[tuple[int, Cuts], _Form] = field(default_factory=dict)
    costs: dict[tuple[int, Cuts, int], dict[str, LayerCost]] = field(default_factory=dict)
    prices: dict[tuple[int, Cuts, _Pricing], float] = field(default_factory=dict)
    last: dict[int, States] = field(default_factory=dict)  # of each island, what was best before

    def plan(self, most_bits: int, backend: Backend, *, held: bool) -> tuple[float, Cuts]:
        """The price of all islands and their cuts in the narrowest ring; infinite where one needs more bits, or has no
        form that fits a ciphertext."""
        pricing = _Pricing(most_bits, backend, held)
        chosen = [self.best_cuts(island, pricing) for island in range(len(self.islands.joints))]
        parts = [(self.islands.rest, Cuts()), *enumerate(chosen)]
        ring_bits = max(self.form(island, cuts).ring_bits for island, cuts in parts)
        if ring_bits > most_bits:
            return float("inf"), Cuts()
        pricing = _Pricing(ring_bits, backend, True)
        seconds = sum(self.seconds(island, cuts, pricing) for island, cuts in parts)
        if seconds == float("inf"):
            return seconds, Cuts()
        weights = sum(c.he_weights for island, cuts in parts for c in self.cost(island, cuts, ring_bits).values())
        beyond = max(0.0, weights - self.deployment.held_weights(ring_bits))
        return seconds + beyond * self.deployment.weight_seconds(held=False), Cuts().union(*chosen)

    def cheaper_backend(self) -> Backend:
        """The backend that is cheaper with every joint truncated: cuts change little of what ReLUs cost."""
        parts = [(self.islands.rest, Cuts())]
        parts += [(n, _cuts(own, (2,) * len(own))) for n, own in enumerate(self.islands.joints)]
        ring_bits = max(self.form(island, cuts).ring_bits for island, cuts in parts)

        def seconds(backend: Backend) -> float:
            return sum(self.seconds(island, cuts, _Pricing(ring_bits, backend, True)) for island, cuts in parts)

        return min(BACKENDS, key=seconds)

    def best_cuts(self, island: int, pricing: _Pricing) -> Cuts:
        """Ties go to fewer cuts. Of many joints one after the other takes its best state, until none changes."""
        joints = self.islands.joints[island]

        def price(cuts: Cuts) -> float:
            return self.seconds(island, cuts, pricing)

        if len(joints) <= _FEW_JOINTS:
            return min((_cuts(joints, states) for states in product(range(3), repeat=len(joints))), key=price)
        fused = (0,) * len(joints)
        found = [_descend(joints, start, price) for start in (fused, self.last.get(island, (2,) * len(joints)))]
        self.last[island] = min(found, key=lambda states: price(_cuts(joints, states)))
        return _cuts(joints, self.last[island])

    def seconds(self, island: int, cuts: Cuts, pricing: _Pricing) -> float:
        """Price the island alone, or all that belongs to none."""
        key = (island, cuts, pricing)
        if key not in self.prices:
            self.prices[key] = self.price(island, cuts, pricing)
        return self.prices[key]

    def price(self, island: int, cuts: Cuts, pricing: _Pricing) -> float:
        form, deployment = self.form(island, cuts), self.deployment
        if form.ring_bits > pricing.ring_bits:
            return float("inf")
        try:
            costs = self.cost(island, cuts, pricing.ring_bits)
        except InputError:  # a kernel of this form does not fit a ciphertext
            return float("inf")
        program = form.program(pricing.ring_bits)
        times = layer_times(program, costs, REFERENCE, deployment.link, pricing.backend, deployment.bundles)
        weights = sum(cost.he_weights for cost in costs.values())
        seconds = sum(time.offline_seconds + ONLINE_WEIGHT * time.online_seconds for time in times)
        return seconds + weights * deployment.weight_seconds(held=pricing.held)

    def cost(self, island: int, cuts: Cuts, ring_bits: int) -> dict[str, LayerCost]:
        key = (island, cuts, ring_bits)
        if key not in self.costs:
            form = self.form(island, cuts)
            self.costs[key] = dict(layer_costs(form.program(ring_bits), form.layers))
        return self.costs[key]

    def form(self, island: int, cuts: Cuts) -> _Form:
        """All other islands are truncated everywhere: their rings are narrowest then, and their outlines fast."""
        key = (island, cuts)
        if key not in self.forms:
            others = (truncated_joint(joint) for joint in self.islands.others(island))
            graph = self.outline(cuts.union(others)).graph
            self.forms[key] = self._form(island, graph)
        return self.forms[key]

    def _form(self, island: int, graph: Graph) -> _Form:
        precision = self.precision
        bits = guess_bits(graph, precision.weight_bits, precision.activation_bits, precision.link_bits)
        programs: dict[int, Program] = {}

        def program(ring_bits: int) -> Program:
            if ring_bits not in programs:
                programs[ring_bits] = guess_program(graph, bits, precision.weight_bits, ring_bits)
            return programs[ring_bits]

        own = tuple(step.name for step in graph.linears if self.islands.owner(step.name, island) == island)
        return _Form(own, guess_ring(graph, bits, precision.weight_bits), program)


def _descend(joints: Sequence[str], states: States, price: Callable[[Cuts], float]) -> States:
    best, before = price(_cuts(joints, states)), None
    while best != before:
        before = best
        for number in range(len(joints)):
            tried = [(*states[:number], state, *states[number + 1 :]) for state in range(3)]
            states = min(tried, key=lambda chosen: price(_cuts(joints, chosen)))
        best = price(_cuts(joints, states))
    return states


def _cuts(joints: Sequence[str], states: States) -> Cuts:
    both = zip(joints, states, strict=True)
    return Cuts(joint if state == 1 else truncated_joint(joint) for joint, state in both if state)


@dataclass(frozen=True)
class Islands:
    """Joints that depend on one another: those that one linear map or sum may read, directly or through public
    maps."""

    joints: tuple[tuple[str, ...], ...]  # of each island, in the order of evaluation
    owners: dict[str, int]  # of the linear maps of the graph that is cut everywhere

    @property
    def rest(self) -> int:
        """Stands for what belongs to no island."""
        return len(self.joints)

    def others(self, island: int) -> Iterator[str]:
        return (joint for number, own in enumerate(self.joints) if number != island for joint in own)

    def owner(self, name: str, made_by: int) -> int:
        """The island of a linear map; one that exists only where an island is not cut everywhere is that island's."""
        return self.owners.get(name.removesuffix(SUM_SUFFIX), made_by)


def find_islands(outline: Callable[[Collection[str]], Fused], joints: Sequence[str]) -> Islands:
    """`outline` makes the network's outline with these cuts."""
    cut = outline(joints)
    groups = _Groups(joints)
    of_maps: dict[str, str] = {}  # for each linear map that has to do with joints, one of them
    for step in cut.graph.linears:
        beside = cut.graph.origins[step.name.removesuffix(SUM_SUFFIX)]  # a sum takes earlier joints as they are
        behind = {step.name}.union(beside, *(cut.graph.origins[source] for source in step.sources))
        touched = groups.joints_among(behind)
        groups.unite(touched)
        if touched:
            of_maps[step.name] = touched[0]
    for total in cut.graph.steps:
        if isinstance(total, Combine):  # fused, what it takes is one map
            groups.unite(groups.joints_among(cut.graph.origins[total.name]))
    # Some are joints only where an earlier one is not cut.
    for number, joint in enumerate(joints):
        if joint not in cut.joints:
            earlier = (other for other in reversed(joints[:number]) if joint in outline({*joints} - {other}).joints)
            groups.unite([joint, *islice(earlier, 1)])
    numbers = {first: number for number, first in enumerate(dict.fromkeys(map(groups.root, joints)))}
    found = tuple(tuple(joint for joint in joints if numbers[groups.root(joint)] == n) for n in range(len(numbers)))
    owners = {
        step.name.removesuffix(SUM_SUFFIX): numbers[groups.root(of_maps[step.name])]
        if step.name in of_maps
        else len(found)
        for step in cut.graph.linears
    }
    return Islands(found, owners)


class _Groups:
    """Joints that were united, each group known by one of them."""

    def __init__(self, joints: Sequence[str]) -> None:
        self._roots = {joint: joint for joint in joints}

    def root(self, joint: str) -> str:
        while self._roots[joint] != joint:
            joint = self._roots[joint]
        return joint

    def unite(self, joints: Sequence[str]) -> None:
        for joint in joints[1:]:
            self._roots[self.root(joint)] = self.root(joints[0])

    def joints_among(self, maps: Collection[str]) -> list[str]:
        return [joint for name in sorted(maps) if (joint := name.removesuffix(SUM_SUFFIX)) in self._roots]
