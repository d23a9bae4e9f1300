"""Judge what our kept runs say about a claim: reproduced, not reproduced, undecided, or not run.

    pairs        one kind of network beats another (`pairs`)
    early        placements that reduce early beat the others (`grids`)
    choice       Algorithm 1 takes the best placement, and so it does with rivals by probability (`grids`)
    flat         networks are equally good (`levels`)
    accuracies   networks are as good as printed (`levels`)

Differences are judged beside the smallest that their runs can show (`reproduction.deviation`), by the rules of
docs/results/rules.md. Where no network was trained with two seeds, nothing is decided. Where no cells were trained
beside random ones in the paper's network, rankings of short trainings say what they can.
"""

from __future__ import annotations

from collections.abc import Sequence

from reproduction.deviation import Deviations
from reproduction.experiments import Experiment
from reproduction.kept_searches import KeptPlacement, RankedCells
from reproduction.outcomes import RANDOM, Outcome
from reproduction.verdicts.grids import judge_choice, judge_early
from reproduction.verdicts.levels import judge_accuracies, judge_range
from reproduction.verdicts.pairs import judge_pairs, judge_rankings
from reproduction.verdicts.verdict import Verdict

__all__ = ["Verdict", "verdict_on"]


def verdict_on(
    experiment: Experiment,
    outcomes: Sequence[Outcome],
    deviations: Deviations,
    placements: Sequence[KeptPlacement] = (),
    rankings: Sequence[RankedCells] = (),
) -> Verdict:
    if not any(outcome.kept for outcome in outcomes):
        judged = Verdict("not run", ("none of its networks was trained here",))
    elif not deviations:
        return Verdict("undecided", ("no network was trained with two seeds: no difference can be judged",))
    else:
        judged = _judge_trainings(experiment, outcomes, deviations, placements)
    beside_random = any(outcome.row.cells.startswith(RANDOM) for outcome in outcomes)
    if judged.word == "not run" and beside_random and rankings and deviations:
        return judge_rankings(outcomes[0].row.cells, rankings, deviations.of_all())
    return judged


def _judge_trainings(
    experiment: Experiment, outcomes: Sequence[Outcome], deviations: Deviations, placements: Sequence[KeptPlacement]
) -> Verdict:
    match experiment.judged:
        case "pairs":
            return judge_pairs(outcomes, experiment.ahead or outcomes[0].row.series, deviations)
        case "early":
            return judge_early(outcomes, deviations)
        case "choice":
            return judge_choice(outcomes, placements, deviations)
        case "likely-choice":
            return judge_choice(outcomes, placements, deviations, rivals="likely")
        case "flat":
            return judge_range(outcomes, deviations)
        case "accuracies":
            return judge_accuracies(outcomes, deviations)
