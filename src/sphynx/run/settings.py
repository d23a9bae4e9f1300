"""The settings that every stage which searches or trains has in common."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from sphynx.config import described, setting

if TYPE_CHECKING:
    from sphynx.run.progress import Voice
    from sphynx.run.update import Listener

AUTO = "auto"  # a device, or a recipe: the one that suits


@dataclass(frozen=True, kw_only=True)
class WorkSettings:
    """The folder that a stage keeps its work in, the device it runs on, and who hears of it."""

    out: str | Path = field(metadata=described("The run folder."))
    seed: int = setting(0, "The first seed.", least=0)
    resume: bool = setting(False, "Continue the run in the folder.")
    device: str = setting(AUTO, "auto, cpu, cuda or cuda:N.")
    progress: Listener | Voice | None = setting(None, "Called after every epoch; without it nothing is reported.")


@dataclass(frozen=True, kw_only=True)
class SweepSettings(WorkSettings):
    """Settings of a stage that has independent parts."""

    ray: str = setting("", "Run independent parts on Ray: local, auto (the cluster of this machine) or HOST:PORT.")
