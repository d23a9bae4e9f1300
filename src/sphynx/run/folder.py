"""The folder of one run: everything needed to read, trust and continue it.

    config.json        resolved settings          environment.json   versions, device, threads, source
    metrics.jsonl      one line per epoch         checkpoint.pt      the last complete state
    result.json, model.safetensors, design.json   figures/

A checkpoint is written beside the old one, flushed to the disk and renamed over it: at any instant, also under kill -9,
the folder holds one complete checkpoint. It names what it belongs to (a hash of design and settings); one that belongs
to something else is refused. Checkpoints hold tensors and plain values only and are read without running any code.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from sphynx import system
from sphynx.errors import InputError, MissingPartError, SphynxError
from sphynx.run.resuming import begun_with_other_data

CHECKPOINT = "checkpoint.pt"
METRICS = "metrics.jsonl"
FORMAT = "sphynx-checkpoint/1"


class RunFolder:
    """Opens the folder, and makes it where there is none. `belongs_to` is what its checkpoints must belong to, `data` a
    hash of the images that they were trained on."""

    def __init__(self, path: Path | str, *, belongs_to: str = "", data: str = "", tensorboard: bool = False) -> None:
        self.path = Path(path)
        self.belongs_to, self.data = belongs_to, data
        try:
            (self.path / "figures").mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(
                f"cannot create the run folder ({error.strerror})", where=str(path), remedy="Choose another `out`."
            ) from error

        self._events = _event_writer(self.path) if tensorboard else None

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Two runs in one folder would mix their metrics and checkpoints. Whatever ends a process frees its folder."""
        held = os.open(self.path, os.O_RDONLY)
        try:
            self._lock(held)
            yield
        finally:
            with contextlib.suppress(OSError):  # where folders cannot be locked
                system.unlock(held)  # closing is not enough: workers that were forked hold it open too
            os.close(held)

    @property
    def figures(self) -> Path:
        return self.path / "figures"

    @property
    def has_checkpoint(self) -> bool:
        return (self.path / CHECKPOINT).exists()

    def append_metrics(self, values: Mapping[str, Any]) -> None:
        with (self.path / METRICS).open("a") as file:
            file.write(json.dumps(values) + "\n")
        if self._events is not None:
            for name, value in values.items():
                if name != "epoch" and isinstance(value, float):
                    self._events.add_scalar(name, value, values["epoch"])
            self._events.flush()

    def read_metrics(self) -> list[dict[str, Any]]:
        """All complete lines; a line that was cut off by a kill is left out."""
        path = self.path / METRICS
        if not path.exists():
            return []
        rows = []
        for line in path.read_text().splitlines():
            try:
                rows.append(json.loads(line))
            except json.JSONDecodeError:
                continue
        return rows

    def keep_metrics(self, rows: list[dict[str, Any]]) -> None:
        """Replaces the metrics: a resumed run drops the rows of epochs after its checkpoint."""
        self._write_text(METRICS, "".join(json.dumps(row) + "\n" for row in rows))

    def write_json(self, name: str, value: Any) -> None:
        self._write_text(name, json.dumps(value, indent=2) + "\n")

    def read_json(self, name: str) -> Any:
        path = self.path / name
        try:
            return json.loads(path.read_text())
        except FileNotFoundError:
            raise InputError(
                "there is no such file", where=str(path), remedy="Give the folder of a finished run."
            ) from None
        except (ValueError, RecursionError) as error:
            raise InputError(f"it is not JSON ({error})", where=str(path), remedy="Run the stage again.") from None

    def save_checkpoint(self, state: Mapping[str, Any]) -> None:
        import torch

        saved = {"format": FORMAT, "belongs_to": self.belongs_to, "data": self.data, "state": dict(state)}
        self._write(CHECKPOINT, partial(torch.save, saved), mode=0o600)  # it holds the weights

    def load_checkpoint(self) -> dict[str, Any] | None:
        """The state last saved, its tensors on the CPU; None where nothing was saved."""
        path = self.path / CHECKPOINT
        if not path.exists():
            return None
        import torch

        try:
            saved = torch.load(path, map_location="cpu", weights_only=True)
        except (RuntimeError, EOFError, ValueError, OSError, pickle.UnpicklingError) as error:
            raise SphynxError(
                f"the checkpoint cannot be read ({type(error).__name__})",
                where=str(path),
                remedy="Remove it to start the run again.",
            ) from error
        if not isinstance(saved, dict) or saved.get("format") != FORMAT:
            raise InputError("it is not a checkpoint of a run", where=str(path), remedy="Remove it to start again.")
        if saved["belongs_to"] != self.belongs_to:
            raise InputError(
                f"the checkpoint belongs to another design or other settings ({saved['belongs_to'] or 'unnamed'}, "
                f"not {self.belongs_to or 'unnamed'})",
                where=str(path),
                remedy="Give the design, data and recipe that the run was started with, or another `out` folder.",
            )
        if self.data and saved.get("data", self.data) != self.data:  # older ones do not say it
            raise begun_with_other_data(path)
        state: dict[str, Any] = saved["state"]
        return state

    def _lock(self, held: int) -> None:
        try:
            is_free = system.try_lock(held)
        except OSError:
            return  # a network's file system that locks no folders: better unguarded than unusable
        if not is_free:
            raise InputError(
                "another process is running in this folder",
                where=str(self.path),
                remedy="Wait for it, or choose another `out`.",
            )

    def _write_text(self, name: str, text: str) -> None:
        self._write(name, lambda file: file.write(text.encode()))

    def _write(self, name: str, fill: Callable[[BinaryIO], object], *, mode: int = 0o666) -> None:
        temporary = self.path / (name + ".new")
        try:
            temporary.unlink(missing_ok=True)  # a killed run's would keep its own mode
            with open(temporary, "wb", opener=partial(os.open, mode=mode)) as file:
                fill(file)
                file.flush()
                os.fsync(file.fileno())
        except (OSError, RuntimeError) as error:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)  # a full disk has better use for it
            # torch's writer fails by its own error while it handles what the disk said.
            said = error if isinstance(error, OSError) else error.__context__
            if not isinstance(said, OSError):
                raise
            raise OSError(said.errno, said.strerror, str(self.path / name)) from error
        self._rename(temporary, name)

    def _rename(self, temporary: Path, name: str) -> None:
        temporary.replace(self.path / name)
        folder = os.open(self.path, os.O_RDONLY)
        try:
            os.fsync(folder)  # makes the new name durable, not only the new bytes
        finally:
            os.close(folder)


def _event_writer(path: Path) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise MissingPartError(
            "TensorBoard events need the package tensorboard",
            remedy="pip install tensorboard, or leave `tensorboard` out.",
        ) from None
    return SummaryWriter(path / "tensorboard")
