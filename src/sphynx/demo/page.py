"""The demonstration as one HTML file: who sees what, the pictures with their private answers, and what they took."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sphynx.demo.scenes import BACKENDS, Answer, Scene
from sphynx.report.page import Section, pictures_part, render, table_part
from sphynx.report.tables import Picture, Table, Tile, picture_url
from sphynx.units import bytes_text, class_text, percent, seconds_text

SUBTITLE = (
    "Two processes on one machine, a server with the weights and a client with the pictures, over mutual TLS 1.3. "
    "The server never saw a picture, the client never saw a weight."
)
NAMES = {"gmw": "GMW", "gc": "garbled circuits"}
MEANINGS = (
    "GMW: each side holds a random half of every bit, and both compute on their halves. Few bytes, more rounds.",
    "Garbled circuits: the server encrypts the circuit of each ReLU, and the client evaluates it without seeing the "
    "values in it. Few rounds, more bytes.",
    "Offline is the work before there is a picture, online from the picture to the answer. All are medians. "
    "Exact: the private answer equals the integer network's, bit for bit.",
)
COLUMNS = ("backend", ">offline", ">offline bytes", ">online", ">online bytes", ">rounds", ">in the clear", ">exact")


def demo_page(scenes: Sequence[Scene]) -> str:
    answers = [answer for scene in scenes for answer in scene.answers]
    equal = sum(answer.equal for answer in answers)
    tiles = [
        Tile("private answers", str(len(answers)), f"{equal} equal to the integer network's, bit for bit"),
        *(tile for scene in scenes for tile in _tiles(scene)),
    ]
    words = [{"kind": "text", "text": meaning} for meaning in MEANINGS]
    sections = [Section("who", "Who sees what", [_sides(scenes[-1]), *words])]
    sections += [Section(f"scene-{number}", scene.title, _parts(scene)) for number, scene in enumerate(scenes)]
    return render(title="Sphynx, demonstrated", subtitle=SUBTITLE, tiles=tiles, sections=sections)


def cost_rows(scene: Scene) -> list[list[str]]:
    """Medians for each way to do ReLUs, in the order of COLUMNS."""
    rows = []
    for backend in BACKENDS:
        answers = [answer.private for answer in scene.answers if answer.private.backend == backend]
        exact = [answer.equal for answer in scene.answers if answer.private.backend == backend]
        rows.append(
            [
                NAMES[backend],
                seconds_text(statistics.median(a.offline_seconds for a in answers)),
                bytes_text(statistics.median(a.offline_bytes for a in answers)),
                seconds_text(_online_s(scene, backend)),
                bytes_text(statistics.median(a.online_bytes for a in answers)),
                str(answers[0].online_rounds),
                seconds_text(scene.plaintext_seconds),
                f"{sum(exact)} of {len(exact)}",
            ]
        )
    return rows


def _tiles(scene: Scene) -> list[Tile]:
    network = f"{scene.relus:,} ReLUs"
    found = [Tile(f"online, {network}", seconds_text(_online_s(scene, "gmw")), "median, using GMW")]
    if scene.judged is not None:
        found.append(Tile(f"test accuracy, {network}", percent(scene.judged.accuracy), scene.judged.detail))
    return found


def _online_s(scene: Scene, backend: str) -> float:
    return statistics.median(a.private.online_seconds for a in scene.answers if a.private.backend == backend)


def _sides(scene: Scene) -> dict[str, Any]:
    """One question as both sides saw it, with the bytes that went over this demonstration's own connection."""
    answer = scene.answers[0]
    noise = picture_url(noise_pixels(answer.received)) if answer.received else ""
    private = answer.private
    return {
        "kind": "sides",
        "sides": [
            (
                "The client",
                picture_url(answer.question.pixels),
                (
                    "has the picture",
                    f"gets the answer: {class_text(private.label)}, {100 * private.probability:.0f} %",
                    "never sees a weight",
                ),
            ),
            (
                "What the server received",
                noise,
                (
                    f"the picture minus random numbers that only the client knows: {bytes_text(len(answer.received))}",
                    "equally likely to look like this for any picture",
                ),
            ),
            (
                "The server",
                "",
                ("has the weights", "computes on what it cannot read", "never sees the picture, nor the answer"),
            ),
        ],
    }


def noise_pixels(received: bytes) -> NDArray[np.uint8]:
    """Draw each byte as a dot, in a square; what is left over of the last row is not drawn."""
    side = max(1, math.isqrt(len(received)))
    return np.frombuffer(received[: side * side], np.uint8).reshape(1, side, side)


def _parts(scene: Scene) -> list[Mapping[str, Any]]:
    shown = [answer for answer in scene.answers if answer.private.backend == BACKENDS[0]]
    labelled = [answer for answer in shown if answer.question.truth]
    right = sum(not answer.wrong for answer in labelled)
    note = f"{scene.relus:,} ReLUs, integers of {scene.ring_bits} bits."
    if labelled:
        note = f"{right} of {len(labelled)} private answers are right. {note}"
    table = Table(COLUMNS, cost_rows(scene), (note,), "What an answer took")
    return [pictures_part([_picture(answer) for answer in shown]), table_part(table)]


def _picture(answer: Answer) -> Picture:
    private, truth = answer.private, answer.question.truth
    lines = [
        f"private answer, {100 * private.probability:.0f} %",
        f"labelled {class_text(truth)}" if truth else answer.question.name,
        f"in the clear: {class_text(answer.plaintext_label)}",
    ]
    return Picture(picture_url(answer.question.pixels), class_text(private.label), tuple(lines), wrong=answer.wrong)
