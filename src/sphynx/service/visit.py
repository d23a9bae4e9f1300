"""A client's visit to one of the programs that are served: may it stay, what has it ready, what is counted of it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from sphynx.errors import RefusedError
from sphynx.program.naming import short_hash
from sphynx.protocol.channel import Channel
from sphynx.protocol.inference_server import InferenceServer
from sphynx.service.admission import Places
from sphynx.service.ledger import Entry
from sphynx.service.served import Service
from sphynx.service.standing import Standing
from sphynx.service.tls import Peer, TlsStream


class Visit:
    def __init__(self, service: Service, stream: TlsStream, channel: Channel) -> None:
        self.service, self.stream, self.channel = service, stream, channel
        self.peer: Peer = stream.peer
        self.program_hash = service.program_hash
        self.standing = Standing(
            self.peer, self.program_hash, service.store, service.strikes, service.events, service.metrics
        )
        self.party = InferenceServer(service.model, channel, judging=self.standing.judging)

    def check_client(self) -> None:
        self.standing.check()
        revoked = self.service.keys.is_revoked(self.peer.serial)
        if self.service.keys.is_list_overdue():
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

    @contextmanager
    def waiting_for(self, phase: str, places: Places) -> Iterator[None]:
        """Take a place for this client, and count how long that took, also where there was none in time."""
        start_s = time.monotonic()
        with ExitStack() as taken:
            try:
                taken.enter_context(places.taken_by(self.peer.identity, self.service.admission.limits.queue_s))
            finally:
                self.observe("waiting_seconds", time.monotonic() - start_s, phase=phase)
            yield

    def ready(self) -> list[Entry]:
        return self.service.store.ready(owner=self.peer.identity, program=self.program_hash)

    def count(self, name: str, value: float = 1, **labels: str) -> None:
        self.service.metrics.add(name, value, program=short_hash(self.program_hash), **labels)

    def observe(self, name: str, value: float, **labels: str) -> None:
        self.service.metrics.observe(name, value, program=short_hash(self.program_hash), **labels)

    def log(self, event: str, *bundle_ids: bytes, backend: str, batch: int, seconds: float, **more: bool) -> None:
        """Log a line for each bundle of a group, with its part of the bytes."""
        traffic = self.channel.take_record()
        for phase in sorted({section.phase for section in traffic.traffic}):
            part = traffic.total(phase)
            self.count("sent_bytes_total", part.sent_bytes, phase=phase or "control")
            self.count("received_bytes_total", part.received_bytes, phase=phase or "control")
        total = traffic.total()
        for bundle_id in bundle_ids:
            self.service.events.write(
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
