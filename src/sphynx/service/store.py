"""Bundles on disk, within a quota, in a folder that several processes may share; the ledger says which may be used.

    FOLDER/lock, holders/   who uses the folder (`holders.py`)
    FOLDER/ledger.sqlite    the truth about every bundle
    FOLDER/bundles/ID       what is ready, one file each

`take` loads a bundle, burns it durably and only then returns it: there is no way to one without burning it. Its file is
deleted by `delete_spent`, when the inference is over (`deletions.py`). New bundles, and those that were asked for, stay
in memory as well (`at_hand.py`). A file is swept away at start unless its bundle is ready or a process that lives
prepares it, and all are if the server's weights are others now.

Where owners share the folder, each may keep as many bytes as it leaves free: one alone half of the quota, two that take
as much a third each. Whoever keeps nothing yet may keep one bundle as long as one fits.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from sphynx.errors import (
    BundleGoneError,
    BundleRefusedError,
    DiskError,
    InputError,
    OtherFormatError,
)
from sphynx.protocol.bundle import TEMPORARY, Bundle, load_bundle
from sphynx.service.at_hand import AtHand
from sphynx.service.deletions import Deletions
from sphynx.service.file_system import check_local
from sphynx.service.holders import Holders
from sphynx.service.ledger import Entry, Ledger
from sphynx.service.reopening import bind_bundles, settle_in
from sphynx.service.room import Room

LEDGER, BUNDLES = "ledger.sqlite", "bundles"
_log = logging.getLogger(__name__)


class Written(NamedTuple):
    """A bundle's file that is on the disk and has yet to be renamed."""

    bundle_id: bytes
    temporary: Path
    path: Path
    bytes: int


