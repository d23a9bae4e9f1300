"""The single-use ledger: which bundles are ready, and which are burned, for ever. One SQLite file per party.

    reserved -> ready -> burned (used), or discarded

`burn` returns after the change is on the disk (`ledger_file.py`), and only then may a byte that depends on the bundle
leave. It changes a row that is ready and not expired, in one statement, or raises: whatever crashes, and whoever calls
at the same time in this process or another, a bundle is burned once. A crash may lose bundles; it never revives one.

Every row names its *holder* (`holders.py`): the process that prepares it, that wants to use it next, or that burned it.
"""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from pathlib import Path

from sphynx.errors import BundleGoneError, BundleRefusedError, DiskError
from sphynx.service.ledger_file import LedgerFile
from sphynx.service.ledger_queries import (
    HOUR_S,
    burn_number,
    catch_up,
    count_held,
    count_images,
    query_begun,
    set_burn_number,
)
from sphynx.service.waterline import Waterline

_SET_BACK = "an older state of the ledger was put back while it was in use; all bundles are discarded"
KEEP_SPENT_S = 90 * 86_400.0  # then a row goes; its identifier stays unusable, because only ready rows are
_COLUMNS = "bundle_id, owner, program, backend, batch, expires_at, size_bytes, offline_seconds, offline_bytes, holder"


@dataclass(frozen=True)
class Entry:
    bundle_id: bytes
    owner: str  # the other party: the subject and issuer of its certificates
    program: str
    backend: str
    batch: int
    expires_at: float  # seconds since 1970
    size_bytes: int = 0
    offline_seconds: float = 0.0
    offline_bytes: int = 0
    holder: str = ""  # of a ready one: who wants to use it next, if anybody


