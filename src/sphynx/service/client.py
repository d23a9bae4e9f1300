"""The client: connects, prepares bundles before there is an image, and asks.

    with Client("inference.example", 7443, keys=Path("keys/alice")) as client:
        client.prepare(8)
        client.warm()
        prediction = client.infer(pixels)  # uint8 [channels, height, width]

Bundles outlive the connection, in a folder of the client's own. A bundle is burned before the first byte that depends
on it leaves; whatever fails afterwards, it is not used again. After a failure the connection is over: connect again.
"""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sphynx.errors import InputError, SphynxError
from sphynx.program.backends import Backend
from sphynx.program.cost.link import Link
from sphynx.program.files import HASH
from sphynx.program.ir import Program
from sphynx.program.parse import program_from_json
from sphynx.protocol.channel import Channel, PeerGaveUpError
from sphynx.protocol.inference import InferenceClient
from sphynx.protocol.transport import ConnectionLostError
from sphynx.service import session
from sphynx.service.credentials import client_context
from sphynx.service.ledger import Entry
from sphynx.service.link_measurement import choose_backend, measure_link
from sphynx.service.prediction import Prediction, ranked
from sphynx.service.session import SERVICE_VERSION, Bye, Drop, Go, Hello, Infer, Prepare, Stored, Welcome
from sphynx.service.store import Store
from sphynx.service.tls import TlsStream

STATE = "bundles"
QUOTA_BYTES = 8 << 30
EXPIRY_MARGIN_S = 60.0  # the client's copy expires first

Relu = Literal["auto", "gc", "gmw"]


