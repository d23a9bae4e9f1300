"""Many pictures asked about by `sphynx infer`: bundles in portions, another server where one is lost, one bar."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeVar

import typer
from rich.console import Console
from rich.progress import Progress

from sphynx.cli.output import count
from sphynx.errors import ConnectionLostError, PeerGaveUpError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from sphynx.api.asking import Client
    from sphynx.service.prediction import Prediction

    Picture = tuple[Path, NDArray[np.uint8]]

Done = TypeVar("Done")
PORTION = 8  # images at a time, however many there are: half of a group of bundles, which is less work already


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
        for first in range(0, len(self._pictures), PORTION):
            portion = self._pictures[first : first + PORTION]
            self._make_ready(len(portion))
            for path, pixels in portion:
                yield path, self._go_on(partial(self._ask, pixels))
                self._bar.advance(self._task)
        self._make_ready(self._prepare)

    def _ask(self, pixels: NDArray[np.uint8]) -> Prediction:
        self._client.warm()
        return self._client.infer(pixels)

    def _make_ready(self, bundles: int) -> None:
        """Make this many bundles of the client's kind ready; those that are ready already count."""
        self._go_on(partial(self._make_missing, bundles))

    def _make_missing(self, bundles: int) -> None:
        missing = bundles - self._client.ready_ahead
        if missing > 0:
            self._client.prepare(missing, progress=lambda _update: self._bar.advance(self._task))

    def _go_on(self, work: Callable[[], Done]) -> Done:
        """Do the work; where a server is lost, do it again at another, a question with another bundle."""
        failures = 0
        while True:
            try:
                return work()
            except (ConnectionLostError, PeerGaveUpError):
                failures += 1
                if failures >= self._client.server_count:
                    raise
