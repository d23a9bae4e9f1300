"""The server: accepts connections, shakes hands, leads one conversation per thread, stops gracefully.

The compiled core releases the interpreter's lock, so threads use the cores. A connection that fails (a stranger, a slow
or broken peer, an unforeseen error) is logged and closed; it never takes the server or another connection with it.
"""

from __future__ import annotations

import contextlib
import select
import socket
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from sphynx.errors import (
    BundleRefusedError,
    ConnectionLostError,
    DiskError,
    FailedCheckError,
    HandshakeError,
    InputError,
    OtherVersionError,
    RefusedError,
    ShareUsedUpError,
    SphynxError,
    StoreFullError,
)
from sphynx.program.cost.link import Link
from sphynx.program.extensions import ExtensionChoice
from sphynx.protocol.linear import ServerModel
from sphynx.service.admission import Admission
from sphynx.service.conversation import Conversation
from sphynx.service.events import EventLog, FewLines, place_of
from sphynx.service.fresh_keys import FreshKeys
from sphynx.service.listening import Listener
from sphynx.service.metrics import Metrics, Values
from sphynx.service.proxy_header import NO_PROXIES, ProxyNetworks, read_proxy_header
from sphynx.service.revocation import SeenNumbers
from sphynx.service.served import Service
from sphynx.service.session import other_version
from sphynx.service.store import Store
from sphynx.service.strikes import Strikes
from sphynx.service.tls import TlsStream
from sphynx.threads import Worker

ACCEPT_PAUSE_S = 0.1  # while the machine has no descriptor left
ROOM_PAUSE_MS = 20  # while all places for handshakes are taken
_LATER, _ASK = "Try again later.", "Contact the server's operator: its log says more."


@dataclass(frozen=True)
class Offer:
    """A program that is served, with its bundles, by the name under which clients may ask for it."""

    model: ServerModel
    store: Store
    name: str = ""


