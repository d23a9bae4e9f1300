"""Joints that depend on one another: those that one linear map or sum may read, directly or through public maps."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from sphynx.compiler.fusion.fuse import Fused
from sphynx.compiler.fusion.graph_builder import SUM_SUFFIX
from sphynx.program.ir import Combine


@dataclass(frozen=True)
class Islands:
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
