"""Look at all that a server needs, without starting it: keys, program, folders, addresses. Nothing is changed.

Every part is looked at, also after others were found wrong, so that a deployment is corrected at once.
"""

from __future__ import annotations

import errno
import os
import shutil
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from sphynx.errors import InputError, SphynxError
from sphynx.program.convolve import Array
from sphynx.program.ir import Program
from sphynx.program.naming import short_hash
from sphynx.program.revealing import revealed
from sphynx.protocol.verify.plan import BUNDLE_IMAGES, plan_security
from sphynx.service.credentials import check_server_keys
from sphynx.service.file_system import check_local
from sphynx.service.fresh_keys import FreshKeys
from sphynx.service.listening import why_not_bound
from sphynx.service.monitor import read_token
from sphynx.service.settings import ServerSettings
from sphynx.units import bytes_text

DAY_S = 86_400.0


@dataclass(frozen=True)
class Finding:
    """One part of a deployment: what is there, or what is wrong and what helps."""

    part: str
    is_well: bool
    what: str
    remedy: str = ""


def check_deployment(
    programs: Sequence[Callable[[], tuple[Program, Mapping[str, Array]]]], settings: ServerSettings
) -> tuple[Finding, ...]:
    """Look at each part; `programs` read a program and its weights each."""
    parts: list[tuple[str, Callable[[], str]]] = [
        *(("program", partial(_program, load, settings)) for load in programs),
        ("keys", lambda: _keys(Path(settings.keys))),
        ("bundles", lambda: _folder(settings.state_folder, settings.limits.quota_bytes)),
        ("strikes", lambda: _file(settings.strikes_file)),
        ("address", lambda: _address(settings.address, "`listen`")),
    ]
    if settings.metrics_address is not None:
        parts.append(("metrics", lambda: _metrics(settings)))
    return tuple(_look(part, look) for part, look in parts)


def _look(part: str, look: Callable[[], str]) -> Finding:
    try:
        return Finding(part, True, look())
    except SphynxError as error:
        return Finding(part, False, str(error), error.remedy)
    except OSError as error:
        return Finding(part, False, f"{error.filename or part}: {error.strerror or error}", "Check its permissions.")


def _program(load: Callable[[], tuple[Program, Mapping[str, Array]]], settings: ServerSettings) -> str:
    loaded, weights = load()
    program = revealed(loaded, settings.reveal, settings.margin)
    plan_security(settings.security, program, weights, images=max(BUNDLE_IMAGES, settings.limits.batch))
    mode = f"security {settings.security}, reveals {settings.reveal}"
    return f"{program.name or 'program'} {short_hash(program.content_hash)}, {mode}"


def _keys(folder: Path) -> str:
    check_server_keys(folder)
    fresh = FreshKeys(folder)
    days = (fresh.expires_at() - time.time()) / DAY_S
    soon = "; its list of revoked keys expires within two weeks" if fresh.list_ends_soon() else ""
    return f"certificate for {days:.0f} more days{soon}"


def _folder(folder: Path, quota_bytes: int) -> str:
    there = _nearest(folder)
    check_local(there)
    _require_writable(there, "state=DIR")
    free_bytes = shutil.disk_usage(there).free
    less = ", less than the quota" if free_bytes < quota_bytes else ""
    return f"{bytes_text(free_bytes)} free{less}"


def _file(path: Path) -> str:
    if not path.exists():
        _require_writable(_nearest(path.parent), "strikes=FILE")
        return "none so far"
    _require_writable(path, "strikes=FILE")
    return f"{sum(1 for _ in path.open())} lines"


def _metrics(settings: ServerSettings) -> str:
    if settings.metrics_token:
        read_token(Path(settings.metrics_token))
    assert settings.metrics_address is not None
    return _address(settings.metrics_address, "`metrics`")


def _address(address: tuple[str, int], where: str) -> str:
    host, port = address
    text = f"{host}:{port}"
    try:
        socket.create_server(address, family=socket.AF_INET6 if ":" in host else socket.AF_INET).close()
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            return f"{text}, which another process is using now"
        raise InputError(
            f"cannot listen at {text} ({why_not_bound(error)})",
            where=where,
            remedy="Choose an address of this machine, and a port that this user may have.",
        ) from None
    return f"{text} is free"


def _nearest(folder: Path) -> Path:
    """Return the folder, or the one above it in which it would be made."""
    return next(one for one in (folder, *folder.absolute().parents) if one.exists())


def _require_writable(path: Path, parameter: str) -> None:
    if not os.access(path, os.W_OK):
        raise InputError("this user may not write there", where=str(path), remedy=f"Choose another: `{parameter}`.")
