"""docs/results/reduce.md: one teacher reduced by every method, beside published rows, and what each takes privately."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean, stdev

from reproduction.kept_reductions import KeptReduction, read_calls, read_reductions, read_teacher
from reproduction.reduced_latency import latency_table, read_latencies
from reproduction.reduction import AIMS, LEAST_TEACHER, STAGES, Point
from sphynx.reduce.results import Reduced
from sphynx.report.literature import Published, read_published
from sphynx.space.planner import parse_relu_budget

BUDGETS = ("50k", "25k", "12.9k")
NEAR = 0.05  # a published network stands beside a budget where its ReLUs differ by less
NOT_RUN = "not run"
DOUBTFUL = "doubtful, its text contradicts its table"
COLUMNS = (
    "method", "epochs", "seed", "ReLUs", "comparisons", "squares", "truncations", "accuracy, %", "as the teacher, %",
    "minutes", "of all",
)  # fmt: skip

INTRODUCTION = """# Reduced networks: every method on one teacher

A ResNet18 for CIFAR-100 taken down to budgets of ReLUs by each method of [reduce.md](../reduce.md), from one teacher,
by one recipe and on the same views of the images: networks differ by what their method chose. Published rows are of
their authors' teachers and recipes. `make docs` writes this page from `results/reduction/`, one file per reduction:

    python -m reproduction.reduction teacher rivals ours later own seeds table --data cifar100 -o runs/reduction
    python -m reproduction keep runs/reduction

Accuracies are of the test images at the final epoch; "as the teacher" is how often a network says what the teacher
says. Nothing was chosen by the test images. Truncations are an upper bound; the tables of latencies have what was
compiled. Minutes are of the last training, and of all that the reduction took, beside others on the same device.

![Accuracy against ReLUs, cited and run here](../images/reduced.svg)
"""

LATENCIES = """## Private latency, measured

The original and every network whose design is there, in one run; one picture, two processes, medians. Each answer is
compared with the integer oracle's, bit for bit. Networks without weights there, or whose numbers fit no ring, have
random weights, whose ring is wider than trained ones need: their times and bytes are upper bounds. Ranks are by ReLUs,
and by time online: where they differ, ReLU counts say the wrong order.

    python -m reproduction.reduced_latency runs/reduction --data cifar100
"""


def make_reduction_page(results: Path) -> str:
    reductions = read_reductions(results)
    measured = read_latencies(results)
    parts = [INTRODUCTION, *_teacher(results), *_made(reductions, results), "", *_aims(reductions)]
    for budget in BUDGETS:
        parts += ["", *_section(budget, [one for one in reductions if one.asked.relu_budget == budget])]
    parts += ["", LATENCIES, *(["Not measured."] if measured is None else latency_table(measured))]
    return "\n".join(parts) + "\n"


def _teacher(results: Path) -> Iterator[str]:
    teacher = read_teacher(results)
    if teacher is None:
        yield f"The teacher, which is to reach {100 * LEAST_TEACHER:.1f} %: {NOT_RUN}."
        return
    result = teacher.result
    yield f"The teacher, kept in eight bits: {100 * result.accuracy:.2f} % after {result.epochs} epochs and"
    yield f"{result.minutes:.1f} minutes."


def _made(reductions: Sequence[KeptReduction], results: Path) -> Iterator[str]:
    if not reductions:
        return
    devices = {str(one.environment.get("device")) for one in reductions}
    commits = {str(one.environment.get("commit") or "unknown") for one in reductions}
    at_once = max(one.asked.jobs for one in reductions)
    yield f"Made on {', '.join(sorted(devices))} at commit {', '.join(sorted(commits))}, up to {at_once} at a time."
    if calls := read_calls(results):
        minutes = sum(float(call["minutes"]) for call in calls)
        yield f"The calls took {minutes:.1f} minutes of the device together, the teacher's answers included."


def _aims(reductions: Sequence[KeptReduction]) -> Iterator[str]:
    """Write aims, set before the runs, beside what the first seed reached; `auto` counts by the network it kept."""
    yield "Aimed for, before anything was run:\n"
    for method, budget, aim in AIMS:
        found = [
            one.accuracy
            for kept in reductions
            for one in kept.tried
            if (kept.asked.relu_budget, kept.asked.seed) == (budget, 0)
            and (one.method == method or (kept.asked.method == method and kept.is_kept(one)))
        ]
        reached = f"{100 * found[0]:.2f} %" if found else NOT_RUN
        told = f"**{'reached' if found[0] >= aim else 'missed'}**, {reached}" if found else reached
        yield f"- `{method}` at {parse_relu_budget(budget):,} ReLUs at least {100 * aim:.1f} %: {told}"


def _section(budget: str, reductions: Sequence[KeptReduction]) -> Iterator[str]:
    relus = parse_relu_budget(budget)
    yield f"## {relus:,} ReLUs\n"
    yield f"| {' | '.join(COLUMNS)} |"
    yield f"|---|{'---:|' * (len(COLUMNS) - 1)}"
    rows = [(reduction, one) for reduction in reductions for one in reduction.tried]
    for reduction, one in sorted(rows, key=lambda row: -row[1].accuracy):
        yield _row(reduction, one)
    planned = [point for points in STAGES.values() for point in points if point.relu_budget == budget]
    known = {reduction.name for reduction in reductions}
    for point in planned:
        if point.name not in known:
            yield _line(_named(point), str(point.epochs), str(point.seed), NOT_RUN)
    for published in sorted(_published(relus), key=lambda row: -row.accuracy):
        taught = "" if published.distilled else ", not distilled"
        doubt = f" ({DOUBTFUL})" if DOUBTFUL in published.note else ""
        name = f"*{published.method}, published{taught}{doubt}*"
        yield _line(name, "", "", f"{published.relus:,}", "", "", "", f"{published.accuracy:.2f}")
    yield from _seeds(reductions)


def _named(point: Point) -> str:
    return "auto: stream and channels" if point.method == "auto" else point.method


def _row(reduction: KeptReduction, one: Reduced) -> str:
    counts, asked = one.counts, reduction.asked
    return _line(
        f"{one.method}, kept by auto" if reduction.is_kept(one) else one.method,
        str(reduction.epochs(one)),
        str(asked.seed),
        *(f"{count:,}" for count in (counts.relus, counts.comparisons, counts.squares, counts.truncations)),
        f"{100 * one.accuracy:.2f}",
        f"{100 * one.agreement:.2f}",
        f"{one.minutes:.1f}",
        f"{asked.minutes:.1f}",
    )


def _line(*cells: str) -> str:
    return f"| {' | '.join([*cells, *[''] * (len(COLUMNS) - len(cells))])} |"


def _published(relus: int) -> list[Published]:
    rows = [row for row in read_published() if row.data == "cifar100" and row.method != "Sphynx"]
    return [row for row in rows if row.relus is not None and abs(row.relus - relus) < NEAR * relus]


def _seeds(reductions: Sequence[KeptReduction]) -> Iterator[str]:
    """Write means over seeds, where there are several of equal settings."""
    alike: dict[tuple[str, int], list[float]] = {}
    for reduction in reductions:
        for one in reduction.tried:
            alike.setdefault((one.method, reduction.epochs(one)), []).append(100 * one.accuracy)
    lines = [
        f"- {method}, {epochs} epochs: {fmean(found):.2f} ± {stdev(found):.2f} over {len(found)} seeds"
        for (method, epochs), found in alike.items()
        if len(found) > 1
    ]
    if lines:
        yield ""
        yield from lines
