"""What worker processes ask the process that owns the ledger, the quotas and the places for work, and its answers.

    worker > owner    (name of the call, arguments, named arguments), pickled, over a Unix socket that both inherit
    owner  > worker   (True, result) or (False, kind of error, its parts)

One connection for each thread of a worker, one call at a time on it, answered in order by a thread of the owner. A
`burn` is answered when it is on the disk, and the worker sends nothing that depends on the bundle before. Nothing is
asked twice: whoever gets no answer, or an error, gives up the conversation, and if the owner is gone, the worker ends.
A worker that ends gives back the places it held, and others give up what it was preparing (`holders.py`).
"""

from __future__ import annotations

import os
import socket
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

from sphynx import errors
from sphynx.errors import SphynxError
from sphynx.service.admission import Admission, Places
from sphynx.service.ledger import Entry, Ledger
from sphynx.service.monitor import Metrics, Values

# Of the ledger, what a store of a worker needs; what opens a folder is the owner's alone.
LEDGER_CALLS = frozenset(
    (
        "reserve",
        "make_ready",
        "burn",
        "discard",
        "ready",
        "expired",
        "begun_images",
        "burned",
        "fall_in",
        "usual_bytes",
        "kept_bytes",
        "state",
        "preparing",
        "give_up",
    )
)
AGAIN = "Try again in a while."
PLACE_CALLS = frozenset(("try_take", "take", "give_back", "taken"))


class Owner:
    """The owner's side. `serve` answers one connection to its end, in a thread of its own."""

    def __init__(self, ledger: Ledger, admission: Admission, metrics: Metrics) -> None:
        self._ledger, self._admission, self._metrics = ledger, admission, metrics

    def serve(self, connection: Connection) -> None:
        held: Counter[tuple[str, str]] = Counter()
        ledger = self._ledger
        try:
            while True:
                called, arguments, named = connection.recv()
                if called == "hello":
                    ledger = self._ledger.on_behalf_of(*arguments)
                    answer: tuple[object, ...] = (True, None)
                else:
                    answer = self._answer(ledger, held, called, arguments, named)
                connection.send(answer)
        except (EOFError, OSError):
            pass  # the worker's thread, or the worker, has ended
        finally:
            connection.close()
            for (which, holder), times in held.items():
                for _ in range(times):
                    self._admission.places[which].give_back(holder)

    def _answer(
        self,
        ledger: Ledger,
        held: Counter[tuple[str, str]],
        called: str,
        arguments: tuple[Any, ...],
        named: dict[str, Any],
    ) -> tuple[object, ...]:
        try:
            part, _, name = called.partition(".")
            if part == "ledger" and name in LEDGER_CALLS:
                return True, getattr(ledger, name)(*arguments, **named)
            if part == "metrics":
                self._metrics.set_part(*arguments)
                return True, None
            if part in self._admission.places and name in PLACE_CALLS:
                return True, self._place(held, part, name, arguments)
            raise ValueError(f"there is no call {called}")
        except SphynxError as error:
            return False, type(error).__name__, error.what, error.where, error.remedy
        except Exception as error:  # ends the conversation that asked, not the worker with all of its others
            what = f"the process that owns the ledger failed ({type(error).__name__})"
            return False, SphynxError.__name__, what, "server", AGAIN

    def _place(self, held: Counter[tuple[str, str]], which: str, name: str, arguments: tuple[Any, ...]) -> object:
        places = self._admission.places[which]
        if name == "taken":
            return places.taken
        result = getattr(places, name)(*arguments)
        if name == "give_back":
            held[which, arguments[0]] -= 1
        elif name == "take" or result:
            held[which, arguments[0]] += 1
        return result


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

    def call(self, called: str, *arguments: object, **named: object) -> Any:
        try:
            connection = self._connection()
        except (EOFError, OSError):  # no descriptor or thread left; if the owner is gone, the control socket says so
            raise SphynxError("the ledger does not answer now", where="server", remedy=AGAIN) from None
        try:
            connection.send((called, arguments, named))
            is_done, *answer = connection.recv()
        except (EOFError, OSError):
            self._lost()
            raise SphynxError(
                "the process that owns the ledger is gone", where="server", remedy="Start the server again."
            ) from None
        if is_done:
            return answer[0]
        kind, what, where, remedy = answer
        raise getattr(errors, kind)(what, where=where, remedy=remedy)

    def end_thread(self) -> None:
        """The calling thread will not call again."""
        connection = getattr(self._of_thread, "connection", None)
        if connection is not None:
            self._of_thread.connection = None
            with suppress(OSError):
                connection.close()

    def _connection(self) -> Connection:
        connection: Connection | None = getattr(self._of_thread, "connection", None)
        if connection is None:
            here, there = socket.socketpair()
            with here, there:
                with self._sending:
                    socket.send_fds(self._control, [b"call"], [there.fileno()])
                connection = Connection(here.detach())
            try:
                connection.send(("hello", (self._holder,), {}))
                connection.recv()
            except BaseException:
                connection.close()
                raise
            self._of_thread.connection = connection
        return connection


