"""Prints docs/results/paper.md: every experiment of the paper beside our kept runs, and a verdict on each claim.

python docs/make_paper_results.py > docs/results/paper.md        (or: make docs)
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from sphynx.report.paper.experiments import EXPERIMENTS, Experiment, Row
from sphynx.report.paper.outcomes import KeptResult, Ours, Outcome, read_kept
from sphynx.report.paper.verdicts import SPREAD, Verdict, verdict_on

RESULTS = Path(__file__).parents[1] / "results"
FOLDERS = ("cifar100", "paper", "tiny-imagenet")  # those of trainings; a folder that is not there holds nothing yet

HEADER = f"""# The paper beside ours

Every experiment of *Sphynx: ReLU-Efficient Network Design for Private Inference* with what the paper prints, what
our kept runs (`results/`) gave for the same network, and where their settings are not the paper's. `make docs`
writes this page; `sphynx reproduce NAME` runs what is missing. Accuracies are of the test images at the final
epoch; of several runs with equal settings the mean and their number. The paper's are means of three seeds where its
table says so, and its released code reports the best test epoch.

Verdicts: a claim that one network beats another is *reproduced* where ours does by at least {SPREAD} points under
equal settings, *not reproduced* where it loses by as much, *undecided* between. A claim about accuracies counts
runs in the paper's own setting only. *Not run* says that nothing here bears on it.
"""


def page() -> str:
    kept = read_kept([RESULTS / name for name in FOLDERS if (RESULTS / name).is_dir()])
    judged = {}
    for experiment in EXPERIMENTS.values():
        outcomes = [_outcome(row, kept) for row in experiment.rows]
        judged[experiment.name] = (experiment, outcomes, verdict_on(experiment, outcomes))
    table = [
        f"| [{name}](#{name}) | {experiment.claim} | **{verdict.word}** |"
        for name, (experiment, _, verdict) in judged.items()
    ]
    parts = [HEADER, "| experiment | the paper's claim | verdict |", "|---|---|---|", *table, ""]
    for name, (experiment, outcomes, verdict) in judged.items():
        parts += _section(name, experiment, outcomes, verdict)
    return "\n".join(parts)


def _outcome(row: Row, kept: list[KeptResult]) -> Outcome:
    found = tuple(ours for file in kept if (ours := file.of(row, {})) is not None)
    return Outcome(row, None, "", found)


def _section(name: str, experiment: Experiment, outcomes: list[Outcome], verdict: Verdict) -> Iterator[str]:
    yield f"## {name}\n\n{experiment.title} ({experiment.rows[0].source}). The paper: {experiment.claim}\n"
    yield f"**{verdict.word.capitalize()}**: {verdict.why}.\n"
    yield "| series | network | paper | ours | unlike the paper |\n|---|---|---|---|---|"
    for outcome in outcomes:
        row = outcome.row
        paper = f"{row.accuracy:.2f}" + ("" if row.std is None else f" ± {row.std:.2f}")
        if not outcome.kept:
            yield f"| {row.series} | {row.label} | {paper} | not run | |"
        for differs, runs in _by_settings(outcome.kept).items():
            mean = sum(run.accuracy for run in runs) / len(runs)
            ours = f"{mean:.2f}" + (f" (n={len(runs)})" if len(runs) > 1 else "")
            yield f"| {row.series} | {row.label} | {paper} | {ours} | {', '.join(differs) or 'nothing'} |"
    yield ""


def _by_settings(kept: tuple[Ours, ...]) -> dict[tuple[str, ...], list[Ours]]:
    found: dict[tuple[str, ...], list[Ours]] = {}
    for ours in kept:
        found.setdefault(ours.differs, []).append(ours)
    return found


if __name__ == "__main__":
    print(page(), end="")
