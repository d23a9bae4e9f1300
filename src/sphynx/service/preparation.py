"""The client's side of preparing bundles, on one connection: asks for them, makes them and puts them into the store.

The backend and how OTs are extended are chosen here, by the link where the caller leaves them open.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial

from sphynx.errors import ConnectionLostError, PeerGaveUpError
from sphynx.program.backends import Backend, BackendChoice
from sphynx.program.cost.link import Link
from sphynx.program.extensions import Extensions
from sphynx.program.ir import Program
from sphynx.program.security import backends_of, require_mode
from sphynx.protocol.channel import Channel
from sphynx.protocol.inference_client import InferenceClient
from sphynx.service import session
from sphynx.service.agreement import Agreement
from sphynx.service.ledger import Entry
from sphynx.service.link_measurement import choose_backend, choose_extensions, measure_link
from sphynx.service.session import Go, Prepare, Stored
from sphynx.service.store import Store

EXPIRY_MARGIN_S = 60.0  # the client's copy expires first


class Preparation:
    def __init__(
        self,
        channel: Channel,
        party: InferenceClient,
        store: Store,
        agreement: Agreement,
        *,
        server: str,
        where: str,
    ) -> None:
        """`server` is the identity to which the bundles belong, `where` its address in errors."""
        self._channel, self._party, self._store, self._agreement = channel, party, store, agreement
        self._server, self._where = server, where
        self._program: Program = agreement.program
        self._silent: frozenset[str] = frozenset()  # directions in which silent OT is set up
        self._images = 0  # for which this connection has prepared
        self._measured: Link | None = None

    def measure_link(self) -> Link:
        with session.ending_at_a_failure(self._channel):
            self._measured = measure_link(self._channel)
            return self._measured

    def prepare(
        self,
        count: int,
        *,
        choice: BackendChoice,
        batch: int,
        done: Callable[[int], None],
        keep: bool = False,
        ahead: bool = False,
    ) -> Backend:
        """Prepare as `Client.prepare` says; `keep` them from other processes."""
        backend, program = self._choose(choice, batch), self._program.content_hash
        check = str(self._agreement.check or "")
        self._store.check_room(count, owner=self._server, program=program, backend=backend, batch=batch)
        nonce = session.new_nonce()
        most = self._party.most_together(batch)
        size = most if 2 * count >= most else 1  # fewer go through the maps one by one, and are ready one by one
        made = self._choose_extensions(backend, count * batch)
        with session.ending_at_a_failure(self._channel):
            wanted = Prepare(count, backend, batch, nonce, size, ahead, made.down, made.up, check)
            session.send(self._channel, wanted)
            go = self._await_grant(count)
            for group in session.groups(count, size):
                ids = [session.bundle_id(program, check, nonce, go.nonce, number) for number in group]
                expires_at = time.time() + go.lifetime_s - EXPIRY_MARGIN_S
                entries = [Entry(bundle_id, self._server, program, backend, batch, expires_at) for bundle_id in ids]
                self._prepare_group(entries, backend, made, keep=keep)
                for number in group:
                    done(number + 1)
        return backend

    def _choose(self, choice: BackendChoice, batch: int) -> Backend:
        if choice != "auto":
            require_mode(self._agreement.security, choice, where=f"`backend={choice}` at {self._where}")
            return choice
        offered = backends_of(self._agreement.security)
        return offered[0] if len(offered) == 1 else choose_backend(self._program, self.measure_link(), batch)

    def _choose_extensions(self, backend: Backend, images: int) -> Extensions:
        """As the settings of both sides say, or by cost: of what is asked for, and of as much again as was before."""
        ot = self._agreement.ot
        if ot != "auto":
            return Extensions(ot, ot)
        expected = images + self._images
        made = choose_extensions(self._program, self._link_again, backend, images=expected, ready=self._silent)
        self._silent, self._images = self._silent | made.silent, expected
        return made

    def _link_again(self) -> Link:
        """Return the link as this connection measured it last."""
        return self._measured or self.measure_link()

    def _await_grant(self, count: int) -> Go:
        """A refusal comes with the server's reason, mostly that these would be too many."""
        try:
            return session.expect(self._channel, Go)
        except PeerGaveUpError as error:
            raise PeerGaveUpError(
                f"the server refused to prepare {count}: {error.what}", where=self._where, remedy=error.remedy
            ) from None

    def _prepare_group(self, entries: Sequence[Entry], backend: Backend, made: Extensions, *, keep: bool) -> None:
        ids = [entry.bundle_id for entry in entries]
        self._store.reserve(*entries)
        self._channel.take_record()
        start_s = time.monotonic()
        try:
            write = partial(self._store.write, owner=self._server, group=len(ids))
            written = list(map(write, self._party.prepare_each(ids, backend, entries[0].batch, made)))
            if session.expect(self._channel, Stored).bundles != tuple(bundle_id.hex() for bundle_id in ids):
                raise ConnectionLostError(
                    "the server stored a different bundle", where="prepare", remedy="Connect again."
                )
        except BaseException:
            self._store.discard(*ids)
            raise
        each_s = (time.monotonic() - start_s) / len(ids)
        each_bytes = self._channel.take_record().total().bytes // len(ids)
        self._store.make_ready(written, owner=self._server, offline_seconds=each_s, offline_bytes=each_bytes, keep=keep)
