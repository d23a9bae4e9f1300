"""The SQLite file of a ledger: its tables, and changes that are on the disk when they return, or never were.

A write-ahead log with synchronous=FULL; every change is one transaction that takes the write lock first, so that
threads and processes take turns. What cannot be written raises DiskError and leaves the file as it was; so does a file
that is found damaged while it is in use.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sphynx.errors import DiskError, InputError

VERSION = 2
BUSY_S = 30.0
_UNWRITABLE = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_CANTOPEN,  # permissions, or no file descriptor left: nothing is wrong with the file
}
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_START_ANEW = "Move the whole folder away: its bundles are lost, and new ones can be prepared."
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
    changed_at REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE weights (hash TEXT NOT NULL);
"""
# Ledgers of version 1 have none, or the first, of these.
_LATER_COLUMNS = {"reserved_at": "REAL NOT NULL DEFAULT 0", "holder": "TEXT NOT NULL DEFAULT ''"}
# Spent rows stay for months, up to 3,600 an hour for each client: no request may read through them.
_INDICES = """
CREATE INDEX IF NOT EXISTS by_hour ON bundles (owner, state, changed_at, reserved_at, batch);
CREATE INDEX IF NOT EXISTS by_expiry ON bundles (expires_at) WHERE state = 'ready';
CREATE INDEX IF NOT EXISTS by_holder ON bundles (holder) WHERE state = 'reserved';
CREATE INDEX IF NOT EXISTS by_size ON bundles (batch, backend, program, size_bytes);
DROP INDEX IF EXISTS by_owner;
DROP INDEX IF EXISTS by_use;
"""
# How many bundles were burned with a peer, and as how many of those the peer must know; where the file is at home; and
# how many were burned in all, with the name of the note that says so elsewhere (`waterline.py`).
_LATER_TABLES = """
CREATE TABLE IF NOT EXISTS burns (
    owner TEXT NOT NULL,
    program TEXT NOT NULL,
    burned INTEGER NOT NULL DEFAULT 0,
    confirmed INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (owner, program)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS home (mark TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS level (note TEXT NOT NULL, burns INTEGER NOT NULL);
"""


class LedgerFile:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        try:
            _create_private(path)
            self._base = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
            self._base.execute("PRAGMA journal_mode=WAL")
            self._base.execute("PRAGMA synchronous=FULL")
            self._create()
        except (sqlite3.Error, UnicodeDecodeError, OSError) as error:
            if _is_unwritable(error):
                raise self._unwritable(error) from None
            raise InputError(
                f"it cannot be used ({error})",
                where=str(path),
                remedy=_START_ANEW,
            ) from None

    @contextmanager
    def change(self) -> Iterator[sqlite3.Connection]:
        """One transaction; it is on the disk when this returns."""
        with self._lock:
            try:
                self._base.execute("BEGIN IMMEDIATE")
                yield self._base
                self._base.execute("COMMIT")
            except BaseException as error:
                if self._base.in_transaction:  # also after a COMMIT that failed: the next change would find it open
                    with contextlib.suppress(sqlite3.Error):  # what failed first is what has to be said
                        self._base.execute("ROLLBACK")
                if _is_unwritable(error):
                    with contextlib.suppress(sqlite3.Error):  # the log may be what fills the disk
                        self._base.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                    raise self._unwritable(error) from None
                if _is_damaged(error):
                    raise self._damage_error(error) from None
                raise

    def select(self, query: str, values: tuple[object, ...] = ()) -> list[tuple[Any, ...]]:
        with self._lock:
            try:
                return self._base.execute(query, values).fetchall()
            except (sqlite3.Error, UnicodeDecodeError) as error:
                if _is_unwritable(error):
                    raise self._unwritable(error) from None
                if _is_damaged(error):
                    raise self._damage_error(error) from None
                raise

    def close(self) -> None:
        with self._lock:
            self._base.close()

    def _create(self) -> None:
        version = self._base.execute("PRAGMA user_version").fetchone()[0]
        if version > VERSION:
            raise sqlite3.DatabaseError(f"it is of version {version}, this installation reads {VERSION}")
        if version == 0:
            self._base.executescript(f"BEGIN IMMEDIATE; {_SCHEMA} PRAGMA user_version = 1; COMMIT;")
            _sync_folder(self._path.parent)
        columns = {row[1] for row in self._base.execute("PRAGMA table_info(bundles)")}
        for column in _LATER_COLUMNS.keys() - columns:
            self._base.execute(f"ALTER TABLE bundles ADD COLUMN {column} {_LATER_COLUMNS[column]}")
        self._base.executescript(f"{_LATER_TABLES} {_INDICES} PRAGMA user_version = {VERSION};")

    def _damage_error(self, error: BaseException) -> DiskError:
        return DiskError(f"it is damaged ({error})", where=str(self._path), remedy=_START_ANEW)

    def _unwritable(self, error: BaseException) -> DiskError:
        return DiskError(
            f"it cannot be written ({error})",
            where=str(self._path),
            remedy="Check permissions and free disk space, or end the process that keeps it locked, and try again.",
        )


def _create_private(path: Path) -> None:
    """Create the file unless it is there: that one must not be opened here. SQLite's locks are the process's
    (fcntl), and whoever closes any descriptor of a file gives up all of them, also those of another ledger that this
    process has open. Another process would then take itself for the last one, and delete the log that this one goes
    on writing to."""
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))


def _is_unwritable(error: BaseException) -> bool:
    if isinstance(error, OSError):
        return True
    return isinstance(error, sqlite3.OperationalError) and getattr(error, "sqlite_errorcode", 0) & 0xFF in _UNWRITABLE


def _is_damaged(error: BaseException) -> bool:
    """Text that cannot be decoded is text that nobody wrote. It may be a value, for which Python's OperationalError has
    no code, or part of SQLite's message about a schema that it does not understand."""
    if isinstance(error, sqlite3.OperationalError):
        return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF in _DAMAGED
    is_told = type(error) is sqlite3.DatabaseError and getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGED
    return is_told or isinstance(error, UnicodeDecodeError)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
