"""The settings of a server and of a client, declared once: the keywords of `sphynx.Server` and `sphynx.Client`, the
flags of `sphynx serve` and `sphynx infer`, and what the processes of one server are told are these records.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from sphynx.config import setting
from sphynx.errors import InputError
from sphynx.program.backends import BACKEND_CHOICES, BackendChoice, check_backend
from sphynx.program.cost.deployment import WEIGHT_MEMORY
from sphynx.program.cost.link import Link, parse_link
from sphynx.program.extensions import ExtensionChoice, check_extension
from sphynx.program.security import Reveal, Security, check_security, require_mode, require_reveal
from sphynx.record import Record
from sphynx.service.proxy_header import ProxyNetworks, parse_networks
from sphynx.service.strikes import FILE as STRIKES
from sphynx.threads import available_cores

if TYPE_CHECKING:
    from sphynx.protocol.channel import Observer

USUAL_ADDRESS = "127.0.0.1:7443"
TRUST_STATE = "Keep bundles after a restart of the machine or a move of their folder."
MAX_BUNDLES = 256  # of one client: a server names them all when it connects


@dataclass(frozen=True)
class Limits(Record):
    """The limits of who may do how much at a server.

    >>> limits = sphynx.Limits(images_per_hour=100, connections=8)
    >>> limits.batch
    16
    """

    workers: int = setting(
        factory=available_cores,
        meaning="How many preparations may run at once, and how many inferences. [default: one per core]",
        least=1,
        choose=True,
    )
    handshakes: int = setting(256, "Connections that may be open at once before they are authenticated.", flag=None)
    connections: int = setting(64, "Clients that may be connected at once.", least=1)
    connections_per_client: int = setting(
        16, "Connections of one client at once, such as processes that share its keys.", flag=None
    )
    bundles_per_client: int = setting(
        32, "Bundles that one client may keep ready.", flag="pool", least=1, most=MAX_BUNDLES
    )
    images_per_hour: int = setting(
        3600,
        "Images per hour for each client, counted at preparation and at inference.",
        flag="hourly",
        least=1,
    )
    batch: int = setting(16, "Images of one inference.", flag=None)
    quota_bytes: int = setting(16 << 30, "Disk space for all bundles, such as 500M or 16G.")
    memory_bytes: int = setting(
        512 << 20, "Memory for new bundles, to avoid reading them back."
    )  # a server's half has some 90 bytes for each ReLU
    weight_memory_bytes: int | None = setting(None, WEIGHT_MEMORY)
    unread_bytes: int = setting(
        1 << 30, "Memory for answers that clients have not read yet, over all connections.", flag=None
    )
    bundle_lifetime_s: float = setting(7 * 86_400.0, "Seconds that a bundle is kept.", flag=None)
    handshake_s: float = setting(10.0, "Seconds to wait for the TLS handshake.", flag="handshake", least=0.1)
    message_s: float = setting(60.0, "Seconds to wait for a message.", flag="timeout", least=0.1)
    online_message_s: float = setting(
        10.0,
        "Seconds to wait for a message of an inference: below `queue_s`, so that clients waiting behind a silent one "
        "are served.",
        flag=None,
    )
    idle_s: float = setting(600.0, "Seconds that a client may be idle.", flag="idle", least=0.1)
    queue_s: float = setting(30.0, "Seconds to wait for a worker to become free.", flag=None)
    work_s: float = setting(900.0, "Seconds for one bundle or one inference, all messages together.", flag=None)
    grace_s: float = setting(30.0, "Seconds that running work may take after Ctrl-C.", flag="grace", least=0)

    def __post_init__(self) -> None:
        """Refuse limits of 0, where a server would take nobody and say that it is busy."""
        for name, value in vars(self).items():
            may_be_none = name == "grace_s" or name.endswith("_bytes")
            if value is not None and (value < 0 if may_be_none else value <= 0):
                least = "at least" if may_be_none else "above"
                raise InputError(f"{name} = {value}: must be {least} 0", where="Limits", remedy="Choose another value.")
        if self.bundles_per_client > MAX_BUNDLES:
            raise InputError(
                f"bundles_per_client = {self.bundles_per_client}: must be at most {MAX_BUNDLES}",
                where="Limits",
                remedy="Choose a smaller value, or give a client keys for each of its devices.",
            )


@dataclass(frozen=True, kw_only=True)
class ServerSettings(Record):
    """How a server listens, what it keeps, and who may do how much; the keywords of `sphynx.Server`.

    >>> sphynx.ServerSettings(keys="keys/server", listen="[::1]:7443").address
    ('::1', 7443)
    """

    keys: Path | str = setting(meaning="The server's folder of keys.")
    listen: str = setting(USUAL_ADDRESS, "Address to listen on; port 0 picks a free one.", metavar="HOST:PORT")
    state: Path | str | None = setting(
        None, "Where to keep bundles and their ledger. [default: DIR/bundles, for a model bundles/NAME]"
    )
    limits: Limits = setting(factory=Limits, meaning="How much each client may use.", flag=None)
    metrics: str | None = setting(
        None,
        "Address for /metrics and /healthz; beyond the loopback address with a token or TLS.",
        metavar="HOST:PORT",
        written="127.0.0.1:9464",
    )
    metrics_token: Path | str | None = setting(
        None, "File with the token that whoever asks for /metrics must send: Authorization: Bearer TOKEN."
    )
    metrics_tls: bool = setting(
        False, "Serve it over TLS with the server's keys, to clients of the same authority only."
    )
    link: Link | str | None = setting(
        None, "Delay every answer as on lan, wan or 20ms,200mbit, for trials on one machine.", written_as=str
    )
    proxy_from: tuple[str, ...] = setting(
        (),
        "Addresses of load balancers, such as 10.0.0.0/8; they must send PROXY protocol v2. Repeatable.",
        metavar="NETWORK",
    )
    strikes: Path | str | None = setting(
        None,
        "File of clients that failed checks, which servers may share; three strikes lock one out."
        " [default: strikes.jsonl beside the bundles]",
    )
    security: Security = setting(
        "semi-honest",
        "malicious-client also protects the weights from clients that modify their software; clients then use gc.",
    )
    reveal: Reveal = setting(
        "logits", "label: clients get the class alone, found by a garbled circuit at the end, and no scores."
    )
    margin: float = setting(
        0.0,
        'With the label: "not sure" where the largest score leads the second by less, in the units of the scores.',
        least=0,
    )
    ot: ExtensionChoice = setting(
        "auto", "OT extension: softspoken, silent (few bytes, somewhat more work), or auto: as each client chooses."
    )
    trust_state: bool = setting(False, TRUST_STATE)
    drain: bool = setting(False, "Prepare no more bundles: clients use those they have, and prepare elsewhere.")
    processes: int = setting(
        1, "Worker processes that share one port and the machine's cores.", least=1, most=256
    )  # more than one can only serve a compiled folder
    log: TextIO | None = setting(None, "Receives one JSON object per line; worker processes log to stderr.", flag=None)

    def __post_init__(self) -> None:
        """Refuse an address, a link, networks or a mode that are not valid, before anything is opened."""
        check_security(self.security, where="`security`")
        require_reveal(self.reveal, self.margin)
        check_extension(self.ot, where="`ot`")
        _ = self.address, self.proxies, self.emulated_link
        if self.metrics_address is not None and not (self.metrics_token or self.metrics_tls):
            host = self.metrics_address[0]
            if not (host == "localhost" or (_is_address(host) and ip_address(host).is_loopback)):
                raise InputError(
                    f"anybody could read the metrics at {host}",
                    where="`metrics`",
                    remedy="Give `metrics_token` or `metrics_tls`, or an address of 127.0.0.1.",
                )

    @property
    def metrics_address(self) -> tuple[str, int] | None:
        from sphynx.service.replicas import parse_address  # here: flags are made without it

        return None if self.metrics is None else parse_address(self.metrics)

    @property
    def address(self) -> tuple[str, int]:
        from sphynx.service.replicas import parse_address  # here: flags are made without it

        return parse_address(self.listen)

    @property
    def state_folder(self) -> Path:
        """The folder of bundles, which a server that runs has, whoever chose it."""
        if self.state is None:
            raise InputError("no folder is given for the bundles", where="`state`", remedy="Give one.")
        return Path(self.state)

    @property
    def strikes_file(self) -> Path:
        return self.state_folder / STRIKES if self.strikes is None else Path(self.strikes)

    @property
    def proxies(self) -> ProxyNetworks:
        return parse_networks(self.proxy_from)

    @property
    def emulated_link(self) -> Link | None:
        return parse_link(self.link) if isinstance(self.link, str) else self.link


@dataclass(frozen=True, kw_only=True)
class ClientSettings:
    """The keywords of `sphynx.Client`, and the flags of `sphynx infer`.

    >>> sphynx.ClientSettings(keys="keys/alice", backend="gmw").timeout_s
    120.0
    """

    keys: Path | str = setting(meaning="Your folder of keys.")
    state: Path | str | None = setting(None, "Where to keep your bundles. [default: KEYS/bundles]")
    program: str = setting(
        "", "Ask only the program with this hash, its first 16 digits or more, or this name.", metavar="HASH|NAME"
    )
    ahead: int = setting(0, "Keep running, with N bundles ready, until Ctrl-C.", metavar="N", least=0)
    backend: BackendChoice = setting(
        "auto", "gc (few rounds), gmw (few bytes), or auto: what is ready, otherwise the faster on the measured link."
    )
    security: Security = setting(
        "semi-honest",
        "Ask only servers with at least this security; malicious-client protects their weights from any client.",
    )
    ot: ExtensionChoice = setting(
        "auto",
        "OT extension: softspoken, silent (few bytes, somewhat more work), or auto: the faster on the measured link.",
    )
    timeout_s: float = setting(120.0, "Seconds to wait for each answer of the server.", flag="timeout", least=0.1)
    wait_s: float = setting(10.0, "Seconds to wait for a server that is still starting.", flag="wait", least=0)
    trust_state: bool = setting(False, TRUST_STATE)
    warn: Callable[[str], None] = setting(
        warnings.warn, "Called about old lists of revoked keys, servers that are down, and bundles not made.", flag=None
    )
    observer: Observer | None = setting(None, "Watches what this end sends and receives.", flag=None)

    def __post_init__(self) -> None:
        """Refuse what is not a backend, a security or a hash, and what does not go together."""
        check_backend(self.backend, BACKEND_CHOICES, where="`backend`")
        check_security(self.security, where="`security`")
        check_extension(self.ot, where="`ot`")
        if self.backend != "auto":
            require_mode(self.security, self.backend, where="`security`")
        _ = self.wanted

    @property
    def wanted(self) -> str:
        """The program that is asked for, as a server is told."""
        from sphynx.program.naming import parse_wanted  # here: flags are made without it

        return parse_wanted(self.program)


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
