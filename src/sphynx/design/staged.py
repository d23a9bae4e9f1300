"""The part that the pipelines of all families have in common: stages with estimates, which say when they begin."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path

from sphynx.design.results import Schedule
from sphynx.design.time_budget import Estimate
from sphynx.errors import InterruptedWorkError
from sphynx.run.stages import Stages
from sphynx.run.work import Work
from sphynx.units import duration


class StagedDesign(ABC):
    """Call `schedule`, then `run`. A finished stage of a resumed run gives what it gave before."""

    stages: Stages
    out: Path
    work: Work

    @abstractmethod
    def estimates(self) -> tuple[Estimate, ...]:
        """Measure how long each stage will take; with a time budget, with epochs that fit it."""

    def schedule(self) -> tuple[Estimate, ...]:
        """Give what was estimated when the run began."""
        try:
            return self.stages.run("estimate", Schedule, lambda: Schedule(self.estimates())).stages
        except KeyboardInterrupt:
            raise InterruptedWorkError(where="estimate") from None

    def _announce(self, stage: str, plan: Mapping[str, Estimate]) -> None:
        if self.stages.finished(stage):
            self._say(f"{stage}: finished before")
            return
        names = list(plan)
        left = sum(plan[name].seconds for name in names[names.index(stage) :])
        self._say(
            f"{stage} (stage {names.index(stage) + 1} of {len(names)}): about {duration(plan[stage].seconds)}, "
            f"{duration(left)} left in all"
        )

    def _say(self, text: str) -> None:
        self.work.voice.say(text, stage="design")
