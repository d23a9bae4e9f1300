"""The room for bundles: a quota, each client's share of it, and the disk."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path

from sphynx.errors import DiskError, ShareUsedUpError, StoreFullError
from sphynx.protocol.bundle import TEMPORARY


class Room:
    def __init__(self, folder: Path, bundles: Path, quota_bytes: int, *, shared: bool) -> None:
        """`shared` by owners, each may keep as many bytes as it leaves free; the files are in `bundles`."""
        self._folder, self._bundles, self.quota_bytes, self._shared = folder, bundles, quota_bytes, shared

    def check_quota(self, count: int, bundle_bytes: int, *, kept_bytes: int) -> None:
        """Refuse bundles that exceed the quota, or the share of an owner who keeps `kept_bytes` already."""
        used_bytes, needed_bytes = self.used_bytes(), count * bundle_bytes
        is_first = count == 1 and not kept_bytes
        leaves_bytes = self.quota_bytes - used_bytes - needed_bytes
        if self._shared and not is_first and kept_bytes + needed_bytes > leaves_bytes:
            raise ShareUsedUpError(
                f"this client's bundles would take {kept_bytes + needed_bytes:,} bytes, more than remain for others",
                where=str(self._folder),
                remedy="Use bundles before preparing more; the server's `quota_bytes` sets the limit.",
            )
        if used_bytes + needed_bytes > self.quota_bytes:
            raise StoreFullError(
                f"{used_bytes:,} of {self.quota_bytes:,} bytes for bundles are used, {needed_bytes:,} more are needed",
                where=str(self._folder),
                remedy="Use bundles before preparing more, or raise `quota_bytes`.",
            )

    def check_disk(self, needed_bytes: int) -> None:
        free_bytes = shutil.disk_usage(self._folder).free
        if needed_bytes > free_bytes:
            raise DiskError(
                f"the disk has {free_bytes:,} bytes left, {needed_bytes:,} are needed",
                where=str(self._folder),
                remedy="Free disk space, then try again.",
            )

    def used_bytes(self) -> int:
        """Bytes of all files but those that are being written: each is held against the quota when it is to be kept."""
        used_bytes = 0
        for path in self._bundles.iterdir():
            with contextlib.suppress(FileNotFoundError):  # taken by another thread just now
                used_bytes += 0 if path.suffix == TEMPORARY else path.stat().st_size
        return used_bytes
