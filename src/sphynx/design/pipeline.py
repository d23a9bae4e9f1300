"""From a data set and a ReLU budget to a trained network: plan, estimate, cells and their ranking, placement, training,
comparison.

    out/genotype.json  design.json  model.safetensors  normalisation.json   the network (of the first seed)
    out/result.json    accuracies beside random and published cells         out/stages.json   what is finished
    out/cells  out/ranking  out/placement  out/training/seed-N  out/comparison/*/seed-N   each stage's own runs

Cells and placement learn from the two halves of the training images. A search can end in cells that are worse than
random ones, so that what it found is ranked beside some of those and the published ones, by short trainings on part of
the training images that are scored on the rest. Nothing here is chosen by a number that was measured on test images: a
network meets them once, when its training has ended.
"""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Sequence
from pathlib import Path

from sphynx.data.images import Data
from sphynx.design.forecast import Forecast
from sphynx.design.outline import Outline
from sphynx.design.request import Request
from sphynx.design.results import ComparedTrainings, Comparison, DesignResult, Ranking, Row, row_of
from sphynx.design.retraining import retrainer
from sphynx.design.staged import StagedDesign
from sphynx.design.time_budget import Estimate
from sphynx.errors import InterruptedWorkError
from sphynx.network.stored import NORMALISATION
from sphynx.run.folder import RunFolder
from sphynx.run.stages import Stages
from sphynx.run.work import HERE, Work
from sphynx.search.placement.place import PlacementResult, place
from sphynx.search.ranking import random_cells, rank
from sphynx.search.search import SearchResult, search_cells
from sphynx.search.supernet.cellspace import CellSpace
from sphynx.space.account import relu_count
from sphynx.space.artifact import MODEL
from sphynx.space.design import Design
from sphynx.space.genotype import Genotype
from sphynx.space.published_cells import SPHYNX
from sphynx.space.tally import Shape
from sphynx.train.job import Job
from sphynx.train.processes import Processes
from sphynx.train.recipe import Recipe, with_epochs
from sphynx.train.results import RESULT, TrainSummary
from sphynx.train.runs import train_all

RANDOM, PUBLISHED = "random cells", "published cells"