class OwnedLedger(Ledger):
    """The owner's ledger, from a worker; every method as in `Ledger`."""

    def __init__(self, link: OwnerLink, holder: str) -> None:
        self._link = link
        link.introduce(holder)

    def reserve(self, entry: Entry, *, most: int | None = None, hourly: int | None = None) -> None:
        self._link.call("ledger.reserve", entry, most=most, hourly=hourly)

    def make_ready(
        self, bundle_id: bytes, *, size_bytes: int, offline_seconds: float, offline_bytes: int, keep: bool = False
    ) -> None:
        self._link.call(
            "ledger.make_ready",
            bundle_id,
            size_bytes=size_bytes,
            offline_seconds=offline_seconds,
            offline_bytes=offline_bytes,
            keep=keep,
        )

    def burn(
        self, bundle_id: bytes, *, owner: str, program: str, hourly: int | None = None, number: int | None = None
    ) -> int:
        burned = self._link.call("ledger.burn", bundle_id, owner=owner, program=program, hourly=hourly, number=number)
        return int(burned)

    def discard(self, *bundle_ids: bytes) -> None:
        self._link.call("ledger.discard", *bundle_ids)

    def ready(self, *, owner: str | None = None, program: str | None = None) -> list[Entry]:
        found: list[Entry] = self._link.call("ledger.ready", owner=owner, program=program)
        return found

    def expired(self) -> list[Entry]:
        found: list[Entry] = self._link.call("ledger.expired")
        return found

    def begun_images(self, owner: str) -> int:
        return int(self._link.call("ledger.begun_images", owner))

    def burned(self, owner: str, program: str) -> int:
        return int(self._link.call("ledger.burned", owner, program))

    def fall_in(self, owner: str, program: str, burned: int) -> list[Entry]:
        behind: list[Entry] = self._link.call("ledger.fall_in", owner, program, burned)
        return behind

    def usual_bytes(self, program: str, backend: str, batch: int) -> int:
        return int(self._link.call("ledger.usual_bytes", program, backend, batch))

    def kept_bytes(self, owner: str) -> int:
        return int(self._link.call("ledger.kept_bytes", owner))

    def state(self, bundle_id: bytes) -> str | None:
        found: str | None = self._link.call("ledger.state", bundle_id)
        return found

    def preparing(self) -> set[str]:
        found: set[str] = self._link.call("ledger.preparing")
        return found

    def give_up(self, holders: Any) -> list[bytes]:
        found: list[bytes] = self._link.call("ledger.give_up", holders)
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
        return bool(self._link.call(f"{self._which}.try_take", holder))

    def take(self, holder: str, wait_s: float) -> None:
        self._link.call(f"{self._which}.take", holder, wait_s)

    def give_back(self, holder: str) -> None:
        self._link.call(f"{self._which}.give_back", holder)


def owned_places(link: OwnerLink) -> dict[str, Places]:
    return {which: OwnedPlaces(link, which) for which in ("connections", "offline", "online", "ahead")}


def report_metrics(link: OwnerLink, metrics: Metrics) -> None:
    values: Values = metrics.values()
    link.call("metrics.set_part", str(os.getpid()), values)
