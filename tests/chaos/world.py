"""One point of the chaos run: a fault, where and when, what came of it, and how the parties went on afterwards.

A world has one server's and one client's folder of bundles, which all its points share: a bundle that comes back to
life points later is found too. After the fault the client asks again, as a user would, without a fault. The server is
started again only if it died, if its ledger was damaged, or if it refuses and has short timeouts.

A damaged page of a ledger may be read for the first time many points later. Then the user does what the error says, as
right after the damage. An error that speaks of a damage where there was none is not survived.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from resource import RLIMIT_AS, RLIMIT_FSIZE, getrlimit, prlimit

import numpy as np
from numpy.typing import NDArray

from sphynx.program.backends import Backend
from sphynx.program.interpret import interpret
from sphynx.protocol.linear import ServerModel
from tests.chaos.parties import PATIENT, QUICK, Child, Question, Told, fork, listening, serve
from tests.chaos.proxy import DIRECTIONS, RecordBlow, relay, slot_of
from tests.chaos.strike import PHASES, Blow, Board, set_writable
from tests.program.programs import random_weights
from tests.service.tiny import tiny_program

DAMAGE = "damaged ledger"
ATTEMPTS = 3  # to get an answer after a fault
PATIENCE_S = 30.0  # for anything; what takes longer hangs
LOOK_S = 0.002
# Somebody waits in vain, so waiting must be short. On a busy machine nobody may be fast enough then, and a server that
# waits longer may have to take its place afterwards.
SLOW = {"pause", "silence", "drop", "swap", "corrupt header"}


@dataclass(frozen=True)
class Point:
    place: str  # client, server, pool; "client link", "pool link"
    blow: Blow | RecordBlow

    @property
    def message_s(self) -> float:
        return QUICK if self.blow.fault in SLOW else PATIENT


@dataclass
class Outcome:
    is_struck: bool
    has_answered: bool  # in spite of the fault
    attempts: int  # until the right answer came afterwards; 0: it never did
    wrong: int
    restarts: int
    moved_away: int  # folders that could not be used any more
    unforeseen: list[str]  # errors that are not Sphynx's own
    why: list[str]  # what stood in the way afterwards


def whose_is_damaged(said: Sequence[Told]) -> str:
    """Tell from what a client said whose folder has to be moved away: its own, the server's, whose log says more, or
    none."""
    for line in said:
        if "Move the whole folder away" in line.get("remedy", ""):
            return "client"
        if "disk is full, damaged" in line.get("what", ""):
            return "server"
    return ""


class World:
    def __init__(self, folder: Path, authority: Path, backend: Backend) -> None:
        self.backend = backend
        self._server_folder, self._client_folder = folder / "server", folder / "client"
        self._server_keys, self._client_keys = authority / "server", authority / "alice"
        program = tiny_program()
        self._program, self._weights = program, random_weights(program)
        self._model = ServerModel(program, self._weights, threads=1)
        self.used: Counter[str] = Counter()
        self._moved = 0
        self._damaged: set[Path] = set()  # folders whose ledger was damaged since they were made

    @property
    def reused(self) -> int:
        return sum(times > 1 for times in self.used.values())

    def count(self) -> dict[tuple[str, str], int]:
        """Moments of each process and records of each direction, by place and phase, where nothing is struck."""
        boards = {"server": Board(), "client": Board(), "link": Board()}
        server = self._start_server(boards["server"], None, PATIENT)
        assert server.told("port"), server.said
        proxy, port = self._start_proxy(boards["link"], None, server.told("port")[0])
        client = self._ask(port, boards["client"], None, self._pixels(0), PATIENT)
        self._wait([client], [server, proxy])
        assert client.told("answer") == [self._expected(self._pixels(0))], client.said
        self._end(client, server, proxy)
        found = {
            (role, phase): 2 * boards[role].count(number)
            for role in ("server", "client")
            for number, phase in enumerate(PHASES)
        }
        found.update(
            {
                (direction, phase): boards["link"].count(slot_of(phase, direction))
                for phase in PHASES[1:]
                for direction in DIRECTIONS
            }
        )
        return found

    def try_point(self, point: Point) -> Outcome:
        board, seed = Board(), point.blow.seed
        pixels = self._pixels(seed)
        role_blow = point.blow if isinstance(point.blow, Blow) else None
        is_server = point.place == "server"
        server = self._start_server(board if is_server else Board(), role_blow if is_server else None, point.message_s)
        others = [server]
        outcome = Outcome(False, False, 0, 0, 0, 0, [], [])
        asking: list[Child] = []
        if server.told("port"):
            port = struck_port = server.told("port")[0]
            if isinstance(point.blow, RecordBlow):
                proxy, struck_port = self._start_proxy(board, point.blow, port)
                others.append(proxy)
            is_pool = point.place.startswith("pool")
            if is_pool:
                pool_board = board if role_blow else Board()  # the proxy's otherwise
                asking.append(self._ask(struck_port, pool_board, role_blow, pixels, point.message_s, infers=False))
            client_blow = role_blow if point.place == "client" else None
            client_board = board if client_blow else Board()
            client_port = port if is_pool else struck_port
            client = self._ask(client_port, client_board, client_blow, pixels, point.message_s)
            asking.append(client)
            self._wait(asking, others)
            self._judge(client, pixels, outcome)
            outcome.has_answered = bool(client.told("answer"))
            if any(child.status is None for child in asking):
                outcome.unforeseen.append("a client hangs")
        outcome.is_struck = board.is_struck
        if outcome.is_struck and point.blow.fault == DAMAGE:
            self._damaged.add(self._server_folder if is_server else self._client_folder)
        self._end(*asking, *others[1:])
        self._recover(point, server, outcome)
        return outcome

    def _recover(self, point: Point, server: Child, outcome: Outcome) -> None:
        """The cause is gone: the limits are lifted, and the user asks again."""
        for folder in (self._server_folder, self._client_folder):
            if point.blow.fault == "read-only" and folder.exists():
                set_writable(folder, True)
        server.look()
        if server.status is None:
            for limit in (RLIMIT_FSIZE, RLIMIT_AS):
                prlimit(server.pid, limit, getrlimit(limit))
        is_damaged = point.blow.fault == DAMAGE
        for attempt in range(1, ATTEMPTS + 1):
            server.look()
            is_refused = attempt > 1 and point.blow.fault in SLOW
            if server.status is not None or is_refused or (attempt == 1 and is_damaged):
                self._end(server)
                self._judge_server(server, outcome)
                server = self._restart(outcome)
            pixels = self._pixels(point.blow.seed + 1)
            port = server.told("port")[0]
            client = self._ask(port, Board(), None, pixels, PATIENT, prepares=False)
            self._wait([client], [server])
            if client.status is None:
                outcome.unforeseen.append("a client hangs afterwards")
            self._judge(client, pixels, outcome)
            self._end(client)
            if client.told("answer"):
                outcome.attempts = attempt
                break
            outcome.why += [f"{line}" for line in (*client.said, *server.said[-4:])] + [f"server {server.status}"]
            whose = whose_is_damaged(client.said) or ("server" if is_damaged and client.told("error") else "")
            damaged = {"client": self._client_folder, "server": self._server_folder}.get(whose)
            if damaged in self._damaged:
                self._end(server)
                self._move_away(damaged, outcome)
        self._end(server)
        self._judge_server(server, outcome)

    def _restart(self, outcome: Outcome) -> Child:
        outcome.restarts += 1
        server = self._start_server(Board(), None, PATIENT)
        if not server.told("port"):
            self._end(server)
            self._move_away(self._server_folder, outcome)
            server = self._start_server(Board(), None, PATIENT)
        return server

    def _move_away(self, folder: Path, outcome: Outcome) -> None:
        outcome.moved_away += 1
        self._moved += 1
        self._damaged.discard(folder)
        folder.rename(folder.with_name(f"{folder.name}-{self._moved}"))

    def _judge(self, client: Child, pixels: NDArray[np.uint8], outcome: Outcome) -> None:
        outcome.wrong += any(answer != self._expected(pixels) for answer in client.told("answer"))
        outcome.unforeseen += [f"client: {line}" for line in client.said if "unforeseen" in line]
        outcome.unforeseen += client.crash

    def _judge_server(self, server: Child, outcome: Outcome) -> None:
        outcome.unforeseen += [f"server: {line}" for line in server.said if line.get("event") == "internal_error"]
        outcome.unforeseen += [f"server: {line}" for line in server.said if "unforeseen" in line]
        outcome.unforeseen += server.crash

    def _start_server(self, board: Board, blow: Blow | None, message_s: float) -> Child:
        server = fork(serve(self._model, self._server_folder, self._server_keys, board, blow, message_s))
        deadline = time.monotonic() + PATIENCE_S
        while not server.told("port") and server.status is None and time.monotonic() < deadline:
            time.sleep(LOOK_S)
            server.look()
        return server

    def _start_proxy(self, board: Board, blow: RecordBlow | None, port: int) -> tuple[Child, int]:
        with listening() as listener:
            proxy = fork(lambda _tell: relay(listener, port, board, blow))
            return proxy, listener.getsockname()[1]

    def _ask(
        self,
        port: int,
        board: Board,
        blow: Blow | None,
        pixels: NDArray[np.uint8],
        timeout_s: float,
        *,
        prepares: bool = True,
        infers: bool = True,
    ) -> Child:
        question = partial(Question, port, self._client_keys, self._client_folder, self.backend, pixels, timeout_s)
        return fork(question(prepares=prepares, infers=infers).ask(board, blow))

    def _wait(self, asking: Sequence[Child], others: Sequence[Child]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while any(child.status is None for child in asking) and time.monotonic() < deadline:
            time.sleep(LOOK_S)
            for child in (*asking, *others):
                child.look()

    def _end(self, *children: Child) -> None:
        for child in children:
            if child.pipe >= 0:
                child.end()
                self.used.update(child.told("used"))
                self.used.update(child.told("material"))

    def _pixels(self, seed: int) -> NDArray[np.uint8]:
        return np.random.default_rng(seed).integers(0, 256, (1, 4, 4), np.uint8)

    def _expected(self, pixels: NDArray[np.uint8]) -> list[int]:
        found: list[int] = interpret(self._program, self._weights, pixels[None])[0].tolist()
        return found
