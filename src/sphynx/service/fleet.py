"""One server on many cores: this process owns and accepts, worker processes shake hands and compute.

The owner opens the folder of bundles, prepares the weights once (`protocol/shared_weights.py`), listens, and hands each
connection to the worker with the fewest. It alone changes the ledger, and it counts who may do how much (`owner.py`),
so all limits hold for the workers together. A worker that ends loses its conversations and is replaced; workers end
when the owner does. They are started anew, not forked: SQLite and threads do not survive a fork.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from sphynx.errors import SphynxError
from sphynx.service.admission import Admission
from sphynx.service.events import EventLog
from sphynx.service.fresh_keys import FreshKeys
from sphynx.service.listening import CALL, DONE, MAX_NOTE_BYTES, READY, PortListener
from sphynx.service.metrics import Metrics, Part
from sphynx.service.owner import Owner
from sphynx.service.settings import Limits
from sphynx.service.store import Store
from sphynx.service.worker import WorkerOrder
from sphynx.threads import Worker

START_S = 300.0  # for a worker to read its weights, on a busy machine
REPLACE_PAUSE_S, MOST_PAUSE_S = 1.0, 60.0  # so that a worker that cannot start does not take the machine
PAUSE_MS = 20  # while a worker is missing, or none is ready
NOTES_AT_ONCE = 64  # heard of one worker before the others have their turn
SPARE_CALLS = 16  # connections for calls, beyond two for each peer that a worker may have
END_S = 5.0  # beyond the grace for running work


_Waited = socket.socket | PortListener


@dataclass
class _Worker:
    process: subprocess.Popen[bytes]
    control: socket.socket
    metrics: Part
    is_ready: bool = False
    connections: int = 0
    calls: list[Worker] = field(default_factory=list)  # threads that answer its calls

    def is_stopped(self) -> bool:
        """Return whether a signal has stopped it: whoever is handed over to it would wait until it is continued."""
        try:
            return os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:  # it has ended, and was waited for
            return False


class _Turn:
    """When the next process may be started for one worker: later each time, until one is ready."""

    def __init__(self) -> None:
        self._pause_s, self._not_before_s = REPLACE_PAUSE_S, 0.0

    @property
    def has_come(self) -> bool:
        return time.monotonic() >= self._not_before_s

    def put_off(self) -> None:
        self._not_before_s = time.monotonic() + self._pause_s
        self._pause_s = min(2 * self._pause_s, MOST_PAUSE_S)

    def reset(self) -> None:
        self._pause_s = REPLACE_PAUSE_S
        self._not_before_s = time.monotonic() + self._pause_s


class Fleet:
    """Serves as `Server` does, with `count` workers."""

    def __init__(
        self, order: WorkerOrder, count: int, store: Store, listener: PortListener, keys: FreshKeys, events: EventLog
    ) -> None:
        """`order` is a worker's but for its number and control socket; its limits are those of all together."""
        self._order, self._count, self._store, self._listener, self.keys = order, count, store, listener, keys
        self._events, self._limits = events, order.settings.limits
        self.metrics = Metrics()
        self._admission = Admission(order.settings.limits)
        self._owner = Owner(store.ledger, self._admission, events)
        self._workers: dict[int, _Worker] = {}  # by number
        self._turns = [_Turn() for _ in range(count)]
        self._stopping = threading.Event()
        self._wake_reader, self._wake_writer = socket.socketpair()
        self._wake_writer.setblocking(False)

    @property
    def port(self) -> int:
        return self._listener.port

    @property
    def pids(self) -> list[int]:
        return [worker.process.pid for worker in [*self._workers.values()]]  # a copy: other threads ask, too

    @property
    def wake_descriptor(self) -> int:
        return self._wake_writer.fileno()

    def is_healthy(self) -> bool:
        return not self._stopping.is_set() and self._least_busy() is not None

    def render_metrics(self) -> str:
        self.keys.context()  # read again where the folder has changed
        places = self._admission.places
        gauges = {
            "open_connections": places["connections"].taken,
            "offline_running": places["offline"].taken,
            "online_running": places["online"].taken,
            "ahead_running": places["ahead"].taken,
            "bundles_ready": len(self._store.ready()),
            "store_bytes": self._store.used_bytes,
            "store_quota_bytes": self._store.room.quota_bytes,
            "revocation_list_ends_soon": self.keys.list_ends_soon(),
            "certificate_expiry_timestamp_seconds": self.keys.expires_at(),
        }
        return self.metrics.render(gauges)

    def start(self) -> None:
        """Returns when all workers serve."""
        for number in range(self._count):
            self._start(number)
        deadline = time.monotonic() + START_S
        while sum(worker.is_ready for worker in self._workers.values()) < self._count:
            self._hear(0.1)
            if len(self._workers) < self._count or time.monotonic() > deadline:
                self.close()
                raise SphynxError(
                    "a worker process did not start", where="server", remedy="See the log above for the reason."
                )

    def stop(self) -> None:
        """May be called by a signal handler, as `Server.stop`."""
        with contextlib.suppress(BlockingIOError):
            self._wake_writer.send(b"x")

    def stop_now(self) -> None:
        """Stop at once, from another thread, as `Server.stop_now` does: workers have no grace time."""
        self._stopping.set()
        self.stop()

    def serve(self) -> None:
        """Serve until `stop`."""
        while not self._is_asked_to_stop(0):
            waiting: list[_Waited] = [self._wake_reader, *(one.control for one in self._workers.values())]
            is_anybody_there = self._least_busy() is not None
            waiting += [self._listener] if is_anybody_there else []
            is_complete = is_anybody_there and len(self._workers) == self._count
            ready = _readable(waiting, None if is_complete else PAUSE_MS)
            self._hear(0.0)
            worker = self._least_busy()  # again: much may have happened while nobody connected
            if worker is not None and self._listener.fileno() in ready:
                self._hand_over(worker)
            self._replace()
        self._shut_down()

    def close(self) -> None:
        """Whatever still runs ends now."""
        for worker in self._workers.values():
            worker.process.kill()
            worker.process.wait()
            worker.control.close()
        self._workers.clear()
        self._listener.close()

    def _start(self, number: int) -> None:
        """Start a worker, unless the machine has no process, descriptor or memory left for it now."""
        self._turns[number].put_off()
        try:
            self._workers[number] = self._spawn(number)
        except (OSError, MemoryError) as error:
            self._events.write("worker_not_started", worker=number, why=str(error) or type(error).__name__)

    def _spawn(self, number: int) -> _Worker:
        here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        here.setblocking(False)
        with there, contextlib.ExitStack() as unless_started:
            unless_started.enter_context(here)
            settings = replace(self._order.settings, limits=_part_of(self._limits, self._count))
            order = replace(self._order, number=number, settings=settings, control=there.fileno())
            # -P: no module of the folder that the server was started in, which may be anybody's
            command = [sys.executable, "-P", "-m", "sphynx.service.worker", json.dumps(order.to_json())]
            process = subprocess.Popen(
                command,
                pass_fds=(there.fileno(), order.weights),
                stdin=subprocess.DEVNULL,
                # Without one of ours, descriptor 2 is some socket or file, which must not get their log.
                stderr=None if sys.stderr else subprocess.DEVNULL,
            )
            unless_started.pop_all()
        return _Worker(process, here, self.metrics.new_part())

    def _hear(self, wait_s: float) -> None:
        """Hear what the workers say, as far as it has come."""
        controls = {worker.control.fileno(): number for number, worker in self._workers.items()}
        for descriptor in _readable([worker.control for worker in self._workers.values()], 1000 * wait_s):
            number = controls[descriptor]
            worker = self._workers[number]
            try:
                for _ in range(NOTES_AT_ONCE):
                    if not self._understand(number, worker):
                        break
            except ValueError as error:  # it is not waited for: it may not mean to end
                self._events.write("worker_refused", worker=number, why=str(error))
                worker.process.kill()
                self._lose(number)
            except (EOFError, OSError):
                self._lose(number)

    def _understand(self, number: int, worker: _Worker) -> bool:
        """One message; False if there is none."""
        try:
            note, descriptors, _flags, _address = socket.recv_fds(worker.control, MAX_NOTE_BYTES, 1)
        except BlockingIOError:
            return False
        if note == CALL:
            for descriptor in descriptors:  # none: this process has none left, and the kernel has closed it
                self._answer_calls(worker, descriptor)
            return True
        for descriptor in descriptors:
            os.close(descriptor)
        if note == READY:
            worker.is_ready = True
            self._turns[number].reset()
        elif note == DONE and worker.connections:
            worker.connections -= 1
        elif note:
            raise ValueError("it sent a message that no worker sends")
        else:
            raise EOFError
        return True

    def _answer_calls(self, worker: _Worker, descriptor: int) -> None:
        """Answer calls. One fails if the worker has more connections for them than it can have threads."""
        worker.calls = [one for one in worker.calls if one.is_alive]
        try:
            calls = socket.socket(fileno=descriptor)
        except OSError:  # not a socket
            os.close(descriptor)
            return
        limits = self._limits
        if len(worker.calls) >= 2 * (limits.connections + limits.handshakes) + SPARE_CALLS:
            calls.close()
            return
        try:
            worker.calls.append(Worker(partial(self._owner.serve, calls, worker.metrics)))
        except (RuntimeError, MemoryError):
            calls.close()

    def _lose(self, number: int) -> None:
        worker = self._workers.pop(number)
        worker.control.close()
        code = _wait_ended(worker.process)
        worker.metrics.end()
        if not self._stopping.is_set():
            self._events.write("worker_lost", worker=number, exit_code=code, connections=worker.connections)

    def _replace(self) -> None:
        for number in set(range(self._count)) - set(self._workers):
            if self._turns[number].has_come:
                self._start(number)

    def _least_busy(self) -> _Worker | None:
        ready = [worker for worker in [*self._workers.values()] if worker.is_ready and not worker.is_stopped()]
        return min(ready, key=lambda worker: worker.connections, default=None)

    def _hand_over(self, worker: _Worker) -> None:
        try:
            sock, address = self._listener.accept()
        except BlockingIOError:
            return
        except OSError as error:  # out of file descriptors, or the peer has left already
            self._events.write("accept_failed", why=error.strerror or str(error))
            if self._is_asked_to_stop(PAUSE_MS / 1000):
                self.stop()  # heard here: the loop has to hear it, too
            return
        with sock, contextlib.suppress(OSError):  # a worker that is gone: the client tries again
            socket.send_fds(worker.control, [address.encode()], [sock.fileno()])
            worker.connections += 1

    def _is_asked_to_stop(self, wait_s: float) -> bool:
        return bool(_readable([self._wake_reader], 1000 * wait_s)) and bool(self._wake_reader.recv(1))

    def _shut_down(self) -> None:
        is_now = self._stopping.is_set()
        self._stopping.set()
        self._listener.close()
        self._events.write("stopping", connections=self._admission.connections.taken)
        for worker in self._workers.values():
            if is_now:
                worker.process.kill()
            else:
                worker.process.terminate()
        deadline = time.monotonic() + self._limits.grace_s + self._limits.handshake_s + END_S
        while self._workers and time.monotonic() < deadline:
            self._hear(0.1)
        late = len(self._workers)
        self.close()
        self._events.write("stopped", aborted=late)


def _part_of(limits: Limits, count: int) -> Limits:
    """Each worker's part of the memory, and of the places for strangers; all else is the owner's to count."""
    return replace(
        limits,
        memory_bytes=limits.memory_bytes // count,
        unread_bytes=limits.unread_bytes // count,
        handshakes=max(16, limits.handshakes // count),
    )


def _readable(waiting: Sequence[_Waited], wait_ms: float | None) -> list[int]:
    poll = select.poll()
    for one in waiting:
        poll.register(one.fileno(), select.POLLIN)
    return [descriptor for descriptor, _event in poll.poll(wait_ms)]


def _wait_ended(process: subprocess.Popen[bytes]) -> int:
    with contextlib.suppress(subprocess.TimeoutExpired):
        return process.wait(END_S)
    process.kill()
    return process.wait()
