"""One authority with a server and clients, made once per test session: making keys takes a while."""

from __future__ import annotations

import datetime
from pathlib import Path

from sphynx.service import keys

LONG_AGO = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)


def make_authority(folder: Path) -> Path:
    keys.init(folder)
    keys.issue(folder, "server", hosts=["127.0.0.1", "localhost"], days=365)
    for name in ("alice", "bob", "mallory"):
        keys.issue(folder, name, days=365)
    keys.issue(folder, "expired", days=30, start=LONG_AGO)
    keys.revoke(folder, "mallory")
    return folder
