"""One client's conversation, as the server leads it: hello, then requests until the client leaves.

A request that may not be granted ends the conversation with the reason; so does anything malformed. Bundles belong to
the name that prepared them, as its certificates have it, and to the program. A bundle is burned before the first online
byte is read or sent.
Before every request and every bundle the client's certificate is judged again: it may have been revoked meanwhile.
A client that fails a check loses its standing (`standing.py`), the connection, and all bundles that it has ready.
What is prepared ahead gives way to everything else that this process does (`yielding.py`).
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial

from sphynx.errors import BundleRefusedError, RefusedError, ShareUsedUpError
from sphynx.program.extensions import ExtensionChoice, allows
from sphynx.program.folder import HASH
from sphynx.program.naming import SHOWN_DIGITS, short_hash
from sphynx.program.security import MODES, Security
from sphynx.protocol.channel import Channel
from sphynx.protocol.inference import InferenceServer
from sphynx.protocol.linear import ServerModel
from sphynx.protocol.linear_plan import plan_group
from sphynx.protocol.verify.plan import CheckPlan
from sphynx.service import session
from sphynx.service.admission import Admission, Places
from sphynx.service.events import EventLog
from sphynx.service.fresh_keys import FreshKeys
from sphynx.service.ledger import Entry
from sphynx.service.metrics import Metrics
from sphynx.service.session import (
    SERVICE_VERSION,
    Agree,
    Bye,
    Go,
    Hello,
    Infer,
    Look,
    Ping,
    Prepare,
    Programs,
    Stored,
    Welcome,
)
from sphynx.service.standing import Standing
from sphynx.service.store import Store, Written
from sphynx.service.strikes import Strikes
from sphynx.service.tls import Peer, TlsStream
from sphynx.service.yielding import GivesWay, Urgent, on_one_core


@dataclass(frozen=True)
class Service:
    """One program that is served, and the parts that all conversations share."""

    model: ServerModel
    store: Store
    keys: FreshKeys
    admission: Admission
    strikes: Strikes
    metrics: Metrics
    events: EventLog
    stopping: threading.Event
    ot: ExtensionChoice = "auto"
    name: str = ""  # of the program, as clients may ask for it
    drains: bool = False
    urgent: Urgent = field(default_factory=Urgent)


class Conversation:
    def __init__(self, stream: TlsStream, services: Sequence[Service]) -> None:
        """`services` differ in their programs alone: the client says which it is for."""
        self.peer: Peer = stream.peer
        self.channel = Channel(stream)
        self._stream, self._services = stream, services
        self._choose(services[0])  # until the client has said which
        self._idle_lock = threading.Lock()
        self._is_idle = False  # waiting for a request

    def _choose(self, service: Service) -> None:
        self._service = service
        self._program = service.model.program
        self._check = str(service.model.check or "")
        self._security: Security = "malicious-client" if service.model.check else "semi-honest"
        program = self._program.content_hash
        self._standing = Standing(self.peer, program, service.store, service.strikes, service.events, service.metrics)
        self._party = InferenceServer(service.model, self.channel, judging=self._standing.judging)

    def run(self) -> None:
        """Serve until the client leaves, fails or asks for what it may not have; the caller closes the channel."""
        limits = self._service.admission.limits
        hello = self._next_request(limits.message_s)
        if isinstance(hello, Look):
            self._check_client()
            names, hashes = zip(*self._served(), strict=True)
            session.send(self.channel, Programs(names, hashes, self._security))
            hello = self._next_request(limits.message_s)
            if isinstance(hello, Bye):
                return
        if not isinstance(hello, Hello):
            raise _out_of_place()
        self._choose(self._asked_for(hello))
        self._check_client()
        self._welcome()
        while True:
            self.channel.wait_sent()  # one request's answers at most are kept for a client that does not read them
            request = self._next_request(limits.idle_s)
            self._check_client()
            if isinstance(request, Prepare):
                self._prepare(request)
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
            if self._service.stopping.is_set():
                raise RefusedError("the server is stopping", where="server", remedy="Try again later.")
            self._is_idle = True
        try:
            return session.receive(self.channel, timeout_s=timeout_s)
        finally:
            with self._idle_lock:
                self._is_idle = False

    def _check_client(self) -> None:
        self._standing.check()
        revoked = self._service.keys.is_revoked(self.peer.serial)
        if self._service.keys.is_list_overdue():
            raise RefusedError(
                "the server's list of revoked keys is overdue",
                where="server",
                remedy="Ask the server's operator to sign a new list: sphynx keys revoke.",
            )
        if revoked or self.peer.expires_at <= time.time():
            why = "was revoked" if revoked else "has expired"
            raise RefusedError(
                f"the client's certificate {why}", where="client", remedy="Ask the server's operator for new keys."
            )

    def _served(self) -> list[tuple[str, str]]:
        return [(service.name, service.model.program.content_hash) for service in self._services]

    def _asked_for(self, hello: Hello) -> Service:
        if hello.service != SERVICE_VERSION:
            what, remedy = session.other_version(f"service {hello.service}")
            raise RefusedError(what, where="hello", remedy=remedy)
        asked = hello.program
        if not asked and len(self._services) == 1:
            return self._services[0]
        for service, (name, content_hash) in zip(self._services, self._served(), strict=True):
            if asked and (asked == name or (len(asked) >= SHOWN_DIGITS and content_hash.startswith(asked))):
                return service
        names, hashes = zip(*self._served(), strict=True)
        what, remedy = session.other_program(names, hashes)
        raise RefusedError(what, where="hello", remedy=remedy)

    def _welcome(self) -> None:
        ours = self._program.content_hash
        text = json.dumps({HASH: ours, **self._program.to_json()}).encode()
        ready = tuple(entry.bundle_id.hex() for entry in self._ready())[: session.MAX_IDS]
        burned = self._service.store.ledger.burned(self.peer.identity, ours)
        most = self._service.admission.limits.bundles_per_client
        plan = self._service.model.check or CheckPlan(0, 0)
        offered = (self._security, plan.ring_bits, plan.functionals, self._service.ot)
        session.send(self.channel, Welcome(SERVICE_VERSION, ours, len(text), ready, burned, most, *offered))
        self.channel.send(text)

    def _prepare(self, request: Prepare) -> None:
        service, limits, program = self._service, self._service.admission.limits, self._program.content_hash
        self._check_mode(request)
        if request.batch > limits.batch:
            raise RefusedError(
                f"a batch has at most {limits.batch} images", where="prepare", remedy="Prepare a smaller batch."
            )
        if service.drains:
            raise RefusedError(
                "this server is being drained: it prepares no more bundles",
                where="prepare",
                remedy="Ask another server, or this one when it is back; bundles that are ready serve on.",
            )
        if len(self._ready()) + request.count > limits.bundles_per_client:
            raise ShareUsedUpError(
                f"a client may keep {limits.bundles_per_client} bundles ready, this one has {len(self._ready())}",
                where="prepare",
                remedy="Use some first, or ask for fewer; the server's `bundles_per_client` sets the limit.",
            )
        most_together = max(1, plan_group(service.model.offline).images // request.batch)
        if request.group > most_together:
            raise RefusedError(
                f"at most {most_together} bundles of {request.batch} images are prepared as a group",
                where="prepare",
                remedy="Use the same version of sphynx on both sides.",
            )
        begun_images = service.store.ledger.begun_images(self.peer.identity)
        if begun_images + request.count * request.batch > limits.images_per_hour:
            raise ShareUsedUpError(
                f"a client may prepare for {limits.images_per_hour} images per hour, "
                f"this one has prepared for {begun_images}",
                where="prepare",
                remedy="Ask for fewer, or try again later; the server's `images_per_hour` sets the limit.",
            )
        owner, backend, batch = self.peer.identity, request.backend, request.batch
        service.store.check_room(request.count, owner=owner, program=program, backend=backend, batch=batch)
        nonce = session.new_nonce()
        session.send(self.channel, Go(nonce, limits.bundle_lifetime_s))
        for group in session.groups(request.count, request.group):
            ids = [session.bundle_id(program, self._check, request.nonce, nonce, number) for number in group]
            expires_at = time.time() + limits.bundle_lifetime_s
            entries = [Entry(bundle_id, owner, program, backend, batch, expires_at) for bundle_id in ids]
            with self._place_for(request), self._stream.ending_within(len(ids) * limits.work_s):
                self._check_client()  # with its place: others of its connections may have failed while it waited
                written, took_s = self._prepare_bundles(entries, request)
            each_bytes = self.channel.record.total().bytes // len(ids)
            each_s = took_s / len(ids)
            service.store.make_ready(written, owner=owner, offline_seconds=each_s, offline_bytes=each_bytes)
            try:
                self._standing.check()
            except RefusedError:
                service.store.discard(*ids)
                raise
            session.send(self.channel, Stored(tuple(bundle_id.hex() for bundle_id in ids)))
            self._count("bundles_prepared_total", len(ids), backend=backend)
            self._observe("offline_seconds", took_s, backend=backend)
            seconds = round(each_s, 4)
            self._log("prepared", *ids, backend=backend, batch=batch, seconds=seconds, ahead=request.ahead)

    @contextmanager
    def _place_for(self, request: Prepare) -> Iterator[None]:
        admission = self._service.admission
        if not request.ahead:
            with self._waited_for("offline", admission.offline), self._service.urgent.running():
                yield
            return
        with self._waited_for("ahead", admission.ahead), on_one_core():
            self.channel.observer = GivesWay(self._service.urgent)
            try:
                yield
            finally:
                self.channel.observer = None

    @contextmanager
    def _waited_for(self, phase: str, places: Places) -> Iterator[None]:
        """Take a place for this client, and count how long that took, also where there was none in time."""
        start_s = time.monotonic()
        with ExitStack() as taken:
            try:
                taken.enter_context(places.taken_by(self.peer.identity, self._service.admission.limits.queue_s))
            finally:
                self._observe("waiting_seconds", time.monotonic() - start_s, phase=phase)
            yield

    def _prepare_bundles(self, entries: list[Entry], request: Prepare) -> tuple[list[Written], float]:
        limits, ids = self._service.admission.limits, [entry.bundle_id for entry in entries]
        store, owner = self._service.store, self.peer.identity
        store.reserve(*entries, most=limits.bundles_per_client, hourly=limits.images_per_hour)
        self.channel.take_record()
        start_s = time.monotonic()
        try:
            write = partial(store.write, owner=owner, group=len(ids))
            made = self._party.prepare_each(ids, request.backend, request.batch, request.made)
            written = list(map(write, made))
        except BaseException as error:
            self._standing.note(error)
            store.discard(*ids)
            raise
        return written, time.monotonic() - start_s

    def _check_mode(self, request: Prepare) -> None:
        """Before anything is computed: what an honest client gets wrong is told, and is not a strike."""
        if request.check != self._check:
            raise RefusedError(
                f"this server's security is {self._security}, and the client prepares for another",
                where="prepare",
                remedy="Connect again: the server says how clients are checked.",
            )
        if refusal := MODES[self._security, request.backend]:
            raise RefusedError(
                f"this server's security is {self._security}: {refusal}",
                where="prepare",
                remedy="Choose the backend gc, or auto.",
            )
        if not allows(self._service.ot, request.made):
            raise RefusedError(
                f"OTs are {self._service.ot} at this server, and the client prepares with others",
                where="prepare",
                remedy=f"Set `ot` to auto or {self._service.ot}.",
            )

    def _infer(self, bundle_id: bytes, number: int) -> None:
        service, limits = self._service, self._service.admission.limits
        with (
            self._waited_for("online", service.admission.online),
            service.urgent.running(),
            self._stream.ending_within(limits.work_s),
            self._due_within(min(limits.message_s, limits.online_message_s)),
        ):
            bundle, _ = service.store.take(
                bundle_id,
                owner=self.peer.identity,
                program=self._program.content_hash,
                hourly=limits.images_per_hour,
                number=number,
            )
            if bundle.check_plan != self._check:
                raise BundleRefusedError(
                    "it was made for another kind of security", where="infer", remedy="Prepare a new bundle."
                )
            self.channel.take_record()
            start_s = time.monotonic()
            try:
                self._party.infer(bundle)
            except BaseException as error:
                self._standing.note(error)
                self._count("inferences_total", backend=bundle.backend, result="failed")
                raise
            finally:
                service.store.delete_spent()
            took_s = time.monotonic() - start_s
        self._count("inferences_total", backend=bundle.backend, result="done")
        self._observe("online_seconds", took_s, backend=bundle.backend)
        self._log("inferred", bundle_id, backend=bundle.backend, batch=bundle.batch, seconds=round(took_s, 4))

    def _agree(self, request: Agree) -> None:
        store, owner, program = self._service.store, self.peer.identity, self._program.content_hash
        mine = {entry.bundle_id.hex() for entry in self._ready()}
        for name in mine.intersection(request.lost):
            store.discard(bytes.fromhex(name))
        if store.ledger.burned(owner, program) < request.confirmed:
            count = store.fall_in(owner=owner, program=program, burned=request.confirmed)
            if count:
                why = f"{count} bundles: the client knows of inferences that this ledger does not"
                self._service.events.write("discarded", client=self.peer.name, why=why)

    def _ready(self) -> list[Entry]:
        return self._service.store.ready(owner=self.peer.identity, program=self._program.content_hash)

    def _count(self, name: str, value: float = 1, **labels: str) -> None:
        self._service.metrics.add(name, value, program=short_hash(self._program.content_hash), **labels)

    def _observe(self, name: str, value: float, **labels: str) -> None:
        self._service.metrics.observe(name, value, program=short_hash(self._program.content_hash), **labels)

    def _log(self, event: str, *bundle_ids: bytes, backend: str, batch: int, seconds: float, **more: bool) -> None:
        """Log a line for each bundle of a group, with its part of the bytes."""
        traffic = self.channel.take_record()
        for phase in sorted({section.phase for section in traffic.traffic}):
            part = traffic.total(phase)
            self._count("sent_bytes_total", part.sent_bytes, phase=phase or "control")
            self._count("received_bytes_total", part.received_bytes, phase=phase or "control")
        total = traffic.total()
        for bundle_id in bundle_ids:
            self._service.events.write(
                event,
                client=self.peer.name,
                bundle=bundle_id.hex(),
                backend=backend,
                batch=batch,
                seconds=seconds,
                **more,
                sent_bytes=total.sent_bytes // len(bundle_ids),
                received_bytes=total.received_bytes // len(bundle_ids),
                rounds=total.rounds,
            )

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
