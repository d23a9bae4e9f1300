"""The offline phase as a pipeline: what goes up, both parties' work, what goes down, of different pieces at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sphynx.program.cost.link import Link
from sphynx.program.cost.rates import Rates


class Parts(NamedTuple):
    """Seconds of work before something is sent up, of sending it, of work that needs it, of sending down."""

    ask: float
    up: float
    answer: float
    down: float

    def cut(self, pieces: int) -> Parts:
        return Parts(*(part / pieces for part in self))


@dataclass(frozen=True)
class Step:
    """Offline, of one layer: both parties' work, and what goes up and down."""

    work: float
    messages: int
    up_bytes: float
    down_bytes: float
    pieces: int = 1  # of which one is worked on while another is on its way
    asked_work: float | None = None  # of it what the client does before it sends; None: half

    def parts(self, rates: Rates, link: Link, bundles: int) -> Parts:
        more = self.messages / bundles * rates.message_s + (self.up_bytes + self.down_bytes) * rates.byte_s
        ask = (self.work / 2 if self.asked_work is None else self.asked_work) + more / 2
        answer = self.work + more - ask
        cores = rates.offline_cores
        return Parts(ask / cores, link.transfer_s(self.up_bytes), answer / cores, link.transfer_s(self.down_bytes))

    def seconds(self, rates: Rates, link: Link, bundles: int, *, overlaps: bool) -> float:
        ask, up, answer, down = self.parts(rates, link, bundles)
        return max(ask + answer, up, down) if overlaps else ask + up + answer + down


def pipelined(layers: Iterable[tuple[Step, ...]], rates: Rates, link: Link, bundles: int) -> list[float]:
    """Seconds by which each layer prolongs the phase. The parties begin a kind of step when the one before is done."""
    by_layer = list(layers)
    found = [0.0] * len(by_layer)
    for of_kind in (slice(0, 1), slice(1, 2), slice(2, None)):
        pieces = [
            (number, step.parts(rates, link, bundles).cut(step.pieces))
            for number, steps in enumerate(by_layer)
            for step in steps[of_kind]
            for _ in range(step.pieces)
        ]
        for (number, _), seconds in zip(pieces, _flow([parts for _, parts in pieces]), strict=True):
            found[number] += seconds
    return found


def _flow(pieces: Sequence[Parts]) -> Iterator[float]:
    """Seconds by which each piece prolongs the whole. The client asks for later ones while the server has none to
    answer."""
    came: list[float] = []  # when each was sent up
    up = work = down = 0.0  # when what was to be sent up, worked and sent down so far is done
    for number, piece in enumerate(pieces):
        while len(came) < len(pieces) and (len(came) <= number or came[number] > work):
            asked = pieces[len(came)]
            work += asked.ask
            up = max(up, work) + asked.up
            came.append(up)
        before = down
        work = max(work, came[number]) + piece.answer
        down = max(down, work) + piece.down
        yield down - before
