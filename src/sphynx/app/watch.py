"""Watch one call of the client on the wire: phases, layers, seconds, bytes each way, messages, and the masked picture.

A `Watch` is the observer of the client's channel. The masked picture is the payload of the one message of the online
input section, copied as it is sent.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from sphynx.protocol.channel import Section, Span
from sphynx.protocol.inference import MASKED_PICTURE

TELL_SECONDS = 0.1  # at least, between two reports from within one section

MOST_MESSAGES = 512
MOST_SENT_BYTES = 1 << 18
START_BYTES = 256

Tell = Callable[[dict[str, Any]], None]


@dataclass
class Stage:
    """One layer of one phase."""

    section: Section
    seconds: float = 0.0
    sent_bytes: int = 0
    received_bytes: int = 0

    def to_json(self) -> dict[str, Any]:
        return {
            "phase": self.section.phase,
            "layer": self.section.layer,
            "seconds": self.seconds,
            "sent_bytes": self.sent_bytes,
            "received_bytes": self.received_bytes,
        }


@dataclass(frozen=True)
class Message:
    """One message of the online phase, as it left or came."""

    section: Section
    is_sent: bool
    at_s: float  # on a clock of its own
    size: int
    start: bytes  # its first bytes


@dataclass
class Seen:
    stages: dict[Section, Stage] = field(default_factory=dict)
    masked_picture: bytes = b""
    messages: list[Message] = field(default_factory=list)  # the first MOST_MESSAGES of the online phase
    sent: bytearray = field(default_factory=bytearray)  # what the server received online, the first MOST_SENT_BYTES

    def keep(self, section: Section, payload: Sequence[memoryview | bytearray], *, is_sent: bool) -> None:
        """Keep a message of the online phase."""
        if section.phase != "online":
            return
        size, start = sum(map(len, payload)), b""
        for part in payload:
            start += bytes(part[: START_BYTES - len(start)])
            if is_sent:
                self.sent += part[: max(0, MOST_SENT_BYTES - len(self.sent))]
        if len(self.messages) < MOST_MESSAGES:
            self.messages.append(Message(section, is_sent, time.monotonic(), size, start))

    def of_phase(self, phase: str) -> list[Stage]:
        return [stage for section, stage in self.stages.items() if section.phase == phase]


class Watch:
    def __init__(self) -> None:
        self._seen = Seen()
        self._tell: Tell | None = None
        self._told_s = 0.0

    def start(self, tell: Tell) -> None:
        """Forgets what was seen; `tell` hears of progress until `take`."""
        self._seen, self._tell = Seen(), tell

    def take(self) -> Seen:
        seen, self._seen, self._tell = self._seen, Seen(), None
        return seen

    def entered(self, section: Section) -> None:
        self._report(section)

    def left(self, span: Span) -> None:
        self._stage(span.section).seconds += span.end_s - span.start_s
        self._report(span.section)

    def sent(self, section: Section, parts: Sequence[memoryview]) -> None:
        if section == MASKED_PICTURE:
            self._seen.masked_picture = b"".join(parts)
        self._seen.keep(section, parts, is_sent=True)
        self._stage(section).sent_bytes += sum(map(len, parts))
        self._report_now_and_then(section)

    def received(self, section: Section, payload: bytearray) -> None:
        self._seen.keep(section, [payload], is_sent=False)
        self._stage(section).received_bytes += len(payload)
        self._report_now_and_then(section)

    def _stage(self, section: Section) -> Stage:
        return self._seen.stages.setdefault(section, Stage(section))

    def _report_now_and_then(self, section: Section) -> None:
        if time.monotonic() - self._told_s > TELL_SECONDS:
            self._report(section)

    def _report(self, section: Section) -> None:
        if self._tell is None:
            return
        self._told_s = time.monotonic()
        stages = self._seen.of_phase(section.phase)
        self._tell(
            {
                "phase": section.phase,
                "layer": section.layer,
                "layers_done": sum(stage.seconds > 0 for stage in stages),
                "sent_bytes": sum(stage.sent_bytes for stage in stages),
                "received_bytes": sum(stage.received_bytes for stage in stages),
            }
        )
