"""Verdicts that need no training: what the paper counts or computes, beside ours.

A printed count agrees where one of our readings of its network has it (`tables`: the text and the numbers do not always
mean the same one). An estimated latency agrees where the paper's own formula gives it within LATENCY_TOLERANCE.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from reproduction.latency import imagenet_estimates, implied_gc_s_per_relu, measured_s_per_relu
from reproduction.latency_claims import latency_claims
from reproduction.tables import PaperRow, parameter_rows, relu_count_rows

LATENCY_TOLERANCE = 0.05


@dataclass(frozen=True)
class Counted:
    name: str
    title: str
    source: str
    claim: str
    agreeing: int
    values: int
    why: tuple[str, ...]
    has_command: bool = True  # that shows every row; else `why` does

    @property
    def verdict(self) -> str:
        return f"{self.agreeing} of {self.values} values agree"


def compare_counts() -> tuple[Counted, ...]:
    return (
        compare_rows("relu-counts", "ReLU counts", "every table; table 1 among them", relu_count_rows()),
        compare_rows("parameters", "Parameter counts", "appendix F.3", parameter_rows()),
        _compare_latencies(),
        _compare_latency_claims(),
    )


def compare_rows(name: str, title: str, source: str, rows: Sequence[PaperRow]) -> Counted:
    readings: dict[tuple[str, str], list[PaperRow]] = {}
    for row in rows:
        readings.setdefault((row.table, row.printed), []).append(row)
    agreeing = [own for own in readings.values() if any(row.agrees for row in own)]
    why = [_tell_disagreement(own[0]) for own in readings.values() if own not in agreeing]
    others = [row for own in agreeing for row in own if not row.agrees]
    for note in dict.fromkeys(row.note for row in others):
        printed = [row.printed for row in others if row.note == note]
        why.append(f"{', '.join(printed)}: equal by one of two readings; the other: {note}.")
    return Counted(name, title, source, f"{title} of its networks.", len(agreeing), len(readings), tuple(why))


def _tell_disagreement(row: PaperRow) -> str:
    return f"{row.printed} for {row.network} {row.verdict}, ours is {row.ours:,}: {row.note}."


def _compare_latencies() -> Counted:
    rows = imagenet_estimates()
    within = sum(abs(row.from_tiny_error) <= LATENCY_TOLERANCE for row in rows)
    largest = max(abs(row.from_tiny_error) for row in rows)
    bare = sum(row.left_for_plaintext_s < row.printed_s / 1000 for row in rows)
    return Counted(
        "latency-estimates",
        "Latencies that the paper estimated",
        "section 5.2, ImageNet",
        "ImageNet latencies follow from the time per ReLU on Tiny-ImageNet.",
        within,
        len(rows),
        (
            f"By {1e6 * measured_s_per_relu():.2f} µs per ReLU, what its Tiny-ImageNet networks took, the printed ones "
            f"are met within {largest:.1%}; {LATENCY_TOLERANCE:.0%} counts as agreeing.",
            f"The paper says that it adds plaintext time. {bare} of {len(rows)} rows, those of ResNet18 and VGG11, are "
            f"{1e6 * implied_gc_s_per_relu():.2f} µs times ReLUs and leave none.",
            "SAFENet's latency is rescaled from a number that the paper does not print: nothing can be compared.",
            "The latencies of CIFAR-100 and Tiny-ImageNet are DELPHI's on the paper's machines: it was not run here.",
        ),
    )


def _compare_latency_claims() -> Counted:
    claims = latency_claims()
    return Counted(
        "latency-columns",
        "What the paper says of its latency columns",
        "CIFAR-100",
        "Speed-ups and latencies in its text are those of its tables.",
        sum(claim.agrees for claim in claims),
        len(claims),
        tuple(f"{claim.told}." for claim in claims),
        has_command=False,
    )


def section_of(one: Counted) -> Iterator[str]:
    yield f"## {one.name}\n\n{one.title} ({one.source}). **{one.verdict}**"
    yield f"(`python -m reproduction run {one.name}` shows every row).\n" if one.has_command else ""
    if one.why:
        yield "\n".join(f"- {paragraph}" for paragraph in one.why) + "\n"
