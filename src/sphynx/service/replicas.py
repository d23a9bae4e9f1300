"""Several servers of one network, which share nothing: which of them a client asks, and which next when one is down.

A bundle belongs to the server it was prepared with, so a client should come back to the same one. The order is a
rendezvous hash (Thaler and Ravishankar, 1998) of the client's name and the server's: all processes of a
client have the same order, clients spread evenly, and when a server is gone only its clients move. A name with several
addresses in DNS is as many servers; they have to prove the same name.

What failed goes to the end of the order for AVOID_S. What was running at a server that went down is lost: nothing here
asks again, because only the caller knows whether to.
"""

from __future__ import annotations

import contextlib
import hashlib
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from sphynx.errors import ConnectionLostError, InputError, NobodyListensError, PeerGaveUpError, SphynxError
from sphynx.service.certificate import subject_of
from sphynx.service.credentials import CERTIFICATE

AVOID_S = 30.0
RETRY_S = 0.1  # while every port refuses
SILENT_S = 1.0  # of waiting, before somebody is told of it
Connected = TypeVar("Connected")


@dataclass(frozen=True)
class Place:
    """The place where a server listens."""

    host: str  # the name that its certificate has to prove
    port: int
    address: str  # of the host, one of perhaps several

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        where = "" if self.address == self.host else f" ({self.address})"
        return f"{host}:{self.port}{where}"


def parse_address(text: str) -> tuple[str, int]:
    """`127.0.0.1:7443`, `[::1]:7443`, `inference.example:7443`."""
    host, _, port = str(text).rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise InputError(f"{text!r} is not HOST:PORT", where="address", remedy="Write it as 127.0.0.1:7443.")
    try:
        host.encode("idna")  # as every look-up does
    except UnicodeError:
        raise InputError(
            f"{host!r} is not a valid host name", where="address", remedy="Write it as inference.example:7443."
        ) from None
    return host.strip("[]"), int(port)


def parse_servers(given: str | Sequence[str]) -> tuple[tuple[str, int], ...]:
    """One address or several, as a list or with commas between them; each counts once."""
    texts = given if isinstance(given, Sequence) and not isinstance(given, str) else [given]
    found = [parse_address(part.strip()) for text in texts for part in str(text).split(",")]
    if not found:
        raise InputError("no server is listed", where="servers", remedy="Give at least one as HOST:PORT.")
    return tuple(dict.fromkeys(found))


class Replicas:
    def __init__(
        self,
        servers: Sequence[tuple[str, int]],
        *,
        keys: Path,
        wait_s: float,
        warn: Callable[[str], None],
        resolve: Callable[[str, int], list[str]] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`wait_s` is how long ports that refuse are tried again. `warn` hears of a server that was passed over, and
        that this waits for one."""
        self._servers, self._keys, self._wait_s, self._warn = servers, keys, wait_s, warn
        self._resolve, self._clock = resolve or resolve_addresses, clock
        self._failed_at: dict[Place, float] = {}

    def connect(self, open_at: Callable[[Place], Connected]) -> tuple[Place, Connected]:
        """The first server that lets this client in; if none does, the error of the one that comes first."""
        begun_s, is_told = self._clock(), False
        while True:
            failed: dict[Place, SphynxError] = {}
            for place in self.places():
                try:
                    found = open_at(place)
                except (ConnectionLostError, PeerGaveUpError) as error:
                    self.avoid(place)
                    failed[place] = error
                    continue
                self._failed_at.pop(place, None)
                self._tell(failed, place)
                return place, found
            starting = [place for place, error in failed.items() if isinstance(error, NobodyListensError)]
            waited_s = self._clock() - begun_s
            if not starting or waited_s >= self._wait_s:
                raise next(iter(failed.values()))
            if waited_s >= SILENT_S and not is_told:
                self._warn(
                    f"{starting[0]} refuses connections: waiting up to {self._wait_s:g} s for the server to start"
                )
                is_told = True
            time.sleep(RETRY_S)

    def avoid(self, place: Place) -> None:
        """It failed just now: others come first for a while."""
        self._failed_at[place] = self._clock()

    def places(self) -> list[Place]:
        """List the places in the order in which this client tries them."""
        client = self._name_of_client()
        ranked = sorted(self._servers, key=lambda server: _rank(client, *map(str, server)))
        places = [
            Place(host, port, address)
            for host, port in ranked
            for address in sorted(
                self._resolve(host, port), key=lambda address: (":" in address, _rank(client, address))
            )
        ]
        now = self._clock()
        return sorted(places, key=lambda place: now - self._failed_at.get(place, -AVOID_S) < AVOID_S)

    def _name_of_client(self) -> bytes:
        """The client's name as its certificate has it, which stays when that is renewed."""
        with contextlib.suppress(OSError, ValueError):  # keys that cannot be used are reported when they are used
            return subject_of((self._keys / CERTIFICATE).read_text())
        return b""

    def _tell(self, failed: dict[Place, SphynxError], used: Place) -> None:
        """Warn of servers that were skipped; of one name's addresses it is enough that one answers."""
        for host, port in dict.fromkeys((place.host, place.port) for place in failed):
            if (host, port) != (used.host, used.port):
                why = next(error.what for place, error in failed.items() if (place.host, place.port) == (host, port))
                self._warn(f"{Place(host, port, host)} was skipped: {why}. Continuing with {used}")


def resolve_addresses(host: str, port: int) -> list[str]:
    """Every address of a name; the name itself where there is none, so that connecting says what is wrong with it."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError:
        return [host]
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def _rank(client: bytes, *parts: str) -> bytes:
    return hashlib.sha256(b"\0".join([client, *(part.encode() for part in parts)])).digest()