class Pipeline(StagedDesign):
    """The pipeline of cells."""

    def __init__(
        self,
        request: Request,
        data: Data,
        out: Path,
        work: Work = HERE,
    ) -> None:
        """`work.sweep` runs what is independent: seeds, and the cells of a ranking's round."""
        self.request, self.data, self.out, self.work = request, data, out, work
        self.outline = Outline(request, Shape(*data.train.shape), data.classes)
        self.design, self.places = self.outline.design, self.outline.places
        self.forecast = Forecast(request, data, self.outline, work.device)
        decided = {"reduce_cells": len(self.design.reduce_positions), "data": data.identity()}
        asked = {**request.to_json(), **decided}
        self.stages = Stages(out, asked, resume=work.resume, preliminary=("estimate",), data=data.content)

    def estimates(self) -> tuple[Estimate, ...]:
        return self.forecast.estimates()

    def run(self) -> DesignResult:
        """All stages; what it returns it also writes to result.json."""
        try:
            return self._run({estimate.stage: estimate for estimate in self.schedule()})
        except KeyboardInterrupt:
            raise InterruptedWorkError(where=str(self.out)) from None

    def _run(self, plan: dict[str, Estimate]) -> DesignResult:
        request = self.request
        training = with_epochs(request.training, plan["training"].epochs)
        comparison = None
        if request.comparison is not None:
            comparison = with_epochs(request.comparison, plan["comparison"].epochs)

        genotype, label, ranking = request.genotype, self._own_label(), Ranking(())
        if request.strategy:
            self._announce("cells", plan)
            genotype = self.stages.run("cells", SearchResult, lambda: self._search(plan["cells"].epochs)).genotype
            if request.rivals:
                self._announce("ranking", plan)
                found = genotype
                ranking = self.stages.run("ranking", Ranking, lambda: self._rank(found, plan["ranking"]))
                genotype, label = ranking.ranking[0].genotype, ranking.ranking[0].label
        design = dataclasses.replace(self.design, genotype=genotype)
        if self.places:
            self._announce("placement", plan)
            unplaced = design
            placed = self.stages.run(
                "placement", PlacementResult, lambda: self._place(unplaced, plan["placement"].epochs)
            )
            design = dataclasses.replace(design, reduce_positions=placed.best)
        genotype.save(self.out / "genotype.json")
        design.save(self.out / "design.json")

        self._announce("training", plan)
        trained = self.stages.run(
            "training", TrainSummary, lambda: self._train([design] * request.seeds, training, "training")
        )
        first = self.out / "training" / f"seed-{request.seed}"
        for name in (MODEL, NORMALISATION):
            shutil.copy(first / name, self.out / name)  # with its mode: weights are for their owner

        rows: list[Row] = []
        if comparison is not None:
            self._announce("comparison", plan)
            compared = self.stages.run(
                "comparison", ComparedTrainings, lambda: self._compare(design, comparison, training)
            )
            rows = [row_of(label, compared.own or trained), *(row_of(*other) for other in compared.others.items())]
        return self._finish(design, training, Comparison(comparison, tuple(rows)), trained, label, ranking)

    def _search(self, epochs: int) -> SearchResult:
        recipe = dataclasses.replace(self.outline.search_recipe, epochs=epochs)
        return search_cells(self.data, self.request.strategy, recipe, self.out / "cells", self._work())

    def _rank(self, genotype: Genotype, planned: Estimate) -> Ranking:
        """Best first."""
        train = retrainer(self.data, self.request.training, self.out / "ranking", self._work())
        known, drawn = self._find_known(genotype), self._rivals(genotype)
        labels = {cells: label for label, cells in (known | drawn).items()}
        designs, voice = {cells: self._rank_cells(cells) for cells in labels}, self.work.voice

        def accuracy(cells: Genotype, length: int) -> float:  # may run elsewhere: it needs nothing else of this object
            voice.say(f"ranking, {labels[cells]}, {length} epochs", stage="design")
            return train(designs[cells], length)

        return Ranking(rank(known, drawn, accuracy, planned.epochs, planned.least_epochs, self.work.sweep))

    def _find_known(self, found: Genotype) -> dict[str, Genotype]:
        return {self._own_label(): found, PUBLISHED: SPHYNX}

    def _rivals(self, found: Genotype) -> dict[str, Genotype]:
        """Random cells, after those of the comparison: what is compared with must not have lost a ranking."""
        request = self.request
        drawn = list(random_cells(self._space(found), request.seeds + request.rivals, request.seed).items())
        return dict(drawn[request.seeds :])

    def _rank_cells(self, genotype: Genotype) -> Design:
        """Cells are ranked before they are placed: where they were searched."""
        return dataclasses.replace(self.outline.at_an_early_place, genotype=genotype)

    @staticmethod
    def _space(genotype: Genotype) -> CellSpace:
        return CellSpace(len(genotype.normal) + 3)

    def _place(self, design: Design, epochs: int) -> PlacementResult:
        recipe = dataclasses.replace(self.request.placing, epochs=epochs)
        return place(design, self.data, recipe, self.places, self.out / "placement", self._work())

    def _work(self) -> Work:
        return self.work.piece(self.request.seed)

    def _train(self, designs: Sequence[Design], recipe: Recipe, folder: str) -> TrainSummary:
        """One seed per design."""
        jobs = {
            f"{folder}, seed {seed}": self._job(design, recipe, folder, seed)
            for seed, design in enumerate(designs, self.request.seed)
        }
        return TrainSummary(train_all(jobs, self.work.sweep, self.work.voice))

    def _job(self, design: Design, recipe: Recipe, folder: str, seed: int) -> Job:
        return Job(
            design,
            self.data,
            recipe,
            self.out / folder / f"seed-{seed}",
            seed,
            resume=True,
            voice=self.work.voice,
            processes=Processes(self.work.device),
        )

    def _compare(self, design: Design, recipe: Recipe, training: Recipe) -> ComparedTrainings:
        own = None
        if recipe != training:
            own = self._train([design] * self.request.seeds, recipe, "comparison/own")
        others = {
            label: self._train(designs, recipe, f"comparison/{label.split()[0]}")
            for label, designs in self._others(design).items()
        }
        return ComparedTrainings(own, others)

    def _others(self, design: Design) -> dict[str, list[Design]]:
        """The same plan with other cells; every seed draws random cells of its own."""
        request = self.request
        drawn = random_cells(self._space(design.genotype), request.seeds, request.seed).values()
        others = {RANDOM: [dataclasses.replace(design, genotype=genotype) for genotype in drawn]}
        if design.genotype != SPHYNX:
            others[PUBLISHED] = [dataclasses.replace(design, genotype=SPHYNX)] * request.seeds
        return others

    def _own_label(self) -> str:
        if self.request.strategy:
            return f"searched cells ({self.request.strategy})"
        return PUBLISHED if self.request.genotype == SPHYNX else f"given cells ({self.request.genotype.name})"

    def _finish(
        self,
        design: Design,
        training: Recipe,
        comparison: Comparison,
        trained: TrainSummary,
        cells: str,
        ranking: Ranking,
    ) -> DesignResult:
        request = self.request
        result = DesignResult(
            data=self.data.name,
            data_source=self.data.source,
            relu_budget=request.relu_budget,
            relus=relu_count(design),
            channels=design.channels,
            depth=design.depth,
            reduce_positions=design.reduce_positions,
            placed_by=self._describe_placement(),
            cells=cells,
            ranking=ranking.short(),
            accuracy=trained.accuracy,
            accuracy_std=trained.accuracy_std,
            accuracies=trained.accuracies,
            seeds=trained.seeds,
            training=training,
            comparison=comparison,
            minutes=self.stages.minutes(),
        )
        RunFolder(self.out).write_json(RESULT, result.to_json())
        return result

    def _describe_placement(self) -> str:
        if self.places:
            return self.request.placing.method
        return "fixed" if self.request.placement == "fixed" else "given"
