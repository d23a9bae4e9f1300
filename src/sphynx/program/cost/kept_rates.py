"""This machine's rates as they were measured once (bench/calibrate.py), in the user's cache. No torch, no measuring."""

from __future__ import annotations

import json
import platform
from pathlib import Path
from typing import Any

from sphynx.errors import InputError
from sphynx.program.cost.rates import Rates
from sphynx.run.cache import cache_folder

# Raised with the work that is timed: the last wire version to change it. Rates of other work are measured again.
WORK_VERSION = 17


def kept_rates() -> Rates | None:
    """Load what was measured before, if it can be used and is all that is measured today."""
    try:
        file = json.loads(rates_file().read_text())
        if file["work"] != WORK_VERSION:
            return None
        kept = file["rates"]
        rates = Rates.from_json(kept)
        return rates if _names(kept) == _names(rates.to_json()) else None
    except (InputError, OSError, ValueError, KeyError, TypeError):
        return None


def _names(rates: dict[str, Any]) -> dict[str, Any]:
    """The rates' names without their values: a file of an older version lacks some, and a measured rate may be 0."""
    return {name: _names(value) if isinstance(value, dict) else None for name, value in rates.items()}


def keep_rates(rates: Rates) -> None:
    try:
        file = rates_file()
        file.parent.mkdir(parents=True, exist_ok=True)
        temporary = file.with_suffix(".new")
        temporary.write_text(json.dumps({"work": WORK_VERSION, "rates": rates.to_json()}, indent=1) + "\n")
        temporary.replace(file)
    except (InputError, OSError):
        pass  # without a home that can be written they are measured again next time, nothing else


def rates_file() -> Path:
    return cache_folder() / f"rates-{platform.node()}.json"
