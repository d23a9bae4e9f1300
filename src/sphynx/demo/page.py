"""The demonstration as one HTML file: the pictures with their private answers, and what the answers took."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from sphynx.demo.scenes import BACKENDS, Answer, Scene
from sphynx.report.page import Section, pictures_part, render, table_part
from sphynx.report.tables import Picture, Table, Tile, picture_url

SUBTITLE = (
    "Two processes on one machine, a server with the weights and a client with the pictures, over mutual TLS 1.3. "
    "The server never saw a picture, the client never saw a weight."
)
COLUMNS = ("ReLU by", ">offline s", ">offline MB", ">online ms", ">online MB", ">rounds", ">in the clear ms", "exact")


def demo_page(scenes: Sequence[Scene]) -> str:
    answers = [answer for scene in scenes for answer in scene.answers]
    equal = sum(answer.equal for answer in answers)
    tiles = [
        Tile("private answers", str(len(answers)), f"{equal} equal to the integer oracle, bit for bit"),
        *(
            Tile(f"online, {scene.relus:,} ReLUs", f"{1000 * _online_s(scene, 'gmw'):.0f} ms", "median, by GMW")
            for scene in scenes
        ),
    ]
    sections = [Section(f"scene-{number}", scene.title, _parts(scene)) for number, scene in enumerate(scenes)]
    return render(title="Sphynx, demonstrated", subtitle=SUBTITLE, tiles=tiles, sections=sections)


def cost_rows(scene: Scene) -> list[list[str]]:
    """Medians for each ReLU protocol, in the order of COLUMNS."""
    rows = []
    for backend in BACKENDS:
        answers = [answer.private for answer in scene.answers if answer.private.backend == backend]
        exact = [answer.equal for answer in scene.answers if answer.private.backend == backend]
        rows.append(
            [
                backend,
                f"{statistics.median(a.offline_seconds for a in answers):.2f}",
                f"{statistics.median(a.offline_bytes for a in answers) / 1e6:.2f}",
                f"{1000 * _online_s(scene, backend):.1f}",
                f"{statistics.median(a.online_bytes for a in answers) / 1e6:.3f}",
                str(answers[0].online_rounds),
                f"{1000 * scene.plaintext_seconds:.1f}",
                f"{sum(exact)} of {len(exact)}",
            ]
        )
    return rows


def _online_s(scene: Scene, backend: str) -> float:
    return statistics.median(a.private.online_seconds for a in scene.answers if a.private.backend == backend)


def _parts(scene: Scene) -> list[Mapping[str, Any]]:
    shown = [answer for answer in scene.answers if answer.private.backend == BACKENDS[0]]
    note = f"{scene.relus:,} ReLUs, integers of {scene.ring_bits} bits. Medians; offline is before there is a picture."
    table = Table(COLUMNS, cost_rows(scene), (note,))
    return [pictures_part([_picture(answer) for answer in shown]), table_part(table)]


def _picture(answer: Answer) -> Picture:
    private, truth = answer.private, answer.question.truth
    lines = [
        f"private: {private.labels[0]} ({private.probabilities[0]:.0%})",
        f"in the clear: {answer.plaintext_label}",
    ]
    if truth:
        lines.append(f"labelled: {truth}")
    return Picture(picture_url(answer.question.pixels), answer.question.name, tuple(lines))