class Ledger:
    def __init__(self, path: Path, clock: Callable[[], float] = time.time, holder: str = "") -> None:
        self._clock, self._holder = clock, holder
        self._file = LedgerFile(path)
        self._given_up: set[bytes] = set()  # discarded, but the disk did not take it
        self._confirmed: dict[tuple[str, str], int] = {}  # by owner and program: to be written with the next change
        self._waterline: Waterline | None = None

    def on_behalf_of(self, holder: str) -> Ledger:
        """The same file, for another process that asks this one (`owner.py`), and the same changes still to be written:
        they outlive whoever asked for them."""
        other = copy(self)
        other._holder = holder
        return other

    def reserve(self, *entries: Entry, most: int | None = None, hourly: int | None = None) -> None:
        """All of them, or none. An identifier is taken once, whatever becomes of it. The owner may have `most` bundles,
        these included, and begin bundles for `hourly` images in an hour, however many connections prepare at the same
        time."""
        now = self._clock()
        with self._change() as base:
            for entry in entries:
                self._reserve_one(base, entry, now, most, hourly)

    def _reserve_one(
        self, base: sqlite3.Connection, entry: Entry, now: float, most: int | None, hourly: int | None
    ) -> None:
        values = (entry.bundle_id, entry.owner, entry.program, entry.backend, entry.batch, entry.expires_at)
        if most is not None and count_held(base, entry.owner, entry.program, now) >= most:
            raise _refusal(entry.bundle_id, f"a client may keep {most} bundles ready", "Use some first.")
        (begun_images,) = base.execute(*query_begun(entry.owner, now)).fetchone()
        if hourly is not None and begun_images + entry.batch > hourly:
            raise _refusal(entry.bundle_id, f"a client may prepare for {hourly} images per hour", "Try again later.")
        try:
            base.execute(
                "INSERT INTO bundles (bundle_id, owner, program, backend, batch, expires_at, state, changed_at,"
                " reserved_at, holder) VALUES (?, ?, ?, ?, ?, ?, 'reserved', ?, ?, ?)",
                (*values, now, now, self._holder),
            )
        except sqlite3.IntegrityError:
            raise _refusal(entry.bundle_id, "its identifier was used before") from None

    def make_ready(
        self, *bundle_ids: bytes, size_bytes: int, offline_seconds: float, offline_bytes: int, keep: bool = False
    ) -> None:
        """All of them, or none; the numbers are those of each. `keep`: for this holder to use. Otherwise whoever comes
        first."""
        holder = self._holder if keep else ""
        with self._change() as base:
            for bundle_id in bundle_ids:
                changed = base.execute(
                    "UPDATE bundles SET state = 'ready', size_bytes = ?, offline_seconds = ?, offline_bytes = ?,"
                    " changed_at = ?, holder = ? WHERE bundle_id = ? AND state = 'reserved'",
                    (size_bytes, offline_seconds, offline_bytes, self._clock(), holder, bundle_id),
                ).rowcount
                if changed != 1:  # undoes the others
                    raise _refusal(bundle_id, "it is not being prepared")

    def keep(self, bundle_id: bytes) -> None:
        """A ready bundle becomes this holder's to use next. No more than a wish: `burn` alone decides."""
        with self._change() as base:
            changed = base.execute(
                "UPDATE bundles SET holder = ? WHERE bundle_id = ? AND state = 'ready'", (self._holder, bundle_id)
            ).rowcount
        if changed != 1:
            raise BundleGoneError("it is not ready", where=_name(bundle_id), remedy="Prepare a new bundle.")

    def burn(
        self, bundle_id: bytes, *, owner: str, program: str, hourly: int | None = None, number: int | None = None
    ) -> int:
        """`hourly`: the most images that the owner may have inferred in an hour, these included, however many
        connections ask at the same time. Burns are numbered by the client; `number` is what it says. Returns the
        number."""
        now = self._clock()
        with self._change() as base:
            noted = self._waterline.level() if self._waterline is not None else None
            is_set_back, burns = catch_up(base, noted, now)
            changed = 0
            if not is_set_back:
                if hourly is not None and count_images(base, bundle_id, owner, now) > hourly:
                    why = f"a client may have {hourly} images inferred per hour"
                    raise _refusal(bundle_id, why, "Try again later.")
                changed = base.execute(
                    "UPDATE bundles SET state = 'burned', changed_at = ?, holder = ? WHERE bundle_id = ?"
                    " AND state = 'ready' AND owner = ? AND program = ? AND expires_at > ?",
                    (now, self._holder, bundle_id, owner, program, now),
                ).rowcount
            if changed == 1:
                known = burn_number(base, owner, program)
                burned = known + 1 if number is None else max(known, number)
                set_burn_number(base, owner, program, burned)
                base.execute("UPDATE level SET burns = ?", (burns + 1,))
        if changed != 1:
            why = _SET_BACK if is_set_back else self._why_not(bundle_id, owner, program)
            raise BundleGoneError(why, where=_name(bundle_id), remedy="Prepare a new bundle.")
        if self._waterline is not None:
            self._waterline.raise_to(burns + 1)
        return burned

    def confirm(self, owner: str, program: str, number: int) -> None:
        """The owner has burned the bundle with this number too. Written with the next change, or at the end."""
        known = self._confirmed.get((owner, program), 0)
        self._confirmed[owner, program] = max(known, number)

    def confirmed(self, owner: str) -> dict[str, int]:
        """Map each program to the number up to which the owner must know of our burns."""
        return dict(self._file.select("SELECT program, confirmed FROM burns WHERE owner = ?", (owner,)))

    def burned(self, owner: str, program: str) -> int:
        """The highest number of a bundle burned with the owner, 0 if there was none."""
        found = self._file.select("SELECT burned FROM burns WHERE owner = ? AND program = ?", (owner, program))
        return int(found[0][0]) if found else 0

    def fall_in(self, owner: str, program: str, burned: int) -> list[Entry]:
        """The owner knows of more burns: this ledger is an older copy. What it calls ready may have been used since;
        it is discarded and returned, and numbers go on from the owner's."""
        behind = self.ready(owner=owner, program=program)
        self._given_up.update(entry.bundle_id for entry in behind)
        with self._change() as base:
            set_burn_number(base, owner, program, max(burned, burn_number(base, owner, program)))
        return behind

    def discard(self, *bundle_ids: bytes) -> None:
        """Whatever they were, they will not be used. If the disk is full, that is written with the next change."""
        self._given_up.update(bundle_ids)
        with contextlib.suppress(DiskError), self._change():
            pass  # every change writes what was given up before

    @property
    def unwritten(self) -> int:
        """How many bundles were given up that the disk has not taken yet."""
        return len(self._given_up)

    def ready(self, *, owner: str | None = None, program: str | None = None) -> list[Entry]:
        """List the bundles that can be used now, the one that expires first at the front."""
        given = {"owner": owner, "program": program}
        asked = {column: value for column, value in given.items() if value is not None}
        condition = " AND ".join(["state = 'ready'", "expires_at > ?", *(f"{column} = ?" for column in asked)])
        return self._entries(condition, (self._clock(), *asked.values()))

    def expired(self) -> list[Entry]:
        return self._entries("state = 'ready' AND expires_at <= ?", (self._clock(),))

    def begun_images(self, owner: str) -> int:
        """Count the images for which the owner began bundles in the last hour, whatever became of them."""
        return int(self._file.select(*query_begun(owner, self._clock()))[0][0])

    def usual_bytes(self, program: str, backend: str, batch: int) -> int:
        """How large bundles of this kind came out so far; 0 if there was none."""
        found = self._file.select(
            "SELECT MAX(size_bytes) FROM bundles WHERE program = ? AND backend = ? AND batch = ?",
            (program, backend, batch),
        )
        return int(found[0][0] or 0)

    def kept_bytes(self, owner: str) -> int:
        """How large the owner's ready bundles are together."""
        found = self._file.select("SELECT TOTAL(size_bytes) FROM bundles WHERE owner = ? AND state = 'ready'", (owner,))
        return int(found[0][0])

    def state(self, bundle_id: bytes) -> str | None:
        found = self._file.select("SELECT state FROM bundles WHERE bundle_id = ?", (bundle_id,))
        return str(found[0][0]) if found else None

    def preparing(self) -> set[str]:
        """The holders of what is being prepared."""
        return {
            str(row[0]) for row in self._file.select("SELECT DISTINCT holder FROM bundles WHERE state = 'reserved'")
        }

    def give_up(self, holders: Collection[str]) -> list[bytes]:
        """Discard what these holders were preparing: it never will be ready."""
        if not holders:
            return []
        query = f"SELECT bundle_id FROM bundles WHERE state = 'reserved' AND holder IN ({_marks(holders)})"
        found = [bytes(row[0]) for row in self._file.select(query, tuple(holders))]
        self.discard(*found)
        return found

    def alive(self, bundle_ids: Iterable[bytes], live: Callable[[], Collection[str]]) -> set[bytes]:
        """The bundles that are ready, or that one of the `live` holders is preparing or has burned just now: its
        inference may be under way. The holders are asked for when the rows have been read."""
        asked = list(bundle_ids)
        query = f"SELECT bundle_id, state, holder, changed_at FROM bundles WHERE bundle_id IN ({_marks(asked)})"
        rows = self._file.select(query, tuple(asked))
        holders, since = live(), self._clock() - HOUR_S
        return {
            bytes(bundle_id)
            for bundle_id, state, holder, changed_at in rows
            if state == "ready" or (state in ("reserved", "burned") and holder in holders and changed_at > since)
        } - self._given_up

    def bound(self) -> str | None:
        """Return what `bind` was told, None before that."""
        found = self._file.select("SELECT hash FROM weights")
        return str(found[0][0]) if found else None

    def home(self) -> str:
        """The mark that `move_in` wrote, "" before that."""
        found = self._file.select("SELECT mark FROM home")
        return str(found[0][0]) if found else ""

    def move_in(self, mark: str) -> None:
        with self._change() as base:
            base.execute("DELETE FROM home")
            base.execute("INSERT INTO home VALUES (?)", (mark,))

    def level(self) -> tuple[str, int]:
        """The name of the note outside the folder, "" if there is none, and how many bundles were burned since."""
        found = self._file.select("SELECT note, burns FROM level")
        return (str(found[0][0]), int(found[0][1])) if found else ("", 0)

    def watch(self, note: str, burns: int, waterline: Waterline) -> None:
        """From now on burns are noted there as well, and one that finds the ledger behind its note fails."""
        with self._change() as base:
            base.execute("DELETE FROM level")
            base.execute("INSERT INTO level VALUES (?, ?)", (note, burns))
        waterline.raise_to(burns)
        self._waterline = waterline

    def bind(self, served: str) -> None:
        """A server's bundles hold shares of its weights: with other weights they would give wrong results unseen, and
        where clients are checked otherwise they would be no protection. `served` names both."""
        if self.bound() == served:
            return
        with self._change() as base:
            base.execute(
                "UPDATE bundles SET state = 'discarded', changed_at = ? WHERE state IN ('reserved', 'ready')",
                (self._clock(),),
            )
            base.execute("DELETE FROM weights")
            base.execute("INSERT INTO weights VALUES (?)", (served,))

    def clean(self) -> None:
        """Old spent rows go."""
        with self._change() as base:
            base.execute(
                "DELETE FROM bundles WHERE state IN ('burned', 'discarded') AND changed_at < ?",
                (self._clock() - KEEP_SPENT_S,),
            )

    def close(self) -> None:
        if self._confirmed:
            with contextlib.suppress(DiskError), self._change():
                pass  # every change writes what was confirmed before
        if self._waterline is not None:
            self._waterline.close()
        self._file.close()

    @contextmanager
    def _change(self) -> Iterator[sqlite3.Connection]:
        with self._file.change() as base:
            given_up = list(self._given_up)
            for bundle_id in given_up:
                base.execute(
                    "UPDATE bundles SET state = 'discarded', changed_at = ? WHERE bundle_id = ? AND state != 'burned'",
                    (self._clock(), bundle_id),
                )
            confirmed = dict(self._confirmed)
            for (owner, program), number in confirmed.items():
                base.execute(
                    "UPDATE burns SET confirmed = MAX(confirmed, ?) WHERE owner = ? AND program = ?",
                    (number, owner, program),
                )
            yield base
        self._given_up.difference_update(given_up)
        for key, number in confirmed.items():
            if self._confirmed.get(key) == number:
                self._confirmed.pop(key, None)  # another thread may have written it, too

    def _entries(self, condition: str, values: tuple[object, ...]) -> list[Entry]:
        rows = self._file.select(f"SELECT {_COLUMNS} FROM bundles WHERE {condition} ORDER BY expires_at", values)
        return [entry for row in rows if (entry := Entry(*row)).bundle_id not in self._given_up]

    def _why_not(self, bundle_id: bytes, owner: str, program: str) -> str:
        found = self._file.select("SELECT state, owner, program FROM bundles WHERE bundle_id = ?", (bundle_id,))
        if not found or found[0][1] != owner:
            return "there is none with this identifier for this party"
        state, _, made_for = found[0]
        if made_for != program:
            return "it was made for another program"
        reasons = {"ready": "it has expired", "burned": "it was used before", "reserved": "it is not ready"}
        return reasons.get(str(state), "it was discarded")


def _marks(values: Collection[object]) -> str:
    return ", ".join("?" * len(values))


def _name(bundle_id: bytes) -> str:
    return f"bundle {bundle_id.hex()[:8]}"


def _refusal(bundle_id: bytes, why: str, remedy: str = "Prepare a new bundle.") -> BundleRefusedError:
    return BundleRefusedError(why, where=_name(bundle_id), remedy=remedy)
