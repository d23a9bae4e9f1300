"""Checkpoints written beside the work: the device copies its state and goes on while a thread writes it to the disk.

At most one checkpoint is on its way. Handing over the next one first waits until it is durable, so that a kill at any
instant loses at most one finished epoch besides the one that runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Any

from torch import Tensor

from sphynx.run.folder import RunFolder


class Saver:
    """Leaving the `with` block waits for the last checkpoint; a failed save raises there, or at the next one."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder
        self._thread = ThreadPoolExecutor(1, "checkpoint")
        self._on_its_way: Future[None] | None = None

    def __enter__(self) -> Saver:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._thread.shutdown(wait=True)
        if kind is None:
            self.wait()

    def save(self, state: Mapping[str, Any]) -> None:
        self.wait()
        self._on_its_way = self._thread.submit(self._folder.save_checkpoint, copied(state))

    def wait(self) -> None:
        """Until the last checkpoint is durable."""
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
