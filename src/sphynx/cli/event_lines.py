"""The log of `sphynx serve` for a person: one readable line per event, where the log is a terminal.

A log that goes to a file or a pipe stays one JSON object per line.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import Any, TextIO

from sphynx.units import bytes_text, seconds_text

Event = Mapping[str, Any]
QUIET = ("time", "event")
WITHIN = {
    "prepared": "prepared in {seconds} ({backend}): {sent} sent, {received} received",
    "inferred": "answered in {seconds} ({backend}): {sent} sent, {received} received, {rounds} rounds",
}


class EventLines:
    """A text stream that takes JSON lines and writes them readably; what is no event passes as it is."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return self._stream.write("".join(f"{describe_line(line)}\n" for line in text.splitlines()))

    def flush(self) -> None:
        self._stream.flush()


def describe_line(line: str) -> str:
    """Put one line of the log in words."""
    try:
        event = json.loads(line)
        at = time.strftime("%H:%M:%S", time.localtime(event["time"]))
        return f"{at}  {_describe(event)}"
    except (ValueError, TypeError, KeyError):
        return line


def _describe(event: Event) -> str:
    known = DESCRIBED.get(event["event"])
    if known is not None:
        return known(event)
    rest = ", ".join(f"{name} {value}" for name, value in event.items() if name not in QUIET)
    return f"{event['event'].replace('_', ' ')}: {rest}" if rest else str(event["event"]).replace("_", " ")


def _describe_serving(event: Event) -> str:
    place = f"{event['host']}:{event['port']}"
    metrics = f"; metrics on port {event['metrics_port']}" if "metrics_port" in event else ""
    return f"Serving {event['name']} on {place}; Ctrl-C stops ({event['bundles']} bundles ready{metrics})"


def _describe_work(event: Event) -> str:
    words = WITHIN[event["event"]].format(
        seconds=seconds_text(event["seconds"]),
        backend=event["backend"],
        sent=bytes_text(event["sent_bytes"]),
        received=bytes_text(event["received_bytes"]),
        rounds=event["rounds"],
    )
    return f"{event['client']}: {words}"


def _describe_refusal(event: Event) -> str:
    who = event.get("client") or event.get("address") or "somebody"
    return f"{who}: {event['event'].replace('_', ' ')}: {event['why']}"


DESCRIBED: Mapping[str, Callable[[Event], str]] = {
    "serving": _describe_serving,
    "prepared": _describe_work,
    "inferred": _describe_work,
    "connected": lambda event: f"{event['client']}: connected from {event['address']}",
    "disconnected": lambda event: f"{event['client']}: left ({event['result']})",
    "refused": _describe_refusal,
    "connection_lost": _describe_refusal,
    "deriving": lambda event: str(event["what"]),
    "stopping": lambda event: f"Stopping; {event['connections']} connections may finish",
    "stopped": lambda event: "Stopped" + (f"; {event['aborted']} connections were cut" if event["aborted"] else ""),
}
