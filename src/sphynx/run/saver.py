"""Checkpoints written beside the work: the device copies its state and goes on while a thread writes it to the disk.

At most one checkpoint is on its way. Handing over the next one first waits until it is durable. Where epochs are short
beside the time that a checkpoint takes, `due` leaves some out, so that saving takes at most a tenth of the time: a kill
at any instant loses at most ten times what one checkpoint takes, besides the epoch that runs.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Any

from torch import Tensor

from sphynx.errors import InterruptedWorkError
from sphynx.run.folder import RunFolder

_SHARE_OF_TIME = 0.1


class Saver:
    """Leaving the `with` block waits for the last checkpoint; a failed save raises there, or at the next one. That the
    work was interrupted and is saved is only said if it is."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder
        self._thread = ThreadPoolExecutor(1, "checkpoint")
        self._on_its_way: Future[None] | None = None
        self._due_at = 0.0

    def __enter__(self) -> Saver:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._thread.shutdown(wait=True)
        if kind is None or issubclass(kind, InterruptedWorkError):
            self.wait()

    @property
    def due(self) -> bool:
        done = self._on_its_way is None or self._on_its_way.done()
        return done and time.monotonic() >= self._due_at

    def save(self, state: Mapping[str, Any]) -> None:
        self.wait()
        started = time.monotonic()
        self._on_its_way = self._thread.submit(self._write, copied(state), started)

    def _write(self, state: Mapping[str, Any], started: float) -> None:
        self._folder.save_checkpoint(state)
        self._due_at = started + (time.monotonic() - started) / _SHARE_OF_TIME

    def wait(self) -> None:
        """Wait until the last checkpoint is durable."""
        if self._on_its_way is not None:
            self._on_its_way.result()


def copied(value: Any) -> Any:
    """Tensors as copies in the host's memory; the rest as it is."""
    if isinstance(value, Tensor):
        return value.detach().to("cpu", copy=True)
    if isinstance(value, Mapping):
        return {key: copied(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(copied(item) for item in value)
    return value
