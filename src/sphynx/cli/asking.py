"""Many pictures asked about by `sphynx infer`: bundles in portions, another server where one is lost, one bar."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Self

import typer
from rich.console import Console
from rich.progress import Progress

from sphynx.api.many import PORTION, Persistent
from sphynx.cli.output import count

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from sphynx.api.asking import Client
    from sphynx.service.prediction import Prediction

    Picture = tuple[Path, NDArray[np.uint8] | Path]  # what is asked about: pixels, or a file of numbers


class Asking:
    """Ask about pictures; `prepare` bundles are ready at the end besides those for the pictures."""

    def __init__(self, client: Client, pictures: list[Picture], prepare: int) -> None:
        self._client, self._pictures, self._prepare = client, pictures, prepare
        console = Console(stderr=True)
        self._bar = Progress(console=console, disable=not console.is_terminal)
        missing = max(0, len(pictures) + prepare - client.ready_ahead)
        self._task = self._bar.add_task("asking" if pictures else "preparing bundles", total=len(pictures) + missing)
        if missing and not console.is_terminal:
            typer.echo(f"bundles to prepare: {count(missing)}", err=True)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def answers(self) -> Iterator[tuple[Path, Prediction]]:
        """Yield each answer as it comes."""
        asked = Persistent(self._client, prepared=lambda _update: self._bar.advance(self._task))
        for first in range(0, len(self._pictures), PORTION):
            portion = self._pictures[first : first + PORTION]
            asked.make_ready(len(portion))
            for path, pixels in portion:
                yield path, asked.ask(pixels)
                self._bar.advance(self._task)
        asked.make_ready(self._prepare)
