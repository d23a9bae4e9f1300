"""Which bundles of a folder may still be used when a process opens it: those that were made with the same weights and
the same security, unless the folder was restored from a copy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from sphynx.errors import InputError
from sphynx.protocol.channel import WIRE_VERSION
from sphynx.service.home import home_of, is_other_file, why_moved
from sphynx.service.ledger import Ledger
from sphynx.service.waterline import Waterline, new_id


def bind_bundles(
    ledger: Ledger, folder: Path, weights_hash: str, check_plan: str, tell: Callable[[str], None], *, is_alone: bool
) -> None:
    """Bind them to the version, the weights, and to how clients are checked: what was made otherwise is discarded."""
    version = f"wire-{WIRE_VERSION}"
    served, bound = f"{version} {weights_hash} {check_plan}".rstrip(), ledger.bound()
    if bound != served and not is_alone:
        raise InputError(
            "another process uses these bundles with different weights, another security or another version",
            where=str(folder),
            remedy="End it first, or give this one a folder of its own: `state=DIR`.",
        )
    made_by, _, bound_to = (bound or "").partition(" ")
    if not check_plan and bound_to.startswith(f"{weights_hash} "):
        raise InputError(
            "these weights were protected from malicious clients; served without that, any client could read them",
            where=str(folder),
            remedy="Give `security=malicious-client` again or, if this is intended, another folder: `state=DIR`.",
        )
    lost = len(ledger.ready()) if bound != served else 0
    ledger.bind(served)
    if lost:
        what = "weights or another security" if made_by == version else "version of sphynx"
        tell(f"{lost} bundles were discarded: they were made with another {what}")


def settle_in(
    ledger: Ledger, file: Path, discard: Callable[[bytes], None], tell: Callable[[str], None], *, trust: bool
) -> None:
    """Bundles of a restored folder may have been used since it was copied: both parties may have been restored."""
    before, now = ledger.home(), home_of(file)
    why = why_moved(before, now) if before else None
    note, burns = ledger.level()
    is_copy = is_other_file(before, now)  # its note is the original's
    name = new_id() if is_copy or not note else note
    waterline = Waterline(name, file)
    noted = waterline.level()
    if noted is not None and burns < noted:
        why, trust, burns = "an older state of the folder was put back", False, noted
    elif note and noted is None and not is_copy:
        why = why or "the note that would reveal an older state of the folder is gone (logging out or a new container)"
    ready = ledger.ready()
    if why and ready and not trust:
        tell(f"{len(ready)} bundles were discarded: {why}")
        for entry in ready:
            discard(entry.bundle_id)
    ledger.watch(name if waterline.is_kept else "", burns, waterline)
    if before != now:
        ledger.move_in(now)  # last: a crash before it discards again
