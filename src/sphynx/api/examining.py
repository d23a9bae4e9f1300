"""A compiled network asked privately about a whole set, every answer held against the integer oracle.

A server in a process of its own and a client here, over mutual TLS, with keys for the occasion.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from sphynx.api.compiled import Compiled
from sphynx.data.samples import Samples, pixels_for
from sphynx.program.backends import Backend
from sphynx.program.interpret import interpret
from sphynx.service.exam import Exam, examine
from sphynx.service.local import connected_client


def examine_privately(
    compiled: Compiled,
    images: Samples,
    backends: Sequence[Backend],
    done: Callable[[Backend, int], None] = lambda _backend, _images: None,
) -> list[Exam]:
    """One for each backend; `done` hears how many images it has asked about."""
    pixels, labels = pixels_for(images.images, compiled.program.image), images.labels
    expected = interpret(compiled.program, compiled.weights, pixels)
    with tempfile.TemporaryDirectory(prefix="sphynx-check-") as temporary:
        folder = compiled.folder or compiled.save(Path(temporary) / "compiled")
        with connected_client(folder, Path(temporary)) as client:
            return [
                examine(client, backend, pixels, labels, expected, done=partial(done, backend)) for backend in backends
            ]
