"""The single-use ledger: which bundles are ready, and which are burned, for ever. One SQLite file per party.

    reserved -> ready -> burned (used), or discarded

`burn` returns after the change is on the disk (write-ahead log, synchronous=FULL), and only then may a byte that
depends on the bundle leave. It changes a row that is ready and not expired, in one statement, or raises: whatever
crashes and whoever calls at the same time, a bundle is burned once. A crash may lose bundles; it never revives one.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sphynx.errors import InputError, SphynxError

VERSION = 1
HOUR_S = 3600.0
KEEP_SPENT_S = 90 * 86_400.0  # then a row goes; its identifier stays unusable, because only ready rows are
_SCHEMA = """
CREATE TABLE bundles (
    bundle_id BLOB PRIMARY KEY,
    owner TEXT NOT NULL,
    program TEXT NOT NULL,
    backend TEXT NOT NULL,
    batch INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('reserved', 'ready', 'burned', 'discarded')),
    expires_at REAL NOT NULL,
    size_bytes INTEGER NOT NULL DEFAULT 0,
    offline_seconds REAL NOT NULL DEFAULT 0,
    offline_bytes INTEGER NOT NULL DEFAULT 0,
    changed_at REAL NOT NULL,
    reserved_at REAL NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE TABLE weights (hash TEXT NOT NULL);
"""
# Spent rows stay for months, up to 3,600 an hour for each client: no request may read through them. Older ledgers get
# these indices, and the column before them, when they are opened.
_LATER_COLUMN = "ALTER TABLE bundles ADD COLUMN reserved_at REAL NOT NULL DEFAULT 0"
_INDICES = """
CREATE INDEX IF NOT EXISTS by_hour ON bundles (owner, state, changed_at, reserved_at, batch);
CREATE INDEX IF NOT EXISTS by_expiry ON bundles (expires_at) WHERE state = 'ready';
CREATE INDEX IF NOT EXISTS by_size ON bundles (batch, backend, program, size_bytes);
DROP INDEX IF EXISTS by_owner;
DROP INDEX IF EXISTS by_use;
"""
_COLUMNS = "bundle_id, owner, program, backend, batch, expires_at, size_bytes, offline_seconds, offline_bytes"


class BundleRefusedError(SphynxError):
    """This bundle may not be used: burned, expired, unknown, or somebody else's."""


@dataclass(frozen=True)
class Entry:
    bundle_id: bytes
    owner: str  # the other party's certificate
    program: str
    backend: str
    batch: int
    expires_at: float  # seconds since 1970
    size_bytes: int = 0
    offline_seconds: float = 0.0
    offline_bytes: int = 0


