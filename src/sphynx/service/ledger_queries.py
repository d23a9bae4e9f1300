"""Queries that a change of the ledger makes inside its transaction: counts for limits, and numbers of burns."""

from __future__ import annotations

import sqlite3

HOUR_S = 3600.0


def count_held(base: sqlite3.Connection, owner: str, program: str, now: float) -> int:
    """Count the owner's bundles for this program that are ready or in the making."""
    found = base.execute(
        "SELECT COUNT(*) FROM bundles WHERE owner = ? AND program = ? AND state IN ('reserved', 'ready')"
        " AND expires_at > ?",
        (owner, program, now),
    )
    return int(found.fetchone()[0])


def count_images(base: sqlite3.Connection, bundle_id: bytes, owner: str, now: float) -> int:
    """Count what the owner has had inferred in the last hour, and what this bundle is for."""
    found = base.execute(
        "SELECT (SELECT TOTAL(batch) FROM bundles WHERE owner = ? AND state = 'burned'"
        " AND changed_at > ? AND changed_at < ?)"
        " + (SELECT TOTAL(batch) FROM bundles WHERE bundle_id = ? AND owner = ? AND state = 'ready')",
        (owner, *_last_hour(now), bundle_id, owner),
    )
    return int(found.fetchone()[0])


def query_begun(owner: str, now: float) -> tuple[str, tuple[object, ...]]:
    """Return the query for how many images the owner began bundles in the last hour.

    No row changes before it is reserved, so the index finds the hour's rows by their last change."""
    query = (
        "SELECT TOTAL(batch) FROM bundles WHERE owner = ? AND state IN ('reserved', 'ready', 'burned', 'discarded')"
        " AND changed_at > ? AND reserved_at > ? AND reserved_at < ?"
    )
    since, until = _last_hour(now)
    return query, (owner, since, since, until)


def burn_number(base: sqlite3.Connection, owner: str, program: str) -> int:
    found = base.execute("SELECT burned FROM burns WHERE owner = ? AND program = ?", (owner, program)).fetchone()
    return int(found[0]) if found else 0


def set_burn_number(base: sqlite3.Connection, owner: str, program: str, burned: int) -> None:
    base.execute(
        "INSERT INTO burns (owner, program, burned) VALUES (?, ?, ?)"
        " ON CONFLICT (owner, program) DO UPDATE SET burned = excluded.burned",
        (owner, program, burned),
    )


def catch_up(base: sqlite3.Connection, noted: int | None, now: float) -> tuple[bool, int]:
    """Return whether the ledger is behind its note, and how many bundles were burned. What an older state calls ready
    may have been used since: it is discarded."""
    burns = int(base.execute("SELECT TOTAL(burns) FROM level").fetchone()[0])
    if noted is None or burns >= noted:
        return False, burns
    base.execute("UPDATE bundles SET state = 'discarded', changed_at = ? WHERE state = 'ready'", (now,))
    base.execute("UPDATE level SET burns = ?", (noted,))
    return True, noted


def _last_hour(now: float) -> tuple[float, float]:
    """The beginning and the end of the last hour. Clocks are set back a little; what lies further ahead is of a
    clock that was wrong, and would count until that time has come."""
    return now - HOUR_S, now + HOUR_S
