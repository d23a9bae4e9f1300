"""The client: connects, prepares bundles before there is an image, and asks.

    with Client("inference.example", 7443, keys=Path("keys/alice")) as client:
        client.prepare(8)
        client.warm()
        prediction = client.infer(pixels)  # uint8 [channels, height, width]

Bundles outlive the connection, in a folder of the client's own. A bundle is burned before the first byte that depends
on it leaves; whatever fails afterwards, it is not used again. After a failure the connection is over: connect again.

Several processes, and several clients in one, may use one folder at the same time: they share its bundles, each of
which serves one of them. Threads may share a client: their calls take turns. A process that was forked off needs a
client of its own.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sphynx.errors import (
    BundleGoneError,
    ConnectionLostError,
    InputError,
    SphynxError,
)
from sphynx.program.backends import Backend, BackendChoice
from sphynx.program.cost.link import Link
from sphynx.program.extensions import ExtensionChoice
from sphynx.program.interpret import require_images
from sphynx.program.ir import Program
from sphynx.program.security import Security
from sphynx.protocol.bundle import Bundle
from sphynx.protocol.channel import Channel, Observer
from sphynx.protocol.inference_client import InferenceClient
from sphynx.service import session
from sphynx.service.address import Address
from sphynx.service.agreement import agree
from sphynx.service.credentials import ClientKeys
from sphynx.service.ledger import Entry
from sphynx.service.prediction import Prediction
from sphynx.service.preparation import Preparation
from sphynx.service.session import SERVICE_VERSION, Bye, Infer, Look, Programs
from sphynx.service.store import Store

STATE = "bundles"
QUOTA_BYTES = 8 << 30


class Client:
    def __init__(
        self,
        host: str,
        port: int,
        *,
        keys: Path,
        state: Path | None = None,
        program: str = "",
        security: Security = "semi-honest",
        ot: ExtensionChoice = "auto",
        timeout_s: float = 120.0,
        connect_s: float = 10.0,
        address: str = "",
        quota_bytes: int = QUOTA_BYTES,
        trust_state: bool = False,
        link: Link | None = None,
        warn: Callable[[str], None] = warnings.warn,
        observer: Observer | None = None,
    ) -> None:
        """`program` chooses a program by its hash, the first digits of it, or its name there; `security` insists on a
        server that offers it, or more. `ot` says how OTs are extended. `address` is the one to use of a host that has
        several. `trust_state` keeps bundles although the folder looks restored. `link` emulates a slower one, for
        benchmarks. `warn` hears of an old list of revoked keys. `observer` watches this end of the channel."""
        self._address = Address(host, port, address or host, min(connect_s, timeout_s), timeout_s, link)
        self._where, self._keys = str(self._address), keys
        self._state, self._quota_bytes, self._trust_state = state or keys / STATE, quota_bytes, trust_state
        self._wanted, self._demanded, self._ot = program, security, ot
        self._observer, self._warn, self._open = observer, warn, ExitStack()
        self._calling = threading.RLock()
        self._calls = 0  # that run now, one inside the other
        self._process = os.getpid()

    def __enter__(self) -> Client:
        keys = ClientKeys(self._keys, self._warn)  # first: a mistyped folder must not become one that holds bundles
        with ExitStack() as opening:
            self._process = os.getpid()
            stream = self._address.connect(keys.context)
            self._channel = Channel(stream, self._where)
            self._channel.observer = self._observer
            opening.callback(self._channel.close)
            keys.check(stream.peer.expires_at, self._where)
            self._store = opening.enter_context(
                Store(self._state, quota_bytes=self._quota_bytes, trust=self._trust_state)
            )
            self._server, self._presented = stream.peer.identity, keys
            self._agreement = agree(
                self._channel,
                self._store,
                server=self._server,
                where=self._where,
                wanted=self._wanted,
                demanded=self._demanded,
                ot=self._ot,
            )
            self._party = InferenceClient(self.program, self._channel, check=self._agreement.check)
            self._preparation = Preparation(
                self._channel, self._party, self._store, self._agreement, server=self._server, where=self._where
            )
            self._open = opening.pop_all()
        return self

    def list_programs(self) -> Programs:
        """List what the server serves, on a connection that asks for nothing else."""
        channel = Channel(self._address.connect(ClientKeys(self._keys, self._warn).context), self._where)
        try:
            session.send(channel, Look(SERVICE_VERSION))
            found = session.expect(channel, Programs)
            session.send(channel, Bye())
        except BaseException:
            channel.close(wait_s=0)
            raise
        channel.close()
        return found

    @property
    def program(self) -> Program:
        return self._agreement.program

    @property
    def most_ready(self) -> int:
        """How many bundles the server lets a client keep."""
        return self._agreement.most_ready

    @property
    def security(self) -> Security:
        """How far the server need not trust its clients."""
        return self._agreement.security

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if os.getpid() != self._process:
            return  # the connection and the folder are the other process's
        with self._calling, self._open:
            if kind is not None:
                self._channel.close(wait_s=0)
                return
            with contextlib.suppress(ConnectionLostError):  # the work is done, and the server has left first
                session.send(self._channel, Bye())

    def hang_up(self) -> None:
        """Hang up, from any thread: a call that runs fails at its next message, as after a lost connection."""
        self._channel.abort()

    def has_ended(self) -> bool:
        """Return whether the server has left while nothing was asked of it: no bundle need be burned to find out."""
        if not self._calling.acquire(blocking=False):
            return False
        try:
            return not self._calls and self._channel.is_readable()
        finally:
            self._calling.release()

    def has_renewed_keys(self) -> bool:
        """Return whether the folder holds other keys by now than this connection was begun with."""
        return self._presented.have_changed()

    @property
    def ready(self) -> list[Entry]:
        """Bundles that both sides hold."""
        with self._turn():
            return self._store.ready(owner=self._server, program=self.program.content_hash)

    def measure_link(self) -> Link:
        with self._turn():
            return self._preparation.measure_link()

    def prepare(
        self,
        count: int,
        *,
        backend: BackendChoice = "auto",
        batch: int = 1,
        done: Callable[[int], None] = lambda _number: None,
        ahead: bool = False,
    ) -> Backend:
        """Makes `count` bundles, each for one batch of images; `done` hears of each. Returns the ReLU backend.

        Where there are enough of them they are made in groups, which share ciphertexts (`linear_plan.py`): fewer bytes
        and less work for each.

        `ahead`: nobody waits for them. The server makes them when it has cores to spare, and refuses where it has none
        for long."""
        with self._turn():
            return self._preparation.prepare(count, choice=backend, batch=batch, done=done, ahead=ahead)

    def refill_count(self, pool: int) -> int:
        """Say how many bundles for one image to prepare at once where at least `pool` shall always be ready: a group,
        if that is not much more than the pool and the server lets it be kept; else one."""
        group = self._party.most_together(1)
        room = self.most_ready - len(self.ready)
        return min(group, room) if 2 * min(pool, room) >= group else 1

    def warm(self, batch: int = 1, *, backend: BackendChoice = "auto") -> None:
        """Loads the next bundle into memory, before there is an image, and keeps it from other processes; prepares one
        if none is ready. The inference that is to use it asks for the same backend."""
        with self._turn():
            while True:
                with contextlib.suppress(BundleGoneError):  # another process was faster
                    return self._store.preload(self._entry_for(batch, backend).bundle_id)

    def infer(self, image: NDArray[np.uint8], *, backend: BackendChoice = "auto") -> Prediction:
        """One image, uint8 [channels, height, width]. Prepares a bundle first if none is ready."""
        return self.infer_batch(np.asarray(image)[None], backend=backend)[0]

    def infer_batch(self, images: NDArray[np.uint8], *, backend: BackendChoice = "auto") -> list[Prediction]:
        """uint8 [n, channels, height, width] with one bundle that was prepared for batches of n, and for this backend
        unless any will do."""
        with self._turn():
            self._check_images(images)
            entry, bundle, number, start_s = self._take_bundle(len(images), backend)
            try:
                with session.ending_at_a_failure(self._channel):
                    self._channel.take_record()
                    session.send(self._channel, Infer(entry.bundle_id.hex(), number))
                    found = self._party.infer(bundle, images)
                online_seconds = time.monotonic() - start_s
                self._store.ledger.confirm(self._server, self.program.content_hash, number)
                traffic = self._channel.take_record().total()
            finally:
                self._store.delete_spent()
        return [
            Prediction(
                self.program,
                row,
                backend=entry.backend,
                batch=entry.batch,
                offline_seconds=entry.offline_seconds,
                offline_bytes=entry.offline_bytes,
                online_seconds=online_seconds,
                online_bytes=traffic.bytes,
                online_rounds=traffic.rounds,
            )
            for row in found
        ]

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """One call at a time, in the process that connected."""
        if os.getpid() != self._process:
            raise SphynxError(
                "this client was connected by another process",
                where=self._where,
                remedy="Connect after the fork: each process needs a Client, and they may share the keys and bundles.",
            )
        with self._calling:
            self._calls += 1
            try:
                yield
            finally:
                self._calls -= 1

    def _take_bundle(self, batch: int, backend: BackendChoice) -> tuple[Entry, Bundle, int, float]:
        """A bundle, burned, its number, and when that began."""
        while True:
            entry = self._entry_for(batch, backend)
            start_s = time.monotonic()
            with contextlib.suppress(BundleGoneError):  # another process was faster: it has one, so this one will too
                program = self.program.content_hash
                bundle, number = self._store.take(entry.bundle_id, owner=self._server, program=program)
                return entry, bundle, number, start_s

    def _entry_for(self, batch: int, backend: BackendChoice = "auto") -> Entry:
        for _attempt in range(2):
            for entry in self._store.free(owner=self._server, program=self.program.content_hash):
                if entry.batch == batch and backend in ("auto", entry.backend):
                    return entry
            self._preparation.prepare(1, choice=backend, batch=batch, done=lambda _number: None, keep=True)
        raise SphynxError(
            "a bundle expired while it was being made",
            where="prepare",
            remedy="Prepare it again; if that fails too, the clocks of client and server may differ.",
        )

    def _check_images(self, images: NDArray[np.uint8]) -> None:
        require_images(self.program, images)
        if not len(images):
            raise InputError("there are no images", where=self.program.name or "program", remedy="Give one or more.")
