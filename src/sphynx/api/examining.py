"""A compiled network asked privately about a whole set, every answer held against the integer oracle.

A server in a process of its own and a client here, over mutual TLS, with keys for the occasion.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from sphynx.api.compiled import Compiled
from sphynx.compiler.calibration import integers_of
from sphynx.data.samples import Samples
from sphynx.program.backends import Backend
from sphynx.program.interpret import interpret
from sphynx.run.update import Listener, Update, ignore
from sphynx.service.exam import Exam, examine
from sphynx.service.local import connected_client


def examine_privately(
    compiled: Compiled,
    images: Samples,
    backends: Sequence[Backend],
    progress: Listener = ignore,
) -> list[Exam]:
    """Examine with each backend, the stage that `progress` is told about."""

    def report(backend: Backend, asked: int) -> None:
        progress(Update(backend, asked, len(images)))

    pixels, labels = integers_of(images, compiled.program), images.labels
    expected = interpret(compiled.program, compiled.weights, pixels)
    with tempfile.TemporaryDirectory(prefix="sphynx-check-") as temporary:
        folder = compiled.folder or compiled.save(Path(temporary) / "compiled")
        with connected_client(folder, Path(temporary)) as client:
            return [
                examine(client, backend, pixels, labels, expected, done=partial(report, backend))
                for backend in backends
            ]
