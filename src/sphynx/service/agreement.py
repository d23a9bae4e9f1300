"""The client's side of a conversation's beginning: the server's program, and what both parties hold of its bundles.

A half without its counterpart is of no use; after a crash of either side there may be some, and they are discarded. So
are those that were made with an earlier certificate of the server.
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

from sphynx.errors import ConnectionLostError, PeerGaveUpError, SphynxError
from sphynx.program.files import HASH, HASH_DIGITS
from sphynx.program.ir import Program
from sphynx.program.parse import program_from_json
from sphynx.protocol.channel import Channel
from sphynx.service import session
from sphynx.service.session import SERVICE_VERSION, Agree, Hello, Welcome
from sphynx.service.store import Store

_log = logging.getLogger(__name__)


def agree(channel: Channel, store: Store, *, server: str, where: str, wanted: str) -> tuple[Program, int]:
    """Agree on a program with the server that has this certificate, at this place. `wanted` is the program's hash,
    its first digits, or "" for any; bundles are bound to the whole hash in any case. Also return how many bundles the
    server lets a client keep ready."""
    held, confirmed = store.ready(owner=server), store.ledger.confirmed(server)
    session.send(channel, Hello(SERVICE_VERSION, wanted if len(wanted) == HASH_DIGITS else ""))
    welcome = session.expect(channel, Welcome)
    program = _read_program(bytes(channel.receive(welcome.program_bytes)))
    if welcome.service != SERVICE_VERSION or program.content_hash != welcome.program:
        raise SphynxError(
            "the server's program does not match its hash", where=where, remedy="Ask whoever runs the server."
        )
    if not program.content_hash.startswith(wanted):
        what, remedy = session.other_program(program.content_hash)
        raise PeerGaveUpError(what, where=where, remedy=remedy)
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
            # The server has got another certificate since. Bundles are bound to the old one, and would count for ever.
            store.discard(entry.bundle_id)
    alive = {bundle_id.hex() for bundle_id in store.alive(map(bytes.fromhex, theirs))}
    session.send(channel, Agree(tuple(sorted(theirs - alive)), confirmed.get(ours, 0)))
    return program, welcome.most


def _read_program(raw: bytes) -> Program:
    try:
        data = json.loads(raw)
        data.pop(HASH, None)
    except (ValueError, AttributeError, TypeError, RecursionError):
        raise ConnectionLostError(
            "the server's program cannot be read", where="hello", remedy="Use the same version of sphynx on both sides."
        ) from None
    return program_from_json(data, where="the server's program")