class Store:
    def __init__(
        self,
        folder: Path,
        *,
        quota_bytes: int,
        memory_bytes: int = 0,
        weights_hash: str = "",
        check_plan: str = "",
        shared: bool = False,
        trust: bool = False,
        tell: Callable[[str], None] = _log.warning,
        clock: Callable[[], float] = time.time,
        owned_ledger: Callable[[str], Ledger] | None = None,
    ) -> None:
        """`weights_hash` and `check_plan` are the server's. A server's store is `shared` by its clients. `trust` keeps
        the bundles of a folder that may have been restored; otherwise `tell` hears why they went.

        `owned_ledger`, given this holder's name, is the ledger of another process, which has opened the folder."""
        self._folder = folder
        self.room = Room(folder, folder / BUNDLES, quota_bytes, shared=shared)
        self._at_hand = AtHand(memory_bytes, lambda name: self.ledger.state(name) in ("reserved", "ready"))
        self._deletions = Deletions()
        with contextlib.ExitStack() as opening:
            try:
                for made in (folder, folder / BUNDLES):
                    made.mkdir(mode=0o700, parents=True, exist_ok=True)
                    made.chmod(0o700)
                check_local(folder)
                self._holders = Holders(folder)
                opening.callback(self._holders.leave)
                with self._holders.alone():
                    self._holders.enter()
                    if owned_ledger is not None:
                        self.ledger = owned_ledger(self._holders.name)
                    else:
                        self.ledger = Ledger(folder / LEDGER, clock, self._holders.name)
                        opening.callback(self.ledger.close)
                        is_alone = len(self._holders.live()) <= 1
                        bind_bundles(self.ledger, folder, weights_hash, check_plan, tell, is_alone=is_alone)
                        settle_in(self.ledger, folder / LEDGER, self.discard, tell, trust=trust)
                        self._sweep()
            except OSError as error:
                raise InputError(
                    f"it cannot be used ({error.strerror})",
                    where=str(folder),
                    remedy="Choose another folder: `state=DIR`.",
                ) from None
            opening.pop_all()

    def close(self) -> None:
        self._at_hand.clear()
        self._deletions.finish()
        self.ledger.close()
        self._holders.leave()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def used_bytes(self) -> int:
        self._deletions.finish()
        return self.room.used_bytes()

    def check_room(self, count: int, *, owner: str, program: str, backend: str, batch: int) -> None:
        """Raise, before the work is done, if `count` bundles as large as the last of their kind would not fit."""
        bundle_bytes = self.ledger.usual_bytes(program, backend, batch)
        self._deletions.finish()
        self._make_room(count, bundle_bytes, owner)
        self.room.check_disk(count * bundle_bytes)

    def reserve(self, *entries: Entry, most: int | None = None, hourly: int | None = None) -> None:
        """Before bundles are prepared; `most` and `hourly` as `Ledger.reserve`."""
        for bundle_id in self.ledger.give_up(self.ledger.preparing() - self._holders.live()):
            self._unlink(bundle_id)
        self.ledger.reserve(*entries, most=most, hourly=hourly)

    def put(self, *bundles: Bundle, owner: str, offline_seconds: float, offline_bytes: int, keep: bool = False) -> None:
        """Keep bundles of one group that were reserved: `write` each, then `make_ready`."""
        try:
            written = [self.write(bundle, owner=owner, group=len(bundles)) for bundle in bundles]
        except BaseException:
            self.discard(*(bundle.bundle_id for bundle in bundles))
            raise
        self.make_ready(written, owner=owner, offline_seconds=offline_seconds, offline_bytes=offline_bytes, keep=keep)

    def write(self, bundle: Bundle, *, owner: str, group: int = 1) -> Written:
        """Write one of a group of reserved bundles to the disk, where nobody can take it yet."""
        path = self._path(bundle.bundle_id)
        self._deletions.finish()
        self._make_room(group, bundle.bytes, owner)
        self.room.check_disk(bundle.bytes)
        # Without the others waiting: processes would take turns at what takes the longest.
        temporary = _write(bundle, path)
        self._at_hand.offer(bundle)  # before it may be taken: one that is burned must not stay
        return Written(bundle.bundle_id, temporary, path, bundle.bytes)

    def make_ready(
        self,
        written: Sequence[Written],
        *,
        owner: str,
        offline_seconds: float,
        offline_bytes: int,
        keep: bool = False,
    ) -> None:
        """Let all bundles of a group be taken, or none; the numbers are those of each. `keep`: for nobody else."""
        try:
            with self._holders.alone():  # until the ledger has them: the owner's next ones must find them counted
                self._deletions.finish()  # of bundles that were used meanwhile
                self._make_room(len(written), max(each.bytes for each in written), owner)
                for each in written:
                    _rename(each.temporary, each.path)
                self.ledger.make_ready(
                    *(each.bundle_id for each in written),
                    size_bytes=max(each.path.stat().st_size for each in written),
                    offline_seconds=offline_seconds,
                    offline_bytes=offline_bytes,
                    keep=keep,
                )
        except BaseException:
            self.discard(*(each.bundle_id for each in written))
            raise

    def preload(self, bundle_id: bytes) -> None:
        """Into memory, in place of others, and kept from other processes: reading a large file and checking its hash
        is then no part of `take`."""
        self.ledger.keep(bundle_id)
        if bundle_id in self._at_hand:
            return
        path = self._path(bundle_id)
        try:
            bundle = load_bundle(path)
        except InputError as error:
            is_gone = _is_gone(path, error)
            self.discard(bundle_id)  # it would be chosen, and fail, again and again
            if is_gone:
                raise _gone_error(bundle_id) from None
            raise
        self._at_hand.put_first(bundle)
        if self.ledger.state(bundle_id) != "ready":  # burned or discarded while it was read
            self._at_hand.let_go(bundle_id)

    def take(
        self, bundle_id: bytes, *, owner: str, program: str, hourly: int | None = None, number: int | None = None
    ) -> tuple[Bundle, int]:
        """The bundle, burned, and its number. Whatever goes wrong from here on, it cannot be taken again. `hourly` and
        `number` as `Ledger.burn`."""
        path = self._path(bundle_id)
        at_hand = self._at_hand.let_go(bundle_id)
        try:
            bundle = at_hand or load_bundle(path)
        except InputError as error:
            # says why, where that is the ledger's to say
            self.ledger.burn(bundle_id, owner=owner, program=program, hourly=hourly, number=number)
            is_gone = _is_gone(path, error)
            self.discard(bundle_id)
            if is_gone:
                raise _gone_error(bundle_id) from None
            raise BundleRefusedError(
                error.what, where=f"bundle {bundle_id.hex()[:8]}", remedy="Prepare a new bundle."
            ) from None
        burned = self.ledger.burn(bundle_id, owner=owner, program=program, hourly=hourly, number=number)
        self._at_hand.let_go(bundle_id)  # a `preload` may have read it meanwhile
        self._deletions.note(path)
        if bundle.bundle_id != bundle_id or bundle.program_hash != program:
            self.delete_spent()
            raise BundleRefusedError(
                "its file contains a different bundle",
                where=f"bundle {bundle_id.hex()[:8]}",
                remedy="Prepare a new bundle.",
            )
        return bundle, burned

    def delete_spent(self) -> None:
        """Starts to delete the files of bundles that were taken."""
        self._deletions.start()

    def discard(self, *bundle_ids: bytes) -> None:
        for bundle_id in bundle_ids:
            self._unlink(bundle_id)  # first: where the disk is full, the ledger needs the room
        self.ledger.discard(*bundle_ids)
        for bundle_id in bundle_ids:
            self._at_hand.let_go(bundle_id)  # last: a `preload` may have read it before

    def ready(self, *, owner: str | None = None, program: str | None = None) -> list[Entry]:
        return self.ledger.ready(owner=owner, program=program)

    def free(self, *, owner: str, program: str) -> list[Entry]:
        """List the bundles that are ready and that no other process keeps for itself, this one's own at the front."""
        ready = self.ready(owner=owner, program=program)
        others = self._holders.live() - {self._holders.name}
        return sorted(
            (entry for entry in ready if entry.holder not in others),
            key=lambda entry: entry.holder != self._holders.name,
        )

    def fall_in(self, *, owner: str, program: str, burned: int) -> int:
        """Fall in as `Ledger.fall_in` does; return how many were discarded."""
        behind = self.ledger.fall_in(owner, program, burned)
        for entry in behind:
            self.discard(entry.bundle_id)
        return len(behind)

    def alive(self, bundle_ids: Iterable[bytes]) -> set[bytes]:
        """The bundles that are ready, or in the making or in use by a process that lives."""
        return self.ledger.alive(bundle_ids, self._holders.live)

    def _make_room(self, count: int, bundle_bytes: int, owner: str) -> None:
        for entry in self.ledger.expired():
            self.discard(entry.bundle_id)
        self.room.check_quota(count, bundle_bytes, kept_bytes=self.ledger.kept_bytes(owner))

    def _sweep(self) -> None:
        """Delete what is expired or was given up. Files are looked for first: what is ready was saved before, and
        what is saved was reserved before."""
        found = [*(self._folder / BUNDLES).iterdir()]
        self.ledger.give_up(self.ledger.preparing() - self._holders.live())
        self.ledger.clean()
        for entry in self.ledger.expired():
            self.discard(entry.bundle_id)
        for path in found:
            if self._state_of(path) not in ("reserved", "ready"):
                path.unlink(missing_ok=True)
        for entry in self.ledger.ready():
            if not self._path(entry.bundle_id).exists():
                self.ledger.discard(entry.bundle_id)

    def _state_of(self, path: Path) -> str | None:
        try:
            return self.ledger.state(bytes.fromhex(path.name.removesuffix(TEMPORARY)))
        except ValueError:  # not the name of a bundle
            return None

    def _unlink(self, bundle_id: bytes) -> None:
        path = self._path(bundle_id)
        for left in (path, path.with_name(path.name + TEMPORARY)):
            left.unlink(missing_ok=True)

    def _path(self, bundle_id: bytes) -> Path:
        return self._folder / BUNDLES / bundle_id.hex()


def _write(bundle: Bundle, path: Path) -> Path:
    try:
        return bundle.write_beside(path)
    except InputError as error:
        raise DiskError(error.what, where=error.where, remedy="Free disk space, then try again.") from None


def _rename(written: Path, path: Path) -> None:
    try:
        written.replace(path)
    except OSError as error:
        raise DiskError(
            f"it cannot be renamed ({error.strerror})", where=str(path), remedy="Free disk space, then try again."
        ) from None


def _is_gone(path: Path, error: InputError) -> bool:
    """Return whether to take another bundle: another process has used this one, or another version made it."""
    return isinstance(error, OtherFormatError) or not path.exists()


def _gone_error(bundle_id: bytes) -> BundleGoneError:
    return BundleGoneError("its file is missing", where=f"bundle {bundle_id.hex()[:8]}", remedy="Prepare a new bundle.")
