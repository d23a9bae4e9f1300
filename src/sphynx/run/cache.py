"""Where Sphynx keeps what it can fetch, measure or derive again. Deleting it costs time and nothing else."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """$XDG_CACHE_HOME/sphynx, ~/.cache/sphynx where that is not set. It may not exist yet."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sphynx"
