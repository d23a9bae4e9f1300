"""Print the answers that `sphynx infer` has, whether or not it came to the end."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from sphynx.cli.output import count, print_json, print_table
from sphynx.errors import InputError, SphynxError
from sphynx.units import bytes_text, class_text, percent, seconds_text

if TYPE_CHECKING:
    from sphynx.program.ir import Program
    from sphynx.program.security import Security
    from sphynx.service.prediction import Prediction


@dataclass
class Answers:
    """Answers to all images that were to be asked about, in their order."""

    unreadable: dict[Path, InputError] = field(default_factory=dict)  # or a folder without images
    readable: list[Path] = field(default_factory=list)
    found: list[tuple[Path, Prediction]] = field(default_factory=list)  # of the first readable ones
    bundles_ready: int | None = None  # None: not known, since it did not come to the end

    def save(self, file: Path) -> None:
        """Write every output of the answered images as an array, one row for each image, and their paths."""
        import numpy as np

        first = self.found[0][1].outputs if self.found else {}
        rows = {f"output/{name}": np.stack([seen.outputs[name] for _, seen in self.found]) for name in first}
        np.savez(file, images=np.array([str(path) for path, _ in self.found]), **rows)  # type: ignore[arg-type]  # numpy's stub takes the names for its own argument

    def keep_record(self, file: Path, program: Program, server: str, security: Security) -> None:
        """Write what was asked, learned and assumed as one page; nothing where nothing was answered."""
        from sphynx.service.answer_record import AnswerRecord

        if not self.found:
            return
        answered = [(path.name, seen) for path, seen in self.found]
        file.write_text(AnswerRecord.of(program, server, security, answered).to_html(), encoding="utf-8")
        typer.echo(f"{file} has the record", err=True)

    def print(self, top: int, *, unsure_below: float, as_json: bool, why_not_all: SphynxError) -> None:
        """`why_not_all` is the reason for readable ones without an answer."""
        unanswered = self.readable[len(self.found) :]
        if as_json:
            failed = [*self.unreadable.items(), *((path, why_not_all) for path in unanswered)]
            print_json(
                {
                    "predictions": [
                        {
                            "image": str(path),
                            **seen.to_json(top),
                            **({"sure": seen.is_sure(unsure_below)} if unsure_below and seen.has_classes else {}),
                        }
                        for path, seen in self.found
                    ],
                    "failed": [
                        {"image": str(path), "error": error.what, "remedy": error.remedy} for path, error in failed
                    ],
                    "bundles_ready": self.bundles_ready,
                }
            )
        else:
            _print_tables(self.found, top, unsure_below)
        if unanswered:
            total = len(self.readable)
            typer.echo(f"{count(len(self.found))} of {count(total)} images were answered before the failure", err=True)
        if self.unreadable:
            self._tell_unreadable()

    def _tell_unreadable(self) -> None:
        asked = len({*self.readable, *self.unreadable})
        typer.echo(f"{count(len(self.unreadable))} of {count(asked)} could not be asked about:", err=True)
        for path, error in self.unreadable.items():
            typer.echo(f"error: {error if error.where else f'{path}: {error}'}\n  remedy: {error.remedy}", err=True)


def _shown(seen: Prediction, top: int, unsure_below: float) -> list[tuple[str, float]]:
    """Labels with probabilities."""
    labels = list(zip(map(class_text, seen.labels), seen.probabilities, strict=True))[:top]
    if seen.is_sure(unsure_below):
        return labels
    return [(f"not sure: {labels[0][0]}", labels[0][1]), *labels[1:]]


def _print_tables(found: list[tuple[Path, Prediction]], top: int, unsure_below: float) -> None:
    if not found:
        return
    if not found[0][1].has_scores:
        rows = ([str(path), class_text(seen.label)] for path, seen in found)
        print_table("What the images show", ["image", "label"], rows, note="This server reveals no probabilities.")
    elif found[0][1].has_classes:
        print_table(
            "What the images show",
            ["image", "label", ">probability"],
            (
                [str(path) if rank == 0 else "", label, percent(probability)]
                for path, seen in found
                for rank, (label, probability) in enumerate(_shown(seen, top, unsure_below))
            ),
        )
    else:
        print_table(
            "Outputs",
            ["image", "output", "shape", ">lowest", ">mean", ">highest"],
            (
                [
                    "" if row else str(path),
                    name,
                    " x ".join(map(str, array.shape)),
                    *(f"{number:.4g}" for number in (array.min(), array.mean(), array.max())),
                ]
                for path, seen in found
                for row, (name, array) in enumerate(seen.outputs.items())
            ),
            note="--arrays FILE.npz writes all of their numbers.",
        )
    print_table(
        "Cost",
        ["image", "ReLU", ">offline", ">offline bytes", ">online", ">online bytes", ">rounds"],
        (
            [
                str(path),
                seen.backend,
                seconds_text(seen.offline_seconds),
                bytes_text(seen.offline_bytes),
                seconds_text(seen.online_seconds),
                bytes_text(seen.online_bytes),
                count(seen.online_rounds),
            ]
            for path, seen in found
        ),
        note="Offline work needs no image: --prepare N does it ahead.",
    )
