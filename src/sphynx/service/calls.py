"""The bytes between worker processes and the one that owns the ledger: a call, then its answer, both plain JSON.

    frame    u32 length (little-endian), then that many bytes
    call     {"call": name, parameter: value, ...}
    answer   {"result": value} or {"error": [kind, what, where, remedy]}

`CALLS` names every call, with the kinds of its parameters and of its result. Workers parse what strangers send, so the
owner trusts none of them: a length is checked before anything is read for it, and a value before anything is done with
it. No value can be more than a number, a short text or an identifier, or a bounded list of those.
"""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sphynx import errors
from sphynx.errors import SphynxError
from sphynx.service.plain_values import (
    BACKEND,
    COUNT,
    ENTRIES,
    FLAG,
    ID,
    IDS,
    METRIC_VALUES,
    NAME,
    NAMES,
    NOTHING,
    SECONDS,
    SIZE,
    Kind,
    optional,
)

MAX_CALL_BYTES = 1 << 16
MAX_ANSWER_BYTES = 1 << 24
AGAIN = "Try again later."
PLACES = ("connections", "offline", "online", "ahead")
_LENGTH = struct.Struct("<I")


@dataclass(frozen=True)
class Call:
    parameters: Mapping[str, Kind]
    result: Kind


def read_frame(sock: socket.socket, most_bytes: int) -> bytes | None:
    """Return the next frame, or None at the end of the stream. Raise ValueError if it claims to be longer."""
    header = _read_exactly(sock, _LENGTH.size)
    if header is None:
        return None
    (size_bytes,) = _LENGTH.unpack(header)
    if size_bytes > most_bytes:
        raise ValueError(f"a frame of {size_bytes} bytes: at most {most_bytes} are read")
    return _read_exactly(sock, size_bytes)


def send_frame(sock: socket.socket, content: bytes) -> None:
    sock.sendall(_LENGTH.pack(len(content)) + content)


def write_call(name: str, arguments: Mapping[str, object]) -> bytes:
    kinds = CALLS[name].parameters
    return _dumps({"call": name, **{key: kinds[key].write(value) for key, value in arguments.items()}})


def read_call(frame: bytes) -> tuple[str, dict[str, Any]]:
    """Return the name and the arguments. Raise ValueError for whatever is not a call as `CALLS` describes it."""
    table = _loads(frame)
    name = table.pop("call", None)
    if not isinstance(name, str) or name not in CALLS:
        raise ValueError("there is no such call")
    kinds = CALLS[name].parameters
    if table.keys() != kinds.keys():
        raise ValueError(f"{name} takes other arguments")
    return name, {key: kind.read(table[key]) for key, kind in kinds.items()}


def write_result(name: str, value: object) -> bytes:
    return _dumps({"result": CALLS[name].result.write(value)})


def write_error(error: SphynxError) -> bytes:
    return _dumps({"error": [type(error).__name__, error.what, error.where, error.remedy]})


def read_answer(name: str, frame: bytes) -> Any:
    """Return the result, or raise the error that the owner answered with."""
    table = _loads(frame)
    if "error" not in table:
        return CALLS[name].result.read(table["result"])
    kind, what, where, remedy = table["error"]
    found = getattr(errors, kind, SphynxError)
    raise (found if issubclass(found, SphynxError) else SphynxError)(what, where=where, remedy=remedy)


def _dumps(table: Mapping[str, object]) -> bytes:
    return json.dumps(table, allow_nan=False, separators=(",", ":")).encode()


def _loads(frame: bytes) -> dict[str, Any]:
    try:
        table = json.loads(frame)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(table, dict):
        raise ValueError("it is not a JSON object")
    return table


def _read_exactly(sock: socket.socket, size_bytes: int) -> bytes | None:
    read = bytearray(size_bytes)
    view = memoryview(read)
    while view:
        count = sock.recv_into(view)
        if not count:
            return None
        view = view[count:]
    return bytes(read)


_OWNED = {"owner": NAME, "program": NAME}

CALLS = {
    "hello": Call({"holder": NAME}, NOTHING),
    "metrics": Call({"values": METRIC_VALUES}, NOTHING),
    # Of the ledger, what a store of a worker needs; what opens a folder is the owner's alone.
    "ledger.reserve": Call({"entries": ENTRIES, "most": optional(COUNT), "hourly": optional(COUNT)}, NOTHING),
    "ledger.make_ready": Call(
        {"bundle_ids": IDS, "size_bytes": COUNT, "offline_seconds": SECONDS, "offline_bytes": COUNT, "keep": FLAG},
        NOTHING,
    ),
    "ledger.burn": Call({"bundle_id": ID, **_OWNED, "hourly": optional(COUNT), "number": optional(COUNT)}, COUNT),
    "ledger.discard": Call({"bundle_ids": IDS}, NOTHING),
    "ledger.ready": Call(_OWNED, ENTRIES),
    "ledger.expired": Call({}, ENTRIES),
    "ledger.begun_images": Call({"owner": NAME}, COUNT),
    "ledger.burned": Call(_OWNED, COUNT),
    "ledger.fall_in": Call({**_OWNED, "burned": COUNT}, ENTRIES),
    "ledger.usual_bytes": Call({"program": NAME, "backend": BACKEND, "batch": SIZE}, COUNT),
    "ledger.kept_bytes": Call({"owner": NAME}, COUNT),
    "ledger.state": Call({"bundle_id": ID}, optional(NAME)),
    "ledger.preparing": Call({}, NAMES),
    "ledger.give_up": Call({"holders": NAMES}, IDS),
    **{f"{places}.take": Call({"holder": NAME, "wait_s": SECONDS}, NOTHING) for places in PLACES},
    **{f"{places}.try_take": Call({"holder": NAME}, FLAG) for places in PLACES},
    **{f"{places}.give_back": Call({"holder": NAME}, NOTHING) for places in PLACES},
    **{f"{places}.taken": Call({}, COUNT) for places in PLACES},
}
