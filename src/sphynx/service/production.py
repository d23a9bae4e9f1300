"""The server's side of preparing bundles: grants a request or refuses it, makes bundles and puts them into the store.

What is prepared ahead gives way to everything else that this process does (`yielding.py`).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from sphynx.errors import RefusedError, ShareUsedUpError
from sphynx.program.extensions import allows
from sphynx.program.security import MODES
from sphynx.protocol.linear_plan import plan_group
from sphynx.service import session
from sphynx.service.ledger import Entry
from sphynx.service.served import Service
from sphynx.service.session import Go, Prepare, Stored
from sphynx.service.store import Written
from sphynx.service.visit import Visit
from sphynx.service.yielding import GivesWay, on_one_core


def prepare(visit: Visit, request: Prepare) -> None:
    """Make the bundles that a client asks for, group by group, or refuse with the reason."""
    service, limits, program = visit.service, visit.service.admission.limits, visit.program_hash
    _check_mode(service, request)
    _check_share(visit, request)
    owner, backend, batch = visit.peer.identity, request.backend, request.batch
    service.store.check_room(request.count, owner=owner, program=program, backend=backend, batch=batch)
    nonce = session.new_nonce()
    session.send(visit.channel, Go(nonce, limits.bundle_lifetime_s))
    for group in session.groups(request.count, request.group):
        ids = [session.bundle_id(program, service.check_plan, request.nonce, nonce, number) for number in group]
        expires_at = time.time() + limits.bundle_lifetime_s
        entries = [Entry(bundle_id, owner, program, backend, batch, expires_at) for bundle_id in ids]
        with _place_for(visit, request), visit.stream.ending_within(len(ids) * limits.work_s):
            visit.check_client()  # with its place: others of its connections may have failed while it waited
            written, took_s = _make(visit, entries, request)
        each_bytes = visit.channel.record.total().bytes // len(ids)
        each_s = took_s / len(ids)
        service.store.make_ready(written, owner=owner, offline_seconds=each_s, offline_bytes=each_bytes)
        try:
            visit.standing.check()
        except RefusedError:
            service.store.discard(*ids)
            raise
        session.send(visit.channel, Stored(tuple(bundle_id.hex() for bundle_id in ids)))
        visit.count("bundles_prepared_total", len(ids), backend=backend)
        visit.observe("offline_seconds", took_s, backend=backend)
        seconds = round(each_s, 4)
        visit.log("prepared", *ids, backend=backend, batch=batch, seconds=seconds, ahead=request.ahead)


def _check_mode(service: Service, request: Prepare) -> None:
    """Before anything is computed: what an honest client gets wrong is told, and is not a strike."""
    if request.check != service.check_plan:
        raise RefusedError(
            f"this server's security is {service.security}, and the client prepares for another",
            where="prepare",
            remedy="Connect again: the server says how clients are checked.",
        )
    if refusal := MODES[service.security, request.backend]:
        raise RefusedError(
            f"this server's security is {service.security}: {refusal}",
            where="prepare",
            remedy="Choose the backend gc, or auto.",
        )
    if not allows(service.ot, request.made):
        raise RefusedError(
            f"OTs are {service.ot} at this server, and the client prepares with others",
            where="prepare",
            remedy=f"Set `ot` to auto or {service.ot}.",
        )


def _check_share(visit: Visit, request: Prepare) -> None:
    """Refuse more than a client may have."""
    service, limits = visit.service, visit.service.admission.limits
    if request.batch > limits.batch:
        raise RefusedError(
            f"a batch has at most {limits.batch} images", where="prepare", remedy="Prepare a smaller batch."
        )
    if service.drains:
        raise RefusedError(
            "this server is being drained: it prepares no more bundles",
            where="prepare",
            remedy="Ask another server, or this one when it is back; bundles that are ready serve on.",
        )
    if len(visit.ready()) + request.count > limits.bundles_per_client:
        raise ShareUsedUpError(
            f"a client may keep {limits.bundles_per_client} bundles ready, this one has {len(visit.ready())}",
            where="prepare",
            remedy="Use some first, or ask for fewer; the server's `bundles_per_client` sets the limit.",
        )
    most_together = max(1, plan_group(service.model.offline).images // request.batch)
    if request.group > most_together:
        raise RefusedError(
            f"at most {most_together} bundles of {request.batch} images are prepared as a group",
            where="prepare",
            remedy="Use the same version of sphynx on both sides.",
        )
    begun_images = service.store.ledger.begun_images(visit.peer.identity)
    if begun_images + request.count * request.batch > limits.images_per_hour:
        raise ShareUsedUpError(
            f"a client may prepare for {limits.images_per_hour} images per hour, "
            f"this one has prepared for {begun_images}",
            where="prepare",
            remedy="Ask for fewer, or try again later; the server's `images_per_hour` sets the limit.",
        )


def _make(visit: Visit, entries: list[Entry], request: Prepare) -> tuple[list[Written], float]:
    limits, ids = visit.service.admission.limits, [entry.bundle_id for entry in entries]
    store, owner = visit.service.store, visit.peer.identity
    store.reserve(*entries, most=limits.bundles_per_client, hourly=limits.images_per_hour)
    visit.channel.take_record()
    start_s = time.monotonic()
    try:
        write = partial(store.write, owner=owner, group=len(ids))
        made = visit.party.prepare_each(ids, request.backend, request.batch, request.made)
        written = list(map(write, made))
    except BaseException as error:
        visit.standing.note(error)
        store.discard(*ids)
        raise
    return written, time.monotonic() - start_s


@contextmanager
def _place_for(visit: Visit, request: Prepare) -> Iterator[None]:
    service, admission = visit.service, visit.service.admission
    if not request.ahead:
        with visit.waiting_for("offline", admission.offline), service.urgent.running():
            yield
        return
    with visit.waiting_for("ahead", admission.ahead), on_one_core():
        visit.channel.observer = GivesWay(service.urgent)
        try:
            yield
        finally:
            visit.channel.observer = None
