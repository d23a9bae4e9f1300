"""The programs that a server serves, one or several, each with the parts that all conversations about it share."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

from sphynx.errors import RefusedError
from sphynx.program.extensions import ExtensionChoice
from sphynx.program.naming import SHOWN_DIGITS
from sphynx.program.security import Security
from sphynx.protocol.linear import ServerModel
from sphynx.service import session
from sphynx.service.admission import Admission
from sphynx.service.events import EventLog
from sphynx.service.fresh_keys import FreshKeys
from sphynx.service.metrics import Metrics
from sphynx.service.session import SERVICE_VERSION, Hello, Programs
from sphynx.service.store import Store
from sphynx.service.strikes import Strikes
from sphynx.service.yielding import Urgent


@dataclass(frozen=True)
class Service:
    """One program that is served, and the parts that all conversations share."""

    model: ServerModel
    store: Store
    keys: FreshKeys
    admission: Admission
    strikes: Strikes
    metrics: Metrics
    events: EventLog
    stopping: threading.Event
    ot: ExtensionChoice = "auto"
    name: str = ""  # of the program, as clients may ask for it
    drains: bool = False
    urgent: Urgent = field(default_factory=Urgent)

    @property
    def program_hash(self) -> str:
        return self.model.program.content_hash

    @property
    def check_plan(self) -> str:
        """How clients are checked, as bundles note it; "" where they are trusted."""
        return str(self.model.check or "")

    @property
    def security(self) -> Security:
        """How far clients need not be trusted."""
        return "malicious-client" if self.model.check else "semi-honest"


def list_served(services: Sequence[Service]) -> Programs:
    names, hashes = zip(*((service.name, service.program_hash) for service in services), strict=True)
    return Programs(names, hashes, services[0].security)


def find_service(services: Sequence[Service], hello: Hello) -> Service:
    """Find the one that a client asks for by its hash, the first digits of it, or its name; or the only one."""
    if hello.service != SERVICE_VERSION:
        what, remedy = session.other_version(f"service {hello.service}")
        raise RefusedError(what, where="hello", remedy=remedy)
    asked = hello.program
    if not asked and len(services) == 1:
        return services[0]
    for service in services:
        starts = len(asked) >= SHOWN_DIGITS and service.program_hash.startswith(asked)
        if asked and (asked == service.name or starts):
            return service
    offered = list_served(services)
    what, remedy = session.other_program(offered.names, offered.hashes)
    raise RefusedError(what, where="hello", remedy=remedy)
