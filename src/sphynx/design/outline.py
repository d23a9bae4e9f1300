"""The network that a request asks for, before anything is trained: its size, and where its reduce cells may stand.

The plan gives channels and depth with two reduce cells at D/3 and 2D/3. Places that the request names are taken; else
there are candidates for Algorithm 1, and an early place stands for the one that is still to be found: there cells are
searched and ranked, and stages are timed.
"""

from __future__ import annotations

import dataclasses
from functools import cached_property

from sphynx.design.request import Request
from sphynx.errors import InputError
from sphynx.search.choices import Candidates
from sphynx.search.placement.candidates import Placement, placements, placements_within
from sphynx.search.recipe import SearchRecipe
from sphynx.search.supernet.reductions import early_places, places_in_another_depth
from sphynx.space.account import account_of, relu_count
from sphynx.space.design import Design, default_reduce_positions
from sphynx.space.planner import PlanList, plan
from sphynx.space.tally import Shape

PAPERS_REDUCE_CELLS = 2
WIDEST_CELL = 640  # channels that a third reduce cell may make by default: 61M parameters at C=10, D=5
MOST_PARAMETERS = 1_500_000_000  # of all candidates of a placement: 18 GB of weights, gradients and momentum


class Outline:
    def __init__(self, request: Request, image: Shape, classes: int) -> None:
        self.request = request
        template = Design(
            request.genotype,
            2,
            3,
            default_reduce_positions(3),
            image,
            classes,
            stem=request.stem,
            conv_stack=request.conv_stack,
        )
        self.plans: PlanList = plan(template, request.relu_budget, request.tolerance)
        self.design = self.plans.chosen.design
        self.places: tuple[Placement, ...] = ()  # the candidates, where they are searched
        if request.placement == "search":
            self.places = self._places_within_budget()
            if self.reduce_cells != len(self.design.reduce_positions):  # what is timed is as wide as what is trained
                self.design = self.at_an_early_place
        elif request.placement != "fixed":
            self.design = self._place_by_hand(request.placement)
        self.search_recipe = self._at_the_networks_sizes(request.search) if request.strategy else request.search

    @cached_property
    def reduce_cells(self) -> int:
        """How many a search places."""
        return self.request.reduce_cells or usual_reduce_cells(self.plans.chosen.design, self.request.candidates)

    @property
    def at_an_early_place(self) -> Design:
        """The design where its cells are searched and ranked."""
        if not self.places:
            return self.design
        early = early_places(self.design.depth, self.reduce_cells)
        return dataclasses.replace(self.design, reduce_positions=early if early in self.places else self.places[0])

    def _at_the_networks_sizes(self, recipe: SearchRecipe) -> SearchRecipe:
        """The supernet has as many reduce cells as the network, at its places where these are known already."""
        if self.places:
            reduce_at = early_places(recipe.depth, self.reduce_cells)
        else:
            reduce_at = places_in_another_depth(self.design.reduce_positions, self.design.depth, recipe.depth)
        return dataclasses.replace(recipe, reduce_at=reduce_at)

    def _places_within_budget(self) -> tuple[Placement, ...]:
        """The plan has two reduce cells. More of them can have more ReLUs."""
        request = self.request
        return placements_within(
            self.design,
            placements(self.design.depth, self.reduce_cells, request.candidates),
            request.relu_budget * (1 + request.tolerance),
            f"the budget is {request.relu_budget:,}",
        )

    def _place_by_hand(self, place: Placement) -> Design:
        request, depth = self.request, self.design.depth
        try:
            design = dataclasses.replace(self.design, reduce_positions=place)
        except InputError as error:  # nothing else was changed: the places are at fault, not the design
            raise InputError(
                error.what,
                where="`reduce_at`",
                remedy=f"Write positions from 0 to {depth - 1} in ascending order, such as "
                f"{','.join(map(str, range(min(depth, 2))))}: the network has {depth} cells.",
            ) from None
        relus = relu_count(design)
        if relus > request.relu_budget * (1 + request.tolerance):
            raise InputError(
                f"with reduce cells at {','.join(map(str, place))} the network (C={design.channels}, D={design.depth}) "
                f"has {relus:,} ReLUs, the budget is {request.relu_budget:,}",
                where="`reduce_at`",
                remedy="Reduce later or less often, or use images whose size can be halved that often.",
            )
        return design


def usual_reduce_cells(design: Design, candidates: Candidates) -> int:
    """The paper's two, or three where that costs no ReLUs (sizes stay even), leaves maps of 4x4 pixels and a choice of
    places, and does not swell: every reduce cell makes four times the channels, and each candidate is a network of its
    own while they are placed. On CIFAR-100 a third one was worth 3 points (docs/experiments.md)."""
    _, *sides = design.feature_map
    even = all(side % 8 == 0 and side >= 8 * 4 for side in sides)
    if not even or design.depth < 5 or 4**3 * design.channels > WIDEST_CELL:
        return PAPERS_REDUCE_CELLS
    thrice = account_of(dataclasses.replace(design, reduce_positions=early_places(design.depth, 3))).total
    swells = len(placements(design.depth, 3, candidates)) * thrice.parameters > MOST_PARAMETERS
    return PAPERS_REDUCE_CELLS if swells else 3
