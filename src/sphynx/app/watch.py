"""Watch one call of the client on the wire: phases, layers, seconds, bytes each way, and the masked picture.

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


@dataclass
class Seen:
    stages: dict[Section, Stage] = field(default_factory=dict)
    masked_picture: bytes = b""

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
        self._stage(section).sent_bytes += sum(map(len, parts))
        self._report_now_and_then(section)

    def received(self, section: Section, payload: bytearray) -> None:
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
