"""A worker's side of its calls to the process that owns the ledger (`owner.py`): that ledger and its places, from here.

A connection for each thread that calls. If the owner is gone, nothing may go on: no bundle could be burned.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Any

from sphynx.errors import SphynxError
from sphynx.service.admission import Places
from sphynx.service.calls import AGAIN, MAX_ANSWER_BYTES, PLACES, read_answer, read_frame, send_frame, write_call
from sphynx.service.ledger import Entry, Ledger
from sphynx.service.listening import CALL
from sphynx.service.metrics import Values
from sphynx.service.plain_values import MOST_ROWS


class OwnerLink:
    """A worker's side: `call` from any thread. `lost` is called when the owner is gone."""

    def __init__(self, control: socket.socket, lost: Callable[[], None]) -> None:
        self._control, self._lost = control, lost
        self._of_thread = threading.local()
        self._sending = threading.Lock()
        self._holder = ""

    def introduce(self, holder: str) -> None:
        """Before any other call: in whose name the ledger is changed."""
        self._holder = holder

    def call(self, name: str, **arguments: object) -> Any:
        try:
            sock = self._connection()
        except (EOFError, OSError):  # no descriptor or thread left; if the owner is gone, the control socket says so
            raise SphynxError("the ledger is not answering", where="server", remedy=AGAIN) from None
        asked = write_call(name, arguments)
        try:
            frame = _ask(sock, asked)
        except (EOFError, OSError):
            self._lost()
            raise SphynxError(
                "the process that owns the ledger has ended", where="server", remedy="Start the server again."
            ) from None
        return read_answer(name, frame)

    def end_thread(self) -> None:
        """The calling thread will not call again."""
        sock = getattr(self._of_thread, "connection", None)
        if sock is not None:
            self._of_thread.connection = None
            with suppress(OSError):
                sock.close()

    def _connection(self) -> socket.socket:
        sock: socket.socket | None = getattr(self._of_thread, "connection", None)
        if sock is None:
            sock, there = socket.socketpair()
            try:
                with there, self._sending:
                    socket.send_fds(self._control, [CALL], [there.fileno()])
                read_answer("hello", _ask(sock, write_call("hello", {"holder": self._holder})))
            except BaseException:
                sock.close()
                raise
            self._of_thread.connection = sock
        return sock


def _ask(sock: socket.socket, call: bytes) -> bytes:
    send_frame(sock, call)
    answer = read_frame(sock, MAX_ANSWER_BYTES)
    if answer is None:
        raise EOFError
    return answer


class OwnedLedger(Ledger):
    """The owner's ledger, from a worker; every method as in `Ledger`, within the limits of the owner."""

    def __init__(self, link: OwnerLink, holder: str) -> None:
        self._link = link
        link.introduce(holder)

    def reserve(self, *entries: Entry, most: int | None = None, hourly: int | None = None) -> None:
        self._link.call("ledger.reserve", entries=entries, most=most, hourly=hourly)

    def make_ready(
        self, *bundle_ids: bytes, size_bytes: int, offline_seconds: float, offline_bytes: int, keep: bool = False
    ) -> None:
        self._link.call(
            "ledger.make_ready",
            bundle_ids=bundle_ids,
            size_bytes=size_bytes,
            offline_seconds=offline_seconds,
            offline_bytes=offline_bytes,
            keep=keep,
        )

    def burn(
        self, bundle_id: bytes, *, owner: str, program: str, hourly: int | None = None, number: int | None = None
    ) -> int:
        given = {"owner": owner, "program": program, "hourly": hourly, "number": number}
        return int(self._link.call("ledger.burn", bundle_id=bundle_id, **given))

    def discard(self, *bundle_ids: bytes) -> None:
        for start in range(0, len(bundle_ids), MOST_ROWS):
            self._link.call("ledger.discard", bundle_ids=bundle_ids[start : start + MOST_ROWS])

    def ready(self, *, owner: str | None = None, program: str | None = None) -> list[Entry]:
        """List the ready bundles of one owner and one program: a worker needs no others."""
        found: list[Entry] = self._link.call("ledger.ready", owner=owner, program=program)
        return found

    def expired(self) -> list[Entry]:
        found: list[Entry] = self._link.call("ledger.expired")
        return found

    def begun_images(self, owner: str) -> int:
        return int(self._link.call("ledger.begun_images", owner=owner))

    def burned(self, owner: str, program: str) -> int:
        return int(self._link.call("ledger.burned", owner=owner, program=program))

    def fall_in(self, owner: str, program: str, burned: int) -> list[Entry]:
        behind: list[Entry] = self._link.call("ledger.fall_in", owner=owner, program=program, burned=burned)
        return behind

    def usual_bytes(self, program: str, backend: str, batch: int) -> int:
        return int(self._link.call("ledger.usual_bytes", program=program, backend=backend, batch=batch))

    def kept_bytes(self, owner: str) -> int:
        return int(self._link.call("ledger.kept_bytes", owner=owner))

    def state(self, bundle_id: bytes) -> str | None:
        found: str | None = self._link.call("ledger.state", bundle_id=bundle_id)
        return found

    def preparing(self) -> set[str]:
        return set(self._link.call("ledger.preparing"))

    def give_up(self, holders: Collection[str]) -> list[bytes]:
        found: list[bytes] = self._link.call("ledger.give_up", holders=holders)
        return found

    def close(self) -> None:
        """The owner's to close."""


class OwnedPlaces(Places):
    """The owner's places, from a worker."""

    def __init__(self, link: OwnerLink, which: str) -> None:
        self._link, self._which = link, which

    @property
    def taken(self) -> int:
        return int(self._link.call(f"{self._which}.taken"))

    def try_take(self, holder: str) -> bool:
        return bool(self._link.call(f"{self._which}.try_take", holder=holder))

    def take(self, holder: str, wait_s: float) -> None:
        self._link.call(f"{self._which}.take", holder=holder, wait_s=wait_s)

    def give_back(self, holder: str) -> None:
        self._link.call(f"{self._which}.give_back", holder=holder)


def owned_places(link: OwnerLink) -> dict[str, Places]:
    return {which: OwnedPlaces(link, which) for which in PLACES}


def report_metrics(link: OwnerLink, values: Values) -> None:
    link.call("metrics", values=values)