class Ledger:
    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        try:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
            self._base = sqlite3.connect(path, timeout=30, isolation_level=None, check_same_thread=False)
            self._base.execute("PRAGMA journal_mode=WAL")
            self._base.execute("PRAGMA synchronous=FULL")
            self._create(path)
            self._add_later_column()
            self._base.executescript(_INDICES)
        except (sqlite3.Error, OSError) as error:
            raise InputError(
                f"it cannot be used ({error})",
                where=str(path),
                remedy="Move the whole folder away: its bundles are lost, and new ones can be prepared.",
            ) from None

    def reserve(self, entry: Entry, *, most: int | None = None, hourly: int | None = None) -> None:
        """An identifier is taken once, whatever becomes of it. The owner may have `most` bundles, this one included,
        and begin bundles for `hourly` images in an hour, however many connections prepare at the same time."""
        now = self._clock()
        values = (entry.bundle_id, entry.owner, entry.program, entry.backend, entry.batch, entry.expires_at)
        with self._change() as base:
            if most is not None and self._held(base, entry) >= most:
                raise _refused(entry.bundle_id, f"a client may keep {most} bundles ready")
            if hourly is not None and self._begun(base, entry.owner, now - HOUR_S) + entry.batch > hourly:
                raise _refused(
                    entry.bundle_id, f"a client may prepare for {hourly} images per hour", "Try again later."
                )
            try:
                base.execute(
                    "INSERT INTO bundles (bundle_id, owner, program, backend, batch, expires_at, state, changed_at,"
                    " reserved_at) VALUES (?, ?, ?, ?, ?, ?, 'reserved', ?, ?)",
                    (*values, now, now),
                )
            except sqlite3.IntegrityError:
                raise _refused(entry.bundle_id, "its identifier was used before") from None

    def make_ready(self, bundle_id: bytes, *, size_bytes: int, offline_seconds: float, offline_bytes: int) -> None:
        with self._change() as base:
            changed = base.execute(
                "UPDATE bundles SET state = 'ready', size_bytes = ?, offline_seconds = ?, offline_bytes = ?,"
                " changed_at = ? WHERE bundle_id = ? AND state = 'reserved'",
                (size_bytes, offline_seconds, offline_bytes, self._clock(), bundle_id),
            ).rowcount
        if changed != 1:
            raise _refused(bundle_id, "it is not being prepared")

    def burn(self, bundle_id: bytes, *, owner: str, program: str, hourly: int | None = None) -> None:
        """`hourly`: so many images the owner may have inferred in an hour, these included, however many connections
        ask at the same time."""
        now = self._clock()
        with self._change() as base:
            if hourly is not None and self._images(base, bundle_id, owner, now - HOUR_S) > hourly:
                raise _refused(bundle_id, f"a client may have {hourly} images inferred per hour", "Try again later.")
            changed = base.execute(
                "UPDATE bundles SET state = 'burned', changed_at = ? WHERE bundle_id = ? AND state = 'ready'"
                " AND owner = ? AND program = ? AND expires_at > ?",
                (now, bundle_id, owner, program, now),
            ).rowcount
        if changed != 1:
            raise _refused(bundle_id, self._why_not(bundle_id, owner, program))

    def discard(self, bundle_id: bytes) -> None:
        """Whatever it was, it will not be used."""
        with self._change() as base:
            base.execute(
                "UPDATE bundles SET state = 'discarded', changed_at = ? WHERE bundle_id = ? AND state != 'burned'",
                (self._clock(), bundle_id),
            )

    def ready(self, *, owner: str | None = None, program: str | None = None) -> list[Entry]:
        """Those that can be used now, the one that expires first at the front."""
        given = {"owner": owner, "program": program}
        asked = {column: value for column, value in given.items() if value is not None}
        condition = " AND ".join(["state = 'ready'", "expires_at > ?", *(f"{column} = ?" for column in asked)])
        return self._entries(condition, (self._clock(), *asked.values()))

    def expired(self) -> list[Entry]:
        return self._entries("state = 'ready' AND expires_at <= ?", (self._clock(),))

    def begun_images(self, owner: str) -> int:
        """For how many images the owner began bundles in the last hour, whatever became of them."""
        with self._lock:
            return self._begun(self._base, owner, self._clock() - HOUR_S)

    def usual_bytes(self, program: str, backend: str, batch: int) -> int:
        """How large bundles of this kind came out so far; 0 if there was none."""
        found = self._select(
            "SELECT MAX(size_bytes) FROM bundles WHERE program = ? AND backend = ? AND batch = ?",
            (program, backend, batch),
        )
        return int(found[0][0] or 0)

    def kept_bytes(self, owner: str) -> int:
        """How large the owner's ready bundles are together."""
        found = self._select("SELECT TOTAL(size_bytes) FROM bundles WHERE owner = ? AND state = 'ready'", (owner,))
        return int(found[0][0])

    def state(self, bundle_id: bytes) -> str | None:
        found = self._select("SELECT state FROM bundles WHERE bundle_id = ?", (bundle_id,))
        return str(found[0][0]) if found else None

    def bind(self, weights_hash: str) -> None:
        """A server's bundles hold shares of its weights: with other weights they would give wrong results unseen."""
        with self._change() as base:
            if base.execute("SELECT hash FROM weights").fetchall() != [(weights_hash,)]:
                base.execute(
                    "UPDATE bundles SET state = 'discarded', changed_at = ? WHERE state IN ('reserved', 'ready')",
                    (self._clock(),),
                )
                base.execute("DELETE FROM weights")
                base.execute("INSERT INTO weights VALUES (?)", (weights_hash,))

    def clean(self) -> None:
        """At start: what was being prepared never will be, and old spent rows go."""
        now = self._clock()
        with self._change() as base:
            base.execute("UPDATE bundles SET state = 'discarded', changed_at = ? WHERE state = 'reserved'", (now,))
            base.execute(
                "DELETE FROM bundles WHERE state IN ('burned', 'discarded') AND changed_at < ?", (now - KEEP_SPENT_S,)
            )

    def close(self) -> None:
        with self._lock:
            self._base.close()

    def _create(self, path: Path) -> None:
        version = self._base.execute("PRAGMA user_version").fetchone()[0]
        if version == 0:
            self._base.executescript(f"BEGIN IMMEDIATE; {_SCHEMA} PRAGMA user_version = {VERSION}; COMMIT;")
            _sync_folder(path.parent)
        elif version != VERSION:
            raise sqlite3.DatabaseError(f"it is of version {version}, this installation reads {VERSION}")

    def _add_later_column(self) -> None:
        columns = {row[1] for row in self._base.execute("PRAGMA table_info(bundles)")}
        if "reserved_at" not in columns:
            self._base.execute(_LATER_COLUMN)

    @contextmanager
    def _change(self) -> Iterator[sqlite3.Connection]:
        """One transaction; it is on the disk when this returns."""
        with self._lock:
            self._base.execute("BEGIN IMMEDIATE")
            try:
                yield self._base
            except BaseException:
                self._base.execute("ROLLBACK")
                raise
            self._base.execute("COMMIT")

    def _held(self, base: sqlite3.Connection, entry: Entry) -> int:
        """Bundles of the same owner and program that are ready or in the making."""
        found = base.execute(
            "SELECT COUNT(*) FROM bundles WHERE owner = ? AND program = ? AND state IN ('reserved', 'ready')"
            " AND expires_at > ?",
            (entry.owner, entry.program, self._clock()),
        )
        return int(found.fetchone()[0])

    def _begun(self, base: sqlite3.Connection, owner: str, since: float) -> int:
        """No row changes before it is reserved, so the index finds the hour's rows by their last change."""
        found = base.execute(
            "SELECT TOTAL(batch) FROM bundles WHERE owner = ? AND state IN ('reserved', 'ready', 'burned', 'discarded')"
            " AND changed_at > ? AND reserved_at > ?",
            (owner, since, since),
        )
        return int(found.fetchone()[0])

    def _images(self, base: sqlite3.Connection, bundle_id: bytes, owner: str, since: float) -> int:
        """How many the owner has had inferred since then, and those of this bundle."""
        found = base.execute(
            "SELECT (SELECT TOTAL(batch) FROM bundles WHERE owner = ? AND state = 'burned' AND changed_at > ?)"
            " + (SELECT TOTAL(batch) FROM bundles WHERE bundle_id = ? AND owner = ? AND state = 'ready')",
            (owner, since, bundle_id, owner),
        )
        return int(found.fetchone()[0])

    def _select(self, query: str, values: tuple[object, ...]) -> list[tuple[Any, ...]]:
        with self._lock:
            return self._base.execute(query, values).fetchall()

    def _entries(self, condition: str, values: tuple[object, ...]) -> list[Entry]:
        rows = self._select(f"SELECT {_COLUMNS} FROM bundles WHERE {condition} ORDER BY expires_at", values)
        return [Entry(*row) for row in rows]

    def _why_not(self, bundle_id: bytes, owner: str, program: str) -> str:
        found = self._select("SELECT state, owner, program FROM bundles WHERE bundle_id = ?", (bundle_id,))
        if not found or found[0][1] != owner:
            return "there is none with this identifier for this party"
        state, _, made_for = found[0]
        if made_for != program:
            return "it was made for another program"
        reasons = {"ready": "it has expired", "burned": "it was used before", "reserved": "it is not ready"}
        return reasons.get(str(state), "it was discarded")


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _refused(bundle_id: bytes, why: str, remedy: str = "Prepare a new bundle.") -> BundleRefusedError:
    return BundleRefusedError(why, where=f"bundle {bundle_id.hex()[:8]}", remedy=remedy)
