"""stages.json: what a run of several stages has finished, so that a resumed run skips it and continues the next.

    stages = Stages(out, order.to_json(), resume=False)
    cells = stages.run("cells", SearchResult, lambda: search_cells(...))

A stage's result is a record. Its seconds are counted over all attempts, interrupted ones too. A folder in which no
work was done yet (no stage finished, but for `preliminary` ones, and no checkpoint kept) can be started anew, also with
other settings: whoever was refused for a value tries again with a better one. Two processes in one folder are refused.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, TypeVar

from sphynx.errors import InputError
from sphynx.record import Record, fingerprint
from sphynx.run.folder import CHECKPOINT, RunFolder
from sphynx.run.resuming import begun_with_other_data, holds_a_run

STAGES = "stages.json"
FORMAT = "sphynx-stages/2"
Result = TypeVar("Result", bound=Record)


class Stages:
    """`settings` and `data`, a hash, are what the run was started with; a folder in which work was done with others is
    refused."""

    def __init__(
        self, out: Path, settings: dict[str, Any], *, resume: bool, preliminary: Collection[str] = (), data: str = ""
    ) -> None:
        started = (out / STAGES).exists()
        self._folder = RunFolder(out)
        self._log: dict[str, Any] = {"format": FORMAT, "settings": settings, "data": data, "stages": {}}
        if started:
            before = self._read()
            worked = any(out.glob(f"**/{CHECKPOINT}")) or any(
                entry["finished"] and name not in preliminary for name, entry in before["stages"].items()
            )
            if worked and not resume:
                raise holds_a_run(out)
            if worked:
                self._check(before["settings"], before.get("data", data))  # older ones do not say the latter
            if resume and fingerprint(before["settings"]) == fingerprint(settings):
                self._log = {**before, "data": data}
                return
        with self._folder.alone():
            self._write()

    def run(self, name: str, kind: type[Result], work: Callable[[], Result]) -> Result:
        """The stage's result, a `kind`: the stored one where it is finished, else what `work` returns."""
        entry = self._log["stages"].setdefault(name, {"seconds": 0.0, "finished": False})
        if not entry["finished"]:
            before, started = entry["seconds"], time.monotonic()
            with self._folder.alone():
                try:
                    entry["result"] = work().to_json()
                    entry["finished"] = True
                finally:
                    entry["seconds"] = round(before + time.monotonic() - started, 3)
                    self._write()
        return kind.from_json(entry["result"], where=f"{self._folder.path / STAGES}, {name}")

    def finished(self, name: str) -> bool:
        return bool(self._log["stages"].get(name, {}).get("finished", False))

    def minutes(self) -> dict[str, float]:
        """Per stage, in the order in which they ran."""
        return {name: round(entry["seconds"] / 60, 3) for name, entry in self._log["stages"].items()}

    def _write(self) -> None:
        self._folder.write_json(STAGES, self._log)

    def _read(self) -> dict[str, Any]:
        log = self._folder.read_json(STAGES)
        if not isinstance(log, dict) or log.get("format") != FORMAT:
            where = str(self._folder.path / STAGES)
            raise InputError(f"its format is not {FORMAT!r}", where=where, remedy="Choose another `out`.")
        return log

    def _check(self, before: dict[str, Any], data: str) -> None:
        settings = self._log["settings"]
        if data != self._log["data"]:
            raise begun_with_other_data(self._folder.path / STAGES)
        if fingerprint(before) != fingerprint(settings):
            differ = sorted(key for key in settings if fingerprint(settings[key]) != fingerprint(before.get(key)))
            raise InputError(
                f"the run was started with another {', '.join(differ)}",
                where=str(self._folder.path / STAGES),
                remedy="Give the settings that it was started with, or another `out`.",
            )
