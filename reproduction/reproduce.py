"""Runs the rows of an experiment: cells and placements where a row asks for them, then trainings, seed by seed.

out/runs/NETWORK-HASH     one training: the hash is of design, data, recipe, seed and teacher
out/cells, out/places     cell searches and placement searches
out/EXPERIMENT.json, .svg what the experiment gave

Every piece of work is its own run folder, named by what it is. So whatever is finished is not run again, an interrupted
piece continues, and a network that several experiments share is trained once. On a cluster (`sweep`) the pieces of all
rows run at the same time, in three steps because each reads the one before, and the rows then find them finished.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from copy import copy
from functools import partial
from pathlib import Path

from reproduction.experiments import Experiment, Row
from reproduction.outcomes import SEARCHED, KeptResult, Ours, Outcome, cells_of
from reproduction.scales import Scale, design_of, shrunk
from sphynx.data.catalogue import CATALOGUE
from sphynx.data.images import Data
from sphynx.data.open import DIGITS, open_any
from sphynx.data.streamed import StreamedData
from sphynx.errors import InputError, NothingToRunError
from sphynx.network.trained import load_model
from sphynx.record import fingerprint
from sphynx.report.naming import DATA_SETS, describe_network
from sphynx.report.provenance import joined, provenance
from sphynx.run.environment import describe_environment
from sphynx.run.folder import RunFolder
from sphynx.run.progress import NORMAL, Voice
from sphynx.run.sweep import IN_TURN, Sweep
from sphynx.run.work import Work
from sphynx.search.placement.candidates import placements
from sphynx.search.placement.place import place
from sphynx.search.search import search_cells
from sphynx.space.artifact import MODEL
from sphynx.space.design import Design
from sphynx.space.files import AnyDesign
from sphynx.space.genotype import Genotype
from sphynx.space.tally import Shape
from sphynx.train.job import Job
from sphynx.train.processes import Processes
from sphynx.train.results import RESULT, TrainResult, TrainSummary
from sphynx.train.runs import train_all, train_unless_finished

STREAMED = "imagenet"
ENVIRONMENT, BETA, GENOTYPE = "environment.json", "beta.json", "genotype.json"


class NotFinishedError(Exception):
    """The work is not there and was not asked for."""


class DataSets:
    """The paper's data sets, wherever they are here: `given` maps a name (or "" for every one) to a word or path."""

    def __init__(self, given: Mapping[str, str], scale: Scale) -> None:
        self.given, self.scale = given, scale
        self._opened: dict[tuple[str, int | None, bool], Data | StreamedData] = {}

    def open(self, name: str) -> Data | StreamedData:
        spec = self.given.get(name) or self.given.get("")
        if spec is None and self.scale.small:
            spec = DIGITS
        if spec is None and name not in CATALOGUE:
            raise InputError(
                f"{name} is not given", where=f"--scale {self.scale.name}", remedy=f"Give --data {name}=FOLDER."
            )
        spec = spec or name
        stream = name == STREAMED and spec != DIGITS
        size = None if spec == DIGITS else DATA_SETS[name][0].height
        if (spec, size, stream) not in self._opened:
            self._opened[spec, size, stream] = open_any(spec, image_size=size, stream=stream)
        return self._opened[spec, size, stream]


