"""stages.json: what a run of several stages has finished, so that a resumed run skips it and continues the next.

    stages = Stages(out, order.to_json(), resume=False)
    cells = stages.run("cells", lambda: {"genotype": ...})

A stage's result is a JSON value. Its seconds are counted over all attempts, interrupted ones too.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sphynx.errors import InputError
from sphynx.run.folder import RunFolder, fingerprint

STAGES = "stages.json"
FORMAT = "sphynx-stages/1"


class Stages:
    """`settings` is what the run was started with; a folder that was started with others is refused."""

    def __init__(self, out: Path, settings: dict[str, Any], *, resume: bool) -> None:
        started = (out / STAGES).exists()
        if started and not resume:
            raise InputError("the folder holds a run", where=str(out), remedy="Give --resume auto, or another --out.")
        self._folder = RunFolder(out)
        self._log: dict[str, Any] = {"format": FORMAT, "settings": settings, "stages": {}}
        if started:
            self._log = self._read(settings)
        else:
            self._write()

    def run(self, name: str, work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """The stage's result: the stored one where it is finished, else what `work` returns."""
        entry = self._log["stages"].setdefault(name, {"seconds": 0.0, "finished": False})
        if not entry["finished"]:
            before, started = entry["seconds"], time.monotonic()
            try:
                entry["result"] = work()
                entry["finished"] = True
            finally:
                entry["seconds"] = round(before + time.monotonic() - started, 3)
                self._write()
        result: dict[str, Any] = entry["result"]
        return result

    def finished(self, name: str) -> bool:
        return bool(self._log["stages"].get(name, {}).get("finished", False))

    def minutes(self) -> dict[str, float]:
        """Per stage, in the order in which they ran."""
        return {name: round(entry["seconds"] / 60, 3) for name, entry in self._log["stages"].items()}

    def _write(self) -> None:
        self._folder.write_json(STAGES, self._log)

    def _read(self, settings: dict[str, Any]) -> dict[str, Any]:
        where = str(self._folder.path / STAGES)
        log = self._folder.read_json(STAGES)
        if not isinstance(log, dict) or log.get("format") != FORMAT:
            raise InputError(f"its format is not {FORMAT!r}", where=where, remedy="Choose another --out.")
        if fingerprint(log["settings"]) != fingerprint(settings):
            differ = sorted(
                key for key in settings if fingerprint(settings[key]) != fingerprint(log["settings"].get(key))
            )
            raise InputError(
                f"the run was started with another {', '.join(differ)}",
                where=where,
                remedy="Give the flags that it was started with, or another --out.",
            )
        return log
