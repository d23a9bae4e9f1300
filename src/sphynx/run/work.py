"""The context that a stage works in: its device and seed, who hears of it, where independent parts run.

with open_work(settings) as work:
    result = search_cells(data, "gaea", recipe, out, work)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch

from sphynx.errors import InputError
from sphynx.run.progress import NORMAL, QUIET, Voice
from sphynx.run.resuming import refuse_old_run
from sphynx.run.settings import AUTO, SweepSettings, WorkSettings
from sphynx.run.sweep import HERE as THIS_PROCESS
from sphynx.run.sweep import IN_TURN, Sweep, open_sweep

CPU = torch.device("cpu")


@dataclass(frozen=True)
class Work:
    device: torch.device = CPU
    seed: int = 0
    voice: Voice = NORMAL
    sweep: Sweep = IN_TURN
    resume: bool = False  # continue what the folder holds

    def piece(self, seed: int | None = None) -> Work:
        """The context of one piece of a sweep, which may travel to another process: it does not sweep itself."""
        return dataclasses.replace(self, seed=self.seed if seed is None else seed, sweep=IN_TURN)


HERE = Work()


@contextmanager
def open_work(settings: WorkSettings) -> Iterator[Work]:
    """Refuse a folder that holds another run; the sweep ends with the work."""
    device, progress = pick_device(settings.device), settings.progress
    refuse_old_run(Path(settings.out), resume=settings.resume)
    voice = progress if isinstance(progress, Voice) else QUIET if progress is None else Voice("quiet", progress)
    with open_sweep(settings.ray if isinstance(settings, SweepSettings) else THIS_PROCESS, voice) as sweep:
        yield Work(device, settings.seed, voice, sweep, settings.resume)


def pick_device(name: str) -> torch.device:
    if name == AUTO:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise InputError(f"{name!r} is not a valid device", remedy="Use auto, cpu, cuda or cuda:N.") from None
    if device.type == "cuda" and not torch.cuda.is_available():
        raise InputError("this machine has no usable GPU", where=f'`device="{name}"`', remedy='Use `device="cpu"`.')
    return device
