"""Messages between client and server around the protocol: small JSON objects on the channel, client first.

    Look         which version; only before Hello              -> Programs: what is served, by name and hash
    Hello        which version, which program, by its name     -> Welcome with the security, then program.json
                 or hash ("" = the only one)
    Agree        bundles that the client no longer holds, and which burns the server must know (no answer)
    Prepare      how many bundles, which backend and batch,    -> Go, then for each group the offline phase and Stored
                 how many of them in a group, whether ahead:
                 nobody waits for them; the check as Welcome
                 has it; how OTs are extended, as the
                 Welcome's `ot` allows
    Infer        a bundle; the online phase follows at once        (no answer: a refusal is the channel's "gives up")
    Ping         up_bytes follow                               -> down_bytes, to measure the link
    Bye          the client is done

A message is one JSON object with its `kind`, at most MAX_MESSAGE_BYTES long, unknown keys refused. Bundle identifiers
come from both parties' randomness, so neither can make the other use one twice.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TypeVar

from sphynx.config import read_settings
from sphynx.errors import ConnectionLostError, InputError
from sphynx.program.backends import Backend
from sphynx.program.extensions import Extension, ExtensionChoice, Extensions
from sphynx.program.naming import HASH_DIGITS, short_hash
from sphynx.program.security import Security
from sphynx.protocol.bundle import ID_BYTES
from sphynx.protocol.channel import WIRE_VERSION, Channel
from sphynx.protocol.verify.plan import MAX_FUNCTIONALS, RINGS, CheckPlan
from sphynx.service.settings import MAX_BUNDLES
from sphynx.version import __version__

SERVICE_VERSION = 7
MAX_MESSAGE_BYTES = 1 << 14
MAX_PROGRAM_BYTES = 1 << 24
MAX_PING_BYTES = 1 << 20
MAX_IDS = MAX_BUNDLES  # of bundles of one client
NONCE_BYTES = 16
MAX_BURNS = 1 << 53
MAX_PROGRAMS, MAX_NAME = 64, 128


@dataclass(frozen=True)
class Look:
    service: int


@dataclass(frozen=True)
class Programs:
    names: tuple[str, ...]
    hashes: tuple[str, ...]
    security: Security

    def faults(self) -> list[str]:
        are_hashes = all(_is_hex(text, HASH_DIGITS // 2) for text in self.hashes)
        return [] if are_hashes and len(self.names) == len(self.hashes) <= MAX_PROGRAMS else ["programs"]


@dataclass(frozen=True)
class Hello:
    service: int
    program: str = ""

    def faults(self) -> list[str]:
        return [] if len(self.program) <= MAX_NAME else ["program"]


@dataclass(frozen=True)
class Welcome:
    service: int
    program: str
    program_bytes: int
    ready: tuple[str, ...]  # the bundles that the server holds for this client
    burned: int  # the highest number of a bundle that it burned with this client
    most: int  # bundles that a client may keep ready
    security: Security
    ring_bits: int = 0  # of the check, where clients need not be trusted
    functionals: int = 0
    ot: ExtensionChoice = "auto"  # how OTs may be extended

    @property
    def check(self) -> CheckPlan | None:
        return CheckPlan(self.ring_bits, self.functionals) if self.security == "malicious-client" else None

    def faults(self) -> list[str]:
        is_checked = self.ring_bits in RINGS and 0 < self.functionals <= MAX_FUNCTIONALS
        is_clear = is_checked if self.check else self.ring_bits == self.functionals == 0
        is_sized = 0 < self.program_bytes <= MAX_PROGRAM_BYTES and 0 <= self.burned < MAX_BURNS and self.most > 0
        return [] if is_clear and is_sized and _are_ids(self.ready) else ["sizes"]


@dataclass(frozen=True)
class Prepare:
    count: int
    backend: Backend
    batch: int
    nonce: str
    group: int = 1  # bundles that are prepared at once, all or none; the last group may have fewer
    ahead: bool = False  # with what the server has to spare
    down: Extension = "softspoken"  # how the OTs are extended
    up: Extension = "softspoken"
    check: str = ""  # how the client expects to be checked: a `CheckPlan`, or not

    @property
    def made(self) -> Extensions:
        return Extensions(self.down, self.up)

    def faults(self) -> list[str]:
        are_positive = self.count > 0 and self.batch > 0 and 0 < self.group <= MAX_IDS
        return [] if _is_hex(self.nonce, NONCE_BYTES) and are_positive else ["values"]


@dataclass(frozen=True)
class Go:
    nonce: str
    lifetime_s: float

    def faults(self) -> list[str]:
        return [] if _is_hex(self.nonce, NONCE_BYTES) and self.lifetime_s > 0 else ["values"]


@dataclass(frozen=True)
class Stored:
    bundles: tuple[str, ...]  # of one group

    def faults(self) -> list[str]:
        return [] if _are_ids(self.bundles) else ["bundles"]


@dataclass(frozen=True)
class Infer:
    bundle: str
    number: int  # the client's, of this burn

    def faults(self) -> list[str]:
        return [] if _are_ids((self.bundle,)) and 0 < self.number < MAX_BURNS else ["bundle"]


@dataclass(frozen=True)
class Agree:
    lost: tuple[str, ...]
    confirmed: int  # up to this number the server has burned what the client has

    def faults(self) -> list[str]:
        return [] if _are_ids(self.lost) and 0 <= self.confirmed < MAX_BURNS else ["values"]


@dataclass(frozen=True)
class Ping:
    up_bytes: int
    down_bytes: int

    def faults(self) -> list[str]:
        return [] if all(0 <= size <= MAX_PING_BYTES for size in (self.up_bytes, self.down_bytes)) else ["sizes"]


@dataclass(frozen=True)
class Bye:
    pass


Request = Look | Hello | Prepare | Infer | Agree | Ping | Bye
Message = Request | Programs | Welcome | Go | Stored
_KINDS: dict[str, type[Message]] = {
    kind.__name__.lower(): kind
    for kind in (Look, Programs, Hello, Welcome, Prepare, Go, Stored, Infer, Agree, Ping, Bye)
}
Expected = TypeVar("Expected", bound=Message)


def send(channel: Channel, message: Message) -> None:
    channel.send(json.dumps({"kind": type(message).__name__.lower(), **asdict(message)}).encode())


def receive(channel: Channel, *, timeout_s: float | None = None) -> Message:
    return parse(bytes(channel.receive_up_to(MAX_MESSAGE_BYTES, timeout_s=timeout_s)))


def expect(channel: Channel, kind: type[Expected], *, timeout_s: float | None = None) -> Expected:
    message = receive(channel, timeout_s=timeout_s)
    if not isinstance(message, kind):
        raise _malformed_error()
    return message


@contextmanager
def ending_at_a_failure(channel: Channel) -> Iterator[None]:
    """Whatever fails inside, the peers no longer agree on what comes next: later calls are told so."""
    try:
        yield
    except BaseException:
        channel.close(wait_s=0)
        raise


def parse(raw: bytes) -> Message:
    """Says nothing of what was in a message that is not ours: it could hold anything, and errors are logged."""
    try:
        table = json.loads(raw)
        if table["kind"] in ("look", "hello") and type(table["service"]) is int and table["service"] != SERVICE_VERSION:
            return Hello(table["service"])  # whatever else such messages of that version have
        return read_settings(_KINDS[table.pop("kind")], table, where="message")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, InputError):
        raise _malformed_error() from None


def new_nonce() -> str:
    return os.urandom(NONCE_BYTES).hex()


def bundle_id(program: str, check: str, client_nonce: str, server_nonce: str, number: int) -> bytes:
    digest = hashlib.sha256(b"sphynx bundle\0")
    for part in (program, check, client_nonce, server_nonce, str(number)):
        digest.update(part.encode() + b"\0")
    return digest.digest()[:ID_BYTES]


def groups(count: int, size: int) -> Iterator[range]:
    """Number the bundles of each group of a request."""
    return (range(first, min(first + size, count)) for first in range(0, count, size))


def other_program(names: Sequence[str], hashes: Sequence[str]) -> tuple[str, str]:
    """Tell a client which programs are served, where it insists on another one, or would have to say which: the server
    says so, or the client itself."""
    if len(hashes) == 1:
        return (
            f"this server serves the program {short_hash(hashes[0])}, not the one asked for",
            "Check the hash, leave `program` out, or ask another server.",
        )
    served = ", ".join(f"{name} ({short_hash(one)})" for name, one in zip(names, hashes, strict=True))
    return f"this server serves several programs: {served}", "Say which: `program=NAME`, or its hash."


def other_version(spoken: str) -> tuple[str, str]:
    """Tell a client which version it needs: what is wrong, and what helps. `spoken` is what it speaks."""
    return (
        f"this server runs sphynx {__version__} (wire {WIRE_VERSION}, service {SERVICE_VERSION}), the client {spoken}",
        f"Install sphynx {__version__}, or ask a server of your version.",
    )


def _are_ids(ids: tuple[str, ...]) -> bool:
    return len(ids) <= MAX_IDS and all(_is_hex(text, ID_BYTES) for text in ids)


def _is_hex(text: str, size: int) -> bool:
    return len(text) == 2 * size and set(text) <= set("0123456789abcdef")


def _malformed_error() -> ConnectionLostError:
    return ConnectionLostError(
        "the peer sent an unexpected message",
        where="connection",
        remedy="Use the same version of sphynx on both sides.",
    )
