"""One client's conversation, as the server leads it: hello, then requests until the client leaves.

A request that may not be granted ends the conversation with the reason; so does anything malformed. Bundles belong to
the name that prepared them, as its certificates have it, and to the program. A bundle is burned before the first online
byte is read or sent.
Before every request and every bundle the client's certificate is judged again: it may have been revoked meanwhile.
A client that fails a check loses its standing (`standing.py`), the connection, and all bundles that it has ready.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from sphynx.errors import BundleRefusedError, RefusedError
from sphynx.program.folder import HASH
from sphynx.protocol.channel import Channel
from sphynx.protocol.verify.plan import CheckPlan
from sphynx.service import session
from sphynx.service.production import prepare
from sphynx.service.served import Service, find_service, list_served
from sphynx.service.session import SERVICE_VERSION, Agree, Bye, Hello, Infer, Look, Ping, Prepare, Welcome
from sphynx.service.tls import Peer, TlsStream
from sphynx.service.visit import Visit


class Conversation:
    def __init__(self, stream: TlsStream, services: Sequence[Service]) -> None:
        """`services` differ in their programs alone: the client says which it is for."""
        self.peer: Peer = stream.peer
        self.channel = Channel(stream)
        self._stream, self._services = stream, services
        self._visit = Visit(services[0], stream, self.channel)  # until the client has said which
        self._idle_lock = threading.Lock()
        self._is_idle = False  # waiting for a request

    def run(self) -> None:
        """Serve until the client leaves, fails or asks for what it may not have; the caller closes the channel."""
        limits = self._visit.service.admission.limits
        hello = self._next_request(limits.message_s)
        if isinstance(hello, Look):
            self._visit.check_client()
            session.send(self.channel, list_served(self._services))
            hello = self._next_request(limits.message_s)
            if isinstance(hello, Bye):
                return
        if not isinstance(hello, Hello):
            raise _out_of_place()
        self._visit = Visit(find_service(self._services, hello), self._stream, self.channel)
        self._visit.check_client()
        self._welcome()
        while True:
            self.channel.wait_sent()  # one request's answers at most are kept for a client that does not read them
            request = self._next_request(limits.idle_s)
            self._visit.check_client()
            if isinstance(request, Prepare):
                prepare(self._visit, request)
            elif isinstance(request, Infer):
                self._infer(bytes.fromhex(request.bundle), request.number)
            elif isinstance(request, Ping):
                self.channel.receive(request.up_bytes)
                self.channel.send(bytes(request.down_bytes))
            elif isinstance(request, Agree):
                self._agree(request)
            elif isinstance(request, Bye):
                return
            else:
                raise _out_of_place()

    @property
    def unread_bytes(self) -> int:
        """Answers in memory, because the client has not taken them yet."""
        return self._stream.pending_bytes

    def leave_when_idle(self) -> None:
        """Called by another thread: a conversation that waits for a request ends now, a busy one after its request."""
        with self._idle_lock:
            if self._is_idle:
                self._stream.stop_reading()

    def abort(self) -> None:
        self._stream.abort()

    def _next_request(self, timeout_s: float) -> session.Message:
        with self._idle_lock:
            if self._visit.service.stopping.is_set():
                raise RefusedError("the server is stopping", where="server", remedy="Try again later.")
            self._is_idle = True
        try:
            return session.receive(self.channel, timeout_s=timeout_s)
        finally:
            with self._idle_lock:
                self._is_idle = False

    def _welcome(self) -> None:
        service, ours = self._visit.service, self._visit.program_hash
        text = json.dumps({HASH: ours, **service.model.program.to_json()}).encode()
        ready = tuple(entry.bundle_id.hex() for entry in self._visit.ready())[: session.MAX_IDS]
        burned = service.store.ledger.burned(self.peer.identity, ours)
        most = service.admission.limits.bundles_per_client
        plan = service.model.check or CheckPlan(0, 0)
        offered = (service.security, plan.ring_bits, plan.functionals, service.ot)
        session.send(self.channel, Welcome(SERVICE_VERSION, ours, len(text), ready, burned, most, *offered))
        self.channel.send(text)

    def _infer(self, bundle_id: bytes, number: int) -> None:
        visit, service = self._visit, self._visit.service
        limits = service.admission.limits
        with (
            visit.waiting_for("online", service.admission.online),
            service.urgent.running(),
            self._stream.ending_within(limits.work_s),
            self._due_within(min(limits.message_s, limits.online_message_s)),
        ):
            bundle, _ = service.store.take(
                bundle_id,
                owner=self.peer.identity,
                program=visit.program_hash,
                hourly=limits.images_per_hour,
                number=number,
            )
            if bundle.check_plan != service.check_plan:
                raise BundleRefusedError(
                    "it was made for another kind of security", where="infer", remedy="Prepare a new bundle."
                )
            self.channel.take_record()
            start_s = time.monotonic()
            try:
                visit.party.infer(bundle)
            except BaseException as error:
                visit.standing.note(error)
                visit.count("inferences_total", backend=bundle.backend, result="failed")
                raise
            finally:
                service.store.delete_spent()
            took_s = time.monotonic() - start_s
        visit.count("inferences_total", backend=bundle.backend, result="done")
        visit.observe("online_seconds", took_s, backend=bundle.backend)
        visit.log("inferred", bundle_id, backend=bundle.backend, batch=bundle.batch, seconds=round(took_s, 4))

    def _agree(self, request: Agree) -> None:
        service, owner, program = self._visit.service, self.peer.identity, self._visit.program_hash
        store, mine = service.store, {entry.bundle_id.hex() for entry in self._visit.ready()}
        for name in mine.intersection(request.lost):
            store.discard(bytes.fromhex(name))
        if store.ledger.burned(owner, program) < request.confirmed:
            count = store.fall_in(owner=owner, program=program, burned=request.confirmed)
            if count:
                why = f"{count} bundles: the client knows of inferences that this ledger does not"
                service.events.write("discarded", client=self.peer.name, why=why)

    @contextmanager
    def _due_within(self, limit_s: float) -> Iterator[None]:
        """Inside an inference a client computes for milliseconds. One that falls silent must not hold a worker long."""
        before, self._stream.timeout_s = self._stream.timeout_s, limit_s
        try:
            yield
        finally:
            self._stream.timeout_s = before


def _out_of_place() -> RefusedError:
    return RefusedError("this message is not expected here", where="client", remedy="Connect again.")
