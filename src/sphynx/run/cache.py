"""The folder where Sphynx keeps what it can fetch, measure or derive again. Deleting it costs time and nothing else."""

from __future__ import annotations

import os
from pathlib import Path

from sphynx.errors import InputError


def cache_folder() -> Path:
    """$XDG_CACHE_HOME/sphynx, ~/.cache/sphynx where that is not set. It may not exist yet."""
    if base := os.environ.get("XDG_CACHE_HOME"):
        return Path(base) / "sphynx"
    try:
        return Path.home() / ".cache" / "sphynx"
    except RuntimeError:  # a container's user without a name
        raise InputError(
            "there is no home folder for the cache", where="HOME", remedy="Set HOME or XDG_CACHE_HOME to a folder."
        ) from None
