"""The client's side of a conversation's beginning: the server's program, and what both parties hold of its bundles.

A half without its counterpart is of no use; after a crash of either side there may be some, and they are discarded. So
are those that were made with the server under an earlier name.
Halves that both hold may still have been used, if both folders were restored from copies. Burns are numbered for that,
and each party says how far it has come with the other. The client burns first: a server that knows of more burns than
the client shows that the client's ledger is an older copy. An inference that the client saw finished is burned at the
server: a server that does not know of it has an older copy. Whoever has one discards what it calls ready.

Other processes may prepare and use bundles of the same folder meanwhile. What is compared with the server's answer as
"at least" is therefore read before the question, and what is compared as "at most" after it.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass

from sphynx.errors import ConnectionLostError, PeerGaveUpError, SphynxError
from sphynx.program.extensions import ExtensionChoice, combine
from sphynx.program.folder import HASH
from sphynx.program.ir import Program
from sphynx.program.naming import is_hash
from sphynx.program.parse import program_from_json
from sphynx.program.security import Security, offers
from sphynx.protocol.channel import Channel
from sphynx.protocol.verify.plan import CheckPlan, require_strict
from sphynx.service import session
from sphynx.service.session import SERVICE_VERSION, Agree, Hello, Welcome
from sphynx.service.store import Store

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Agreement:
    program: Program
    most_ready: int  # bundles that the server lets a client keep
    security: Security  # as the server offers it
    check: CheckPlan | None
    ot: ExtensionChoice  # as both parties' settings allow


def agree(
    channel: Channel,
    store: Store,
    *,
    server: str,
    where: str,
    wanted: str,
    demanded: Security = "semi-honest",
    ot: ExtensionChoice = "auto",
) -> Agreement:
    """Agree on a program and how clients are checked with the server of this identity, at this place. `wanted`
    is the program's hash, its first digits, its name at the server, or "" for the only one; bundles are bound to the
    whole hash in any case. A server that offers less than the security `demanded`, or insists on OTs of another kind
    than `ot`, is refused."""
    held, confirmed = store.ready(owner=server), store.ledger.confirmed(server)
    session.send(channel, Hello(SERVICE_VERSION, wanted))
    welcome = session.expect(channel, Welcome)
    program = _read_program(bytes(channel.receive(welcome.program_bytes)))
    if welcome.service != SERVICE_VERSION or program.content_hash != welcome.program:
        raise SphynxError(
            "the server's program does not match its hash", where=where, remedy="Contact the server's operator."
        )
    if is_hash(wanted) and not program.content_hash.startswith(wanted):
        what, remedy = session.other_program([program.name], [program.content_hash])
        raise PeerGaveUpError(what, where=where, remedy=remedy)
    if not offers(welcome.security, demanded):
        raise PeerGaveUpError(
            f"this server offers the security {welcome.security}, less than {demanded}",
            where=where,
            remedy="Ask another server, or leave `security` out: it protects the server's weights, not the image.",
        )
    extension = combine(ot, welcome.ot)
    if extension is None:
        raise PeerGaveUpError(
            f"OTs are {welcome.ot} at this server, not {ot}",
            where=where,
            remedy="Leave `ot` out: either kind is secure, they differ in bytes and work.",
        )
    if welcome.check is not None:
        require_strict(welcome.check, program, where=where)
    ours, theirs = program.content_hash, set(welcome.ready)
    if store.ledger.burned(server, ours) < welcome.burned:
        count = store.fall_in(owner=server, program=ours, burned=welcome.burned)
        if count:
            _log.warning(
                "%d bundles were discarded: the server knows of later inferences, this is an older copy", count
            )
    if welcome.burned < confirmed.get(ours, 0):
        theirs = set()  # the server is an older copy: it discards what it holds
    for entry in held:
        if entry.program == ours and entry.bundle_id.hex() not in theirs:
            store.discard(entry.bundle_id)
    for entry in store.ready(program=ours):
        if entry.owner != server and entry.bundle_id.hex() in theirs:
            # The server has got another name since. Bundles are bound to the old one, and would count for ever.
            store.discard(entry.bundle_id)
    alive = {bundle_id.hex() for bundle_id in store.alive(map(bytes.fromhex, theirs))}
    session.send(channel, Agree(tuple(sorted(theirs - alive)), confirmed.get(ours, 0)))
    return Agreement(program, welcome.most, welcome.security, welcome.check, extension)


def _read_program(raw: bytes) -> Program:
    try:
        data = json.loads(raw)
        data.pop(HASH, None)
    except (ValueError, AttributeError, TypeError, RecursionError):
        raise ConnectionLostError(
            "the server's program cannot be read", where="hello", remedy="Use the same version of sphynx on both sides."
        ) from None
    return program_from_json(data, where="the server's program")