class Client:
    def __init__(
        self,
        host: str,
        port: int,
        *,
        keys: Path,
        state: Path | None = None,
        program: str = "",
        timeout_s: float = 120.0,
        connect_s: float = 10.0,
        quota_bytes: int = QUOTA_BYTES,
        link: Link | None = None,
    ) -> None:
        """`program` insists on a program by its hash. `link` emulates a slower link, for benchmarks."""
        self._host, self._port, self._keys = host, port, keys
        self._state, self._quota_bytes = state or keys / STATE, quota_bytes
        self._wanted, self._timeout_s, self._connect_s, self._link = program, timeout_s, connect_s, link
        self._open = ExitStack()

    def __enter__(self) -> Client:
        context = client_context(self._keys)  # first: a mistyped folder must not become one that holds bundles
        with ExitStack() as opening:
            self._store = opening.enter_context(Store(self._state, quota_bytes=self._quota_bytes))
            stream = self._connect(context)
            self._channel = Channel(stream)
            opening.callback(self._channel.close)
            self._server = stream.peer.fingerprint
            self.program = self._hello()
            self._party = InferenceClient(self.program, self._channel)
            self._open = opening.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with self._open:
            if kind is not None:
                self._channel.close(wait_s=0)
                return
            with contextlib.suppress(ConnectionLostError):  # the work is done, and the server has left first
                session.send(self._channel, Bye())

    @property
    def ready(self) -> list[Entry]:
        """Bundles that both sides hold."""
        return self._store.ready(owner=self._server, program=self.program.content_hash)

    def measure_link(self) -> Link:
        return measure_link(self._channel)

    def prepare(
        self, count: int, *, relu: Relu = "auto", batch: int = 1, done: Callable[[int], None] = lambda _number: None
    ) -> Backend:
        """Makes so many bundles, each for one batch of images; `done` hears of each. Returns the ReLU backend."""
        backend: Backend = choose_backend(self.program, self.measure_link(), batch) if relu == "auto" else relu
        program = self.program.content_hash
        self._store.check_room(count, owner=self._server, program=program, backend=backend, batch=batch)
        nonce = session.new_nonce()
        session.send(self._channel, Prepare(count, backend, batch, nonce))
        go = self._granted(count)
        for number in range(count):
            bundle_id = session.bundle_id(program, nonce, go.nonce, number)
            expires_at = time.time() + go.lifetime_s - EXPIRY_MARGIN_S
            self._prepare_one(Entry(bundle_id, self._server, program, backend, batch, expires_at), backend)
            done(number + 1)
        return backend

    def warm(self, batch: int = 1) -> None:
        """Loads the next bundle into memory, before there is an image; prepares one if none is ready."""
        self._store.preload(self._entry_for(batch).bundle_id)

    def infer(self, image: NDArray[np.uint8]) -> Prediction:
        """One image, uint8 [channels, height, width]. Prepares a bundle first if none is ready."""
        return self.infer_batch(np.asarray(image)[None])[0]

    def infer_batch(self, images: NDArray[np.uint8]) -> list[Prediction]:
        """uint8 [n, channels, height, width] with one bundle that was prepared for batches of n."""
        self._check_images(images)
        entry = self._entry_for(len(images))
        self._channel.take_record()
        start_s = time.monotonic()
        try:
            bundle = self._store.take(entry.bundle_id, owner=self._server, program=self.program.content_hash)
            session.send(self._channel, Infer(entry.bundle_id.hex()))
            logits = self._party.infer(bundle, images)
            online_seconds = time.monotonic() - start_s
        finally:
            self._store.delete_spent()
        traffic = self._channel.take_record().total()
        return [
            Prediction(
                *ranked(self.program, row),
                logits=row,
                backend=entry.backend,
                batch=entry.batch,
                offline_seconds=entry.offline_seconds,
                offline_bytes=entry.offline_bytes,
                online_seconds=online_seconds,
                online_bytes=traffic.bytes,
                online_rounds=traffic.rounds,
            )
            for row in logits
        ]

    def _connect(self, context: ssl.SSLContext) -> TlsStream:
        try:
            sock = socket.create_connection((self._host, self._port), timeout=self._connect_s)
        except OSError as error:
            raise ConnectionLostError(
                f"no connection ({error.strerror or error})",
                where=f"{self._host}:{self._port}",
                remedy="Check the address, and that the server runs.",
            ) from None
        try:
            return TlsStream.connect(
                sock, context, self._host, handshake_s=self._connect_s, timeout_s=self._timeout_s, link=self._link
            )
        except BaseException:
            sock.close()
            raise

    def _hello(self) -> Program:
        session.send(self._channel, Hello(SERVICE_VERSION, self._wanted))
        welcome = session.expect(self._channel, Welcome)
        program = _read_program(bytes(self._channel.receive(welcome.program_bytes)))
        if welcome.service != SERVICE_VERSION or program.content_hash != (self._wanted or welcome.program):
            raise SphynxError(
                "the server's program does not match its hash", where="hello", remedy="Ask whoever runs the server."
            )
        self._agree_on_bundles(program, set(welcome.ready))
        return program

    def _agree_on_bundles(self, program: Program, theirs: set[str]) -> None:
        """A half without its counterpart is of no use: after a crash of either side there may be some."""
        held = self._store.ready(owner=self._server, program=program.content_hash)
        ours = {entry.bundle_id.hex() for entry in held}
        for name in ours - theirs:
            self._store.discard(bytes.fromhex(name))
        if theirs - ours:
            session.send(self._channel, Drop(tuple(sorted(theirs - ours))))

    def _granted(self, count: int) -> Go:
        """A refusal comes with the server's reason, mostly that these would be too many."""
        try:
            return session.expect(self._channel, Go)
        except PeerGaveUpError as error:
            raise PeerGaveUpError(
                f"the server refused to prepare {count}: {error.what}",
                where=f"{self._host}:{self._port}",
                remedy="Ask for fewer at once (images and --prepare together), use what is ready first, or wait. How "
                "many a client may keep, and prepare in an hour, is the server's to say (sphynx serve --pool, --quota, "
                "--hourly); other reasons are in its log.",
            ) from None

    def _prepare_one(self, entry: Entry, backend: Backend) -> None:
        self._store.ledger.reserve(entry)
        self._channel.take_record()
        start_s = time.monotonic()
        try:
            bundle = self._party.prepare(entry.bundle_id, backend, entry.batch)
            if session.expect(self._channel, Stored).bundle != entry.bundle_id.hex():
                raise ConnectionLostError("the server stored another bundle", where="prepare", remedy="Connect again.")
        except BaseException:
            self._store.discard(entry.bundle_id)
            raise
        took_s = time.monotonic() - start_s
        offline_bytes = self._channel.take_record().total().bytes
        self._store.put(bundle, owner=self._server, offline_seconds=took_s, offline_bytes=offline_bytes)

    def _entry_for(self, batch: int) -> Entry:
        for _attempt in range(2):
            for entry in self.ready:
                if entry.batch == batch:
                    return entry
            self.prepare(1, batch=batch)
        raise SphynxError("a bundle expired as it was made", where="prepare", remedy="Let the server keep them longer.")

    def _check_images(self, images: NDArray[np.uint8]) -> None:
        expected = tuple(self.program.image)
        if images.dtype != np.uint8 or images.ndim != 4 or images.shape[1:] != expected or not len(images):
            raise InputError(
                f"the images are {images.dtype} {images.shape[1:]}",
                where=self.program.name or "program",
                remedy=f"This program reads uint8 images of {expected}.",
            )


def _read_program(raw: bytes) -> Program:
    try:
        data = json.loads(raw)
        data.pop(HASH, None)
    except (ValueError, AttributeError, RecursionError):
        raise ConnectionLostError(
            "the server's program cannot be read", where="hello", remedy="Use the same version of sphynx on both sides."
        ) from None
    return program_from_json(data, where="the server's program")