class Reproduction:
    def __init__(
        self,
        scale: Scale,
        data: DataSets,
        out: Path,
        *,
        processes: Processes,
        seeds: int | None = None,
        kept: list[KeptResult] | None = None,
        run: bool = True,
        voice: Voice = NORMAL,
        sweep: Sweep = IN_TURN,
    ) -> None:
        self.sweep = sweep
        self.scale, self.data, self.out, self.processes = scale, data, out, processes
        self.seeds = seeds or scale.seeds
        self.kept, self.run_missing, self.voice = kept or [], run, voice
        self.present = describe_environment(processes.device)

    def run(self, experiment: Experiment) -> list[Outcome]:
        here = self
        if self.run_missing and self.sweep.may_repeat:
            here = copy(self)
            here.sweep = IN_TURN  # what travels must not hold the cluster; and the rows then find all work finished
            self._run_at_once(experiment, here)
        outcomes = []
        for number, row in enumerate(experiment.rows, 1):
            if self.run_missing and self.processes.leads:
                at = f"{number}/{len(experiment.rows)}"
                self.voice.say(f"{experiment.name} {at}: {row.series}, {row.label}", stage="reproduce")
            outcomes.append(here.outcome(row, experiment))
        if self.run_missing and self.processes.leads and all(o.ours is None for o in outcomes):
            raise NothingToRunError(
                f"no row could be run: {outcomes[0].missing}",
                where=experiment.name,
                remedy="Give --data NAME=FOLDER, or --no-run for the paper's values alone.",
            )
        return outcomes

    def _run_at_once(self, experiment: Experiment, alone: Reproduction) -> None:
        """Run independent pieces at once. What several rows share is one piece: two tasks must not write one folder."""
        rows = [(row, data) for row in experiment.rows if (data := self._data_to_run(row)) is not None]
        self.sweep.map(
            {
                f"cells of {row.cells}, {row.data}": partial(alone._search_cells, row, data)
                for row, data in rows
                if _searches_cells(row)
            }
        )
        designed = [(row, data, self._design(row, data)) for row, data in rows]
        self.sweep.map(
            {
                f"places {self._places_folder(design, data).name}": partial(alone._beta, row, data)
                for row, data, design in designed
                if row.beta is not None
            }
        )
        if any(row.distilled for row, _ in rows):
            first = {row.data: data for row, data in rows if row.distilled}
            teachers = [self._teacher(data, experiment) for data in first.values()]
            train_all({f"teacher {teacher.out.name}": teacher for teacher in teachers}, self.sweep)
        jobs: dict[Path, tuple[str, Job]] = {}
        for row, data, design in designed:
            for seed in range(self.seeds):
                job = self._job(row, design, data, seed, experiment)
                jobs.setdefault(job.out, (f"{row.series} {row.label}, seed {seed}", job))
        train_all(dict(jobs.values()), self.sweep)

    def _data_to_run(self, row: Row) -> Data | StreamedData | None:
        """None for a row that is left out; the row itself says why."""
        try:
            data = self._data(row)
        except _LeftOutError:
            return None
        return None if self.scale.left_out(row, data.train.shape[1]) else data

    def outcome(self, row: Row, experiment: Experiment) -> Outcome:
        kept = tuple(found for file in self.kept if (found := file.of(row, self.present)) is not None)
        try:
            return Outcome(row, self._row(row, experiment), kept=kept)
        except NotFinishedError:
            return Outcome(row, None, "not run yet", kept)
        except _LeftOutError as left_out:
            return Outcome(row, None, str(left_out), kept)

    def _row(self, row: Row, experiment: Experiment) -> Ours:
        data = self._data(row)
        if reason := self.scale.left_out(row, data.train.shape[1]):
            raise _LeftOutError(reason)
        design = self._design(row, data)
        jobs = [self._job(row, design, data, seed, experiment) for seed in range(self.seeds)]
        for job in jobs:
            self._require_finished(job)
        summary = TrainSummary(
            train_all({f"{row.series} {row.label}, seed {job.seed}": job for job in jobs}, self.sweep)
        )
        if not self.processes.leads:
            raise _LeftOutError("another process has the result")
        spread = summary.accuracy_std
        beta, search_minutes = ((), None) if row.beta is None else self._beta(row, data)
        made = [provenance(RunFolder(job.out).read_json(ENVIRONMENT), self.present) for job in jobs]
        return Ours(
            describe_network(design),
            data.name,
            design.account.total.relus,
            100 * summary.accuracy,
            None if spread is None else 100 * spread,
            len(jobs),
            jobs[0].recipe.epochs,
            joined(made),
            beta,
            tuple(str(job.out) for job in jobs),
            summary.minutes / len(jobs),
            search_minutes,
        )

    def _data(self, row: Row) -> Data | StreamedData:
        try:
            return self.data.open(row.data)
        except InputError as error:
            if not self.run_missing:
                raise NotFinishedError from None
            raise _LeftOutError(f"{error} ({error.remedy})") from None

    def _design(self, row: Row, data: Data | StreamedData) -> AnyDesign:
        cells = self._search_cells(row, data) if _searches_cells(row) else cells_of(row)
        return design_of(shrunk(row) if self.scale.small else row, Shape(*data.train.shape), data.classes, cells)

    def _job(self, row: Row, design: AnyDesign, data: Data | StreamedData, seed: int, experiment: Experiment) -> Job:
        job = Job(
            design,
            data,
            self.scale.recipe(row),
            self.out,
            seed,
            resume=True,
            voice=self.voice,
            processes=self.processes,
        )
        if row.distilled:
            taught_by = self._teacher(data, experiment)
            self._train(taught_by)
            self.processes.wait()
            job = job.taught_by(load_model(taught_by.out))
        words = describe_network(design).lower().replace(",", "-").replace("=", "").split()
        return dataclasses.replace(job, out=self.out / "runs" / f"{'-'.join(words)}-{job.belongs_to()[:10]}")

    def _teacher(self, data: Data | StreamedData, experiment: Experiment) -> Job:
        row = next(other for other in experiment.rows if "inner_relus" in other.options)
        return self._job(row, self._design(row, data), data, 0, experiment)

    def _train(self, job: Job) -> TrainResult:
        self._require_finished(job)
        return train_unless_finished(job)

    def _require_finished(self, job: Job) -> None:
        """Raise for an unfinished job where nothing is run."""
        if not self.run_missing and not ((job.out / RESULT).is_file() and (job.out / MODEL).is_file()):
            raise NotFinishedError

    def _search_cells(self, row: Row, data: Data | StreamedData) -> Genotype:
        """Cells with N nodes, searched on this data as the paper searched its own: by DARTS."""
        recipe = self.scale.search_recipe(int(row.cells.partition(":")[2]))
        images = self._in_memory(data)
        name = fingerprint(recipe.to_json(), data.identity())
        folder = self.out / "cells" / f"nodes-{recipe.nodes}-{name[:10]}"
        if not (folder / RESULT).is_file():
            self._require_work()
            search_cells(images, "darts", recipe, folder, Work(device=self.processes.device, voice=self.voice))
        return Genotype.load(folder / GENOTYPE)

    def _beta(self, row: Row, data: Data | StreamedData) -> tuple[tuple[float, ...], float | None]:
        """The probability that Algorithm 1 gives the row's placement, epoch by epoch; the minutes of its search."""
        design = self._design(row, data)
        assert isinstance(design, Design)
        start = dataclasses.replace(design, reduce_positions=(0, 1))
        recipe = self.scale.placement_recipe()
        places = placements(design.depth, 2, "paper")
        folder = self._places_folder(design, data)
        if not (folder / BETA).is_file():
            self._require_work()
            place(
                start,
                self._in_memory(data),
                recipe,
                places,
                folder,
                Work(device=self.processes.device, voice=self.voice),
            )
        found = RunFolder(folder).read_json(BETA)
        number = found["placements"].index(list(design.reduce_positions))
        return tuple(float(epoch[number]) for epoch in found["beta_hat"]), found.get("minutes")

    def _places_folder(self, design: AnyDesign, data: Data | StreamedData) -> Path:
        assert isinstance(design, Design)
        start = dataclasses.replace(design, reduce_positions=(0, 1))
        name = fingerprint(start.to_json(), self.scale.placement_recipe().to_json(), data.identity())
        return self.out / "places" / f"c{design.channels}-d{design.depth}-{name[:10]}"

    def _require_work(self) -> None:
        if not self.run_missing:
            raise NotFinishedError
        if self.processes.world > 1:
            raise InputError("a search runs in one process", remedy="Run this experiment without torchrun.")

    @staticmethod
    def _in_memory(data: Data | StreamedData) -> Data:
        if isinstance(data, StreamedData):
            raise InputError("a search needs images in memory", where=data.name, remedy="Use CIFAR-100.")
        return data


def _searches_cells(row: Row) -> bool:
    return row.cells.startswith(SEARCHED)


class _LeftOutError(Exception):
    """Why a row is not run."""
