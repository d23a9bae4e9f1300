"""The planned runs of the paper's experiments: which are kept, with their minutes, and which were not run.

Minutes of runs that were finished are theirs as they ran, most of them two or three at a time on one H200, which takes
each longer; those of runs that were not are estimates of a run alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from reproduction.gpu.planned import Planned
from reproduction.gpu.runs import planned_runs
from reproduction.keeping import PLACEMENTS, SEARCHES, TRAININGS
from sphynx.space.json_file import read_json

FOLDERS = {"train": TRAININGS, "place": PLACEMENTS, "search": SEARCHES}


@dataclass(frozen=True)
class Part:
    """A row of the page: runs by patterns of their names."""

    title: str
    runs: tuple[str, ...]


# What is planned nowhere, or was done in fewer epochs than were wanted.
LEFT_OUT = """Students at 30.7K to 51.2K need their teacher trained again, whose weights were not kept: 11 minutes
more. The arithmetic was asked in 40 epochs instead of 120. Not planned are [ImageNet](#imagenet) and Algorithm 1 over
the paper's 600 epochs at batch 64, which by the steps of the kept searches would take about 55, 70 and 95 minutes at
D=5, 6 and 8, and alone could settle what those in doubt leave open. Runs of stream networks, which are ours and not
the paper's, are [on their page](stream.md#what-was-not-run).
"""

PARTS = (
    Part("Algorithm 1 as released, tau from 1000, D=5, 6 and 8", ("place-released-*",)),
    Part("Algorithm 1 with rivals by probability", ("place-likely-*",)),
    Part("all places of D=5, 6 and 8", ("short-c5-d5-r??", "short-c5-d6-r??", "short-c5-d8-r??")),
    Part(
        "more seeds at 25.6K: base, separable, FLOP balancing",
        ("short-c5-d5-r01-seed*", "short-c5-d5-r01-separable*", "short-c17-d5-r01-flop*"),
    ),
    Part(
        "the same at 30.7K",
        ("short-c5-d6-r01-seed*", "short-c5-d6-r01-separable*", "short-c17-d6-r01-flop*"),
    ),
    Part("FLOP balancing at 41K and 51K", ("short-c12-d8-*-flop", "short-c14-d10-*-flop")),
    Part("separable at 41K", ("short-c5-d8-*-separable",)),
    Part("places at 51K, three seeds", ("short-c5-d10-r05", "short-c5-d10-r05-seed*", "short-c5-d10-r36*")),
    Part("25.6K by the paper's recipe, 600 epochs, batches 96 and 512", ("paper-600-seed0", "paper-600-b512-seed0")),
    Part("30.7K by it, batch 96", ("paper-600-d6-seed0",)),
    Part("41K and 51K by it, batch 512", ("paper-600-b512-d8-seed0", "paper-600-b512-d10-seed0")),
    Part("102K by it, batch 512", ("paper-600-b512-c10-d10-seed0",)),
    Part("bf16, fp32, and without Nesterov's momentum", ("paper-40-seed*", "paper-40-fp32-*", "paper-40-plain-*")),
    Part("fp32 with TF32 convolutions", ("paper-40-tf32-*",)),
    Part("DARTS after its first epoch, by width", ("darts-first-*",)),
    Part("DARTS, C=16, 50 epochs, and its cells", ("darts-c16-seed2-50", "short-darts-c16-seed2-50")),
    Part("DARTS, C=5, 15 epochs, and its cells", ("darts-c5-seed2-15", "short-darts-c5-seed2")),
    Part("DARTS, C=5, 50 epochs, and its cells", ("darts-c5-seed2-50", "short-darts-c5-seed2-50")),
    Part("DARTS, C=5, N=5, and its cells", ("darts-c5-n5-seed2-15", "short-n5-c5-d5", "short-n5-c5-d6")),
    Part("PC-DARTS, 50 epochs, and its cells", ("pc-darts-c5-seed2-50", "short-pc-darts-c5-seed2-50")),
    Part("ENAS, 50 epochs, and its cells", ("enas-c5-seed2-50", "short-enas-c5-seed2-50")),
    Part("GDAS, 50 epochs, and its cells", ("gdas-c5-seed2-50", "short-gdas-c5-seed2-50")),
    Part("recycled cells at 25.6K and 30.7K", ("short-c5-d[56]-*-darts*",)),
    Part("recycled cells at 41K and 51K", ("short-c5-d8-*-darts*", "short-c5-d10-*-darts*")),
    Part("distillation at 25.6K, 200 epochs", ("teacher-200", "distilled-*-of-200", "undistilled-200")),
    Part(
        "distillation by the mean at 30.7K, 41K and 51K, each with and without the teacher",
        ("distilled-mean-200-of-200-d*", "undistilled-200-d*"),
    ),
    Part("Tiny-ImageNet: 614K beside ResNet18, 30 epochs", ("short-tiny-resnet18", "short-tiny-c15-d10")),
    Part("channels against depth, 200 epochs", ("long-*",)),
)


def write_what_ran(results: Path) -> Iterator[str]:
    yield "## runs\n\nThe planned runs, as `python -m reproduction.gpu` makes them, and what each took or would take of"
    yield "one H200. Minutes of those that are kept are theirs as they ran, mostly beside one or two others, which"
    yield "makes each longer; of those that were not made they are estimates of a run alone, and for ENAS a guess."
    yield "Rules for all of them [are written](rules.md).\n"
    yield "| runs | made | minutes | not made | minutes it would take |\n|---|---|---|---|---|"
    planned = planned_runs()
    for part in PARTS:
        runs = [run for run in planned if any(fnmatchcase(run.name, pattern) for pattern in part.runs)]
        took = {run.name: seconds for run in runs if (seconds := seconds_of(run, results)) is not None}
        left = [run for run in runs if run.name not in took]
        made = f"{len(took)} | {_minutes(sum(took.values()))}" if took else " | "
        missing = f"{_names(left)} | {_minutes(sum(run.seconds for run in left))}" if left else " | "
        yield f"| {part.title} | {made} | {missing} |"
    yield ""
    yield LEFT_OUT


def seconds_of(run: Planned, results: Path) -> float | None:
    """Tell what a run took, if it is kept; of a search, whose schedule may go on, as many epochs as were planned."""
    file = results / FOLDERS[run.kind] / f"{run.place}.json"
    if not file.is_file():
        return None
    kept = read_json(file)
    if run.kind == "train":
        return 60 * float(kept["result"]["minutes"])
    epochs = [float(row["seconds"]) for row in kept["metrics"]]
    return sum(epochs[: run.stop_after or None]) if len(epochs) >= run.stop_after else None


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.1f}" if seconds < 600 else f"{seconds / 60:.0f}"


def _names(runs: Sequence[Planned]) -> str:
    return ", ".join(f"`{run.name}`" for run in runs)