class Server:
    def __init__(
        self,
        offers: Sequence[Offer],
        *,
        keys: Path,
        listener: Listener,
        admission: Admission,
        events: EventLog,
        strikes: Strikes,
        link: Link | None = None,
        proxies: ProxyNetworks = NO_PROXIES,
        seen_lists: SeenNumbers | None = None,
        ot: ExtensionChoice = "auto",
        drains: bool = False,
    ) -> None:
        """`offers` are the programs that are served, whose clients share all limits but those of bundles. `link`
        emulates a slower link to every client, for trials on one machine. `proxies` connect for clients.
        `seen_lists` outlives the server: it does not go back to an older list of revoked keys."""
        self._link, self._proxies = link, proxies
        self.keys = FreshKeys(keys, seen_lists, lambda why: events.write("revocation_list", why=why))
        limits = admission.limits
        self._admission, self._listener = admission, listener
        self.metrics = Metrics()
        self._stopping = threading.Event()
        shared = (self.keys, self._admission, strikes, self.metrics, events, self._stopping)
        self._services = [Service(one.model, one.store, *shared, ot, one.name, drains) for one in offers]
        self._events, self._limits, self._stores = events, limits, [one.store for one in offers]
        self._failed_handshakes = FewLines(events, "handshake_failed")
        self._conversations: set[Conversation] = set()
        self._workers: dict[Worker, socket.socket] = {}  # used by the thread that accepts only
        self._changing = threading.Lock()
        self._wake_reader, self._wake_writer = socket.socketpair()
        self._wake_writer.setblocking(False)
        self.has_stopped = threading.Event()

    @property
    def port(self) -> int:
        return self._listener.port

    def is_healthy(self) -> bool:
        return not self._stopping.is_set()

    def render_metrics(self) -> str:
        gauges = {
            "open_connections": self._admission.connections.taken,
            "offline_running": self._admission.offline.taken,
            "online_running": self._admission.online.taken,
            "ahead_running": self._admission.ahead.taken,
            "bundles_ready": sum(len(store.ready()) for store in self._stores),
            "unread_bytes": self._unread_bytes(),
            "store_bytes": sum(store.used_bytes for store in self._stores),
            "store_quota_bytes": sum(store.room.quota_bytes for store in self._stores),
            "revocation_list_ends_soon": self.keys.list_ends_soon(),
            "certificate_expiry_timestamp_seconds": self.keys.expires_at(),
        }
        return self.metrics.render(gauges)

    def metrics_values(self) -> Values:
        """Values for another process to render: what was counted here, and the answers that nobody has read yet."""
        return {**self.metrics.values(), ("unread_bytes", ()): self._unread_bytes()}

    @property
    def wake_descriptor(self) -> int:
        """A byte written there is a `stop`, in whatever thread a signal lands: for `signal.set_wakeup_fd`."""
        return self._wake_writer.fileno()

    def stop(self) -> None:
        """May be called by a signal handler: `serve` returns after running work is done or its grace time is over."""
        with contextlib.suppress(BlockingIOError):
            self._wake_writer.send(b"x")  # and no more: a lock taken here could be one that the signal interrupted

    def stop_now(self) -> None:
        """Stop at once, from another thread: running work fails at its next message."""
        self._stopping.set()  # first: a conversation that begins after the copy is made sees it and ends
        with self._changing:
            conversations = list(self._conversations)
        for conversation in conversations:
            conversation.abort()
        self.stop()

    def serve(self) -> None:
        """Serve until `stop`."""
        someone, stop = select.poll(), select.poll()
        someone.register(self._listener, select.POLLIN)
        for poll in (someone, stop):
            poll.register(self._wake_reader, select.POLLIN)
        is_stopped = False
        while not is_stopped:
            try:
                is_stopped = self._serve_next(someone, stop)
            except MemoryError:
                time.sleep(ACCEPT_PAUSE_S)  # connections that are open may give some back
        self._shut_down()

    def _serve_next(self, someone: select.poll, stop: select.poll) -> bool:
        """Waits for one connection, or for `stop`: whether that came."""
        ready = someone.poll()
        if (self._wake_reader.fileno(), select.POLLIN) in ready:
            return True
        self._part()
        if not self._admission.handshakes.make_room():
            return bool(stop.poll(ROOM_PAUSE_MS))
        try:
            sock, address = self._listener.accept()
        except BlockingIOError:
            return False
        except OSError as error:  # out of file descriptors, or the peer has left already
            self._events.write("accept_failed", why=error.strerror or str(error))
            time.sleep(ACCEPT_PAUSE_S)
            return False
        self._admit(sock, address)
        return False

    def _admit(self, sock: socket.socket, address: str) -> None:
        self._admission.handshakes.enter(sock, address)
        try:
            self._workers[Worker(partial(self._receive, sock, address))] = sock
        except (RuntimeError, MemoryError):
            self._admission.handshakes.leave(sock)
            sock.close()
            self._listener.ended()
            self._fail_handshake(address, "this machine has no memory left for another thread")

    def _part(self) -> None:
        """From connections that are over. A thread that finds no memory ends anywhere, even before it has begun."""
        for worker, sock in [*self._workers.items()]:
            if not worker.is_alive:
                del self._workers[worker]
                self._admission.handshakes.leave(sock)
                sock.close()
                if not worker.has_begun:
                    self._listener.ended()  # otherwise its thread has said so

    def _receive(self, sock: socket.socket, address: str) -> None:
        """One connection, from its handshake to its end."""
        try:
            met = self._shake_hands(sock, address)
            if met is not None:
                self._converse(*met)
        except Exception as error:
            sock.close()
            self._events.write("internal_error", address=address, kind=type(error).__name__, place=place_of(error))
        finally:
            self._listener.ended()

    def _shake_hands(self, sock: socket.socket, address: str) -> tuple[TlsStream, str] | None:
        """The stream, and where the peer is: not where a proxy is that connects for it."""
        handshakes, deadline = self._admission.handshakes, time.monotonic() + self._limits.handshake_s
        try:
            if address in self._proxies:
                address = read_proxy_header(sock, deadline) or address
                handshakes.count_for(sock, address)
            stream = TlsStream.accept(
                sock,
                self.keys.context(),
                handshake_s=deadline - time.monotonic(),
                timeout_s=self._limits.message_s,
                link=self._link,
                is_memory_short=lambda: self._unread_bytes() > self._limits.unread_bytes,
                heard_hello=lambda: handshakes.heard_hello(sock),
            )
        except SphynxError as error:
            self._fail_handshake(address, error.what)
            sock.close()
            return None
        finally:
            handshakes.leave(sock)
        return stream, address

    def _unread_bytes(self) -> int:
        with self._changing:
            return sum(conversation.unread_bytes for conversation in self._conversations)

    def _fail_handshake(self, address: str, why: str) -> None:
        self.metrics.add("handshake_failures_total")
        self._failed_handshakes.write(address=address, why=why)

    def _converse(self, stream: TlsStream, address: str) -> None:
        conversation = Conversation(stream, self._services)
        peer = conversation.peer
        if not self._admission.connections.try_take(peer.identity):
            self.metrics.add("refusals_total", reason="connections")
            self._events.write("refused", client=peer.name, address=address, why="too many connections")
            conversation.channel.give_up("too many connections, of this client or in total", _LATER)
            return
        with self._changing:
            self._conversations.add(conversation)
        self._events.write("connected", client=peer.name, fingerprint=peer.fingerprint[:16], address=address)
        result = "failed"
        try:
            result = self._lead(conversation)
        finally:
            with self._changing:
                self._conversations.discard(conversation)
            self._admission.connections.give_back(peer.identity)
            self.metrics.add("connections_total", result=result)
            self._events.write("disconnected", client=peer.name, result=result)
            conversation.channel.close()

    def _lead(self, conversation: Conversation) -> str:
        client = conversation.peer.name
        try:
            conversation.run()
            return "done"
        except OtherVersionError as error:
            self.metrics.add("refusals_total", reason="version")
            self._events.write("refused", client=client, where=error.where, why=error.what)
            conversation.channel.give_up(*other_version(error.what.removeprefix("the peer speaks ")))
            return "refused"
        except ConnectionLostError as error:
            if self._stopping.is_set():
                conversation.channel.give_up("the server is stopping", _LATER)
                return "stopped"
            self._events.write("connection_lost", client=client, where=error.where, why=error.what)
            if not isinstance(error, HandshakeError):  # otherwise TLS itself is broken
                conversation.channel.give_up(error.what, error.remedy)
            return "lost"
        except SphynxError as error:
            self.metrics.add("refusals_total", reason=_reason(error))
            self._events.write("refused", client=client, where=error.where, why=error.what)
            conversation.channel.give_up(*_words_for_peer(error))
            return "refused"
        except Exception as error:
            self._events.write("internal_error", client=client, kind=type(error).__name__, place=place_of(error))
            conversation.channel.give_up("the server failed", _ASK)
            return "failed"

    def _shut_down(self) -> None:
        self._stopping.set()
        self._listener.close()
        with self._changing:
            conversations = list(self._conversations)
        self._events.write("stopping", connections=len(conversations))
        for conversation in conversations:
            conversation.leave_when_idle()
        deadline = time.monotonic() + self._limits.grace_s
        for worker in self._workers:
            worker.join(max(0.0, deadline - time.monotonic()))
        with self._changing:
            late = list(self._conversations)
        for conversation in late:
            conversation.abort()
        for worker in self._workers:
            worker.join(self._limits.handshake_s)
        self._failed_handshakes.tell_suppressed()
        self._events.write("stopped", aborted=len(late))
        self.has_stopped.set()


def _reason(error: SphynxError) -> str:
    """Name what stands in the way, for the metrics."""
    if isinstance(error, ShareUsedUpError):
        return "quota"
    if isinstance(error, StoreFullError | DiskError):
        return "disk"
    if isinstance(error, BundleRefusedError):
        return "bundle"
    return "check" if isinstance(error, FailedCheckError) else "request"


def _words_for_peer(error: SphynxError) -> tuple[str, str]:
    """To the client, with what it can do: neither how much others keep nor what is wrong with the server's files. That
    is for the log."""
    if isinstance(error, RefusedError | BundleRefusedError | ShareUsedUpError):
        return error.what, error.remedy
    if isinstance(error, StoreFullError):
        return "the server has no space for another bundle", "Use bundles that are ready, or try again later."
    if isinstance(error, DiskError):
        return "the server's disk is full, damaged or cannot be written", _ASK
    return "the server cannot read its keys" if isinstance(error, InputError) else error.what, _ASK
