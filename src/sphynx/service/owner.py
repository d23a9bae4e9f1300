"""Answer the calls of worker processes, in the process that owns the ledger, the quotas and the places for work.

    worker > owner    a call, over a Unix socket that the worker made and handed over
    owner  > worker   its result or its error; the bytes of both: `calls.py`

One connection for each thread of a worker, one call at a time on it, answered in order by a thread of the owner. A
`burn` is answered when it is on the disk, and the worker sends nothing that depends on the bundle before. Nothing is
asked twice: whoever gets no answer, or an error, gives up the conversation, and if the owner is gone, the worker ends.
A worker that ends gives back the places it held, and others give up what it was preparing (`holders.py`).

A worker may be broken, or taken over by what it parsed. Nothing that it says runs code here or takes memory without
bound: limits are those that the owner knows, places are given back by whoever holds them, and a burn stays one.
"""

from __future__ import annotations

import socket
from collections import Counter
from typing import Any

from sphynx.errors import SphynxError
from sphynx.service.admission import Admission
from sphynx.service.calls import (
    AGAIN,
    MAX_CALL_BYTES,
    PLACES,
    read_call,
    read_frame,
    send_frame,
    write_error,
    write_result,
)
from sphynx.service.events import EventLog
from sphynx.service.ledger import Ledger
from sphynx.service.metrics import Part

_SEVERAL = {"reserve": "entries", "make_ready": "bundle_ids", "discard": "bundle_ids"}  # positional, any number
MOST_UNWRITTEN = 1 << 16  # bundles given up that a full disk has not taken


class Owner:
    """The owner's side. `serve` answers one connection to its end, in a thread of its own."""

    def __init__(self, ledger: Ledger, admission: Admission, events: EventLog) -> None:
        self._ledger, self._admission, self._events = ledger, admission, events

    def serve(self, sock: socket.socket, metrics: Part) -> None:
        """`metrics` are those of the worker whose connection this is."""
        caller = _Caller(self._ledger, self._admission, metrics)
        with sock:
            try:
                while (frame := read_frame(sock, MAX_CALL_BYTES)) is not None:
                    send_frame(sock, caller.answer(frame))
            except ValueError as error:  # where the next call begins is not known: the worker is hung up on, and ends
                self._events.write("worker_refused", why=str(error))
            except OSError:
                pass  # the worker's thread, or the worker, has ended
            finally:
                caller.leave()


class _Caller:
    """One thread of a worker, as the owner knows it."""

    def __init__(self, ledger: Ledger, admission: Admission, metrics: Part) -> None:
        self._whole_ledger, self._admission, self._metrics = ledger, admission, metrics
        self._ledger: Ledger | None = None  # in the worker's name, once it has said hello
        self._held: Counter[tuple[str, str]] = Counter()

    def answer(self, frame: bytes) -> bytes:
        try:
            name, arguments = read_call(frame)
            return write_result(name, self._make(name, arguments))
        except SphynxError as error:
            return write_error(error)
        except Exception as error:  # ends the conversation that asked, not the worker with all of its others
            what = f"the process that owns the ledger failed ({type(error).__name__})"
            return write_error(SphynxError(what, where="server", remedy=AGAIN))

    def leave(self) -> None:
        for (which, holder), times in self._held.items():
            for _ in range(times):
                self._admission.places[which].give_back(holder)

    def _make(self, name: str, arguments: dict[str, Any]) -> object:
        part, _, called = name.partition(".")
        if name == "hello":
            self._ledger = self._whole_ledger.on_behalf_of(arguments["holder"])
            return None
        if name == "metrics":
            self._metrics.values = arguments["values"]
            return None
        if part in PLACES:
            return self._place(part, called, **arguments)
        if self._ledger is None:
            raise ValueError("a worker must identify itself first")
        return self._ask_ledger(self._ledger, called, arguments)

    def _ask_ledger(self, ledger: Ledger, called: str, arguments: dict[str, Any]) -> object:
        limits = self._admission.limits
        if called == "discard" and ledger.unwritten > MOST_UNWRITTEN:
            raise ValueError("too many discarded bundles are not yet recorded on the disk")
        for name, own in (("most", limits.bundles_per_client), ("hourly", limits.images_per_hour)):
            if name in arguments:
                arguments[name] = own if arguments[name] is None else min(own, arguments[name])
        several = arguments.pop(_SEVERAL[called]) if called in _SEVERAL else ()
        result: object = getattr(ledger, called)(*several, **arguments)
        return result

    def _place(self, which: str, called: str, holder: str = "", wait_s: float = 0.0) -> object:
        places = self._admission.places[which]
        if called == "taken":
            return places.taken
        if called == "give_back":
            if not self._held[which, holder]:
                raise ValueError("this thread holds no such place")
            self._held -= Counter({(which, holder): 1})  # forgets who holds none
            places.give_back(holder)
            return None
        if called == "try_take" and not places.try_take(holder):
            return False
        if called == "take":
            places.take(holder, min(wait_s, self._admission.limits.queue_s))
        self._held[which, holder] += 1
        return None if called == "take" else True
