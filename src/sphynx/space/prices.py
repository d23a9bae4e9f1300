"""Prices of private inference of a stream network, block by block: a table that the design wing can read.

`sphynx estimate DESIGN --prices FILE` makes it where the compiled core has measured a machine; a search for an
allocation reads it where there is none. Near the design that it was made for, a network with C_i channels in block i
takes about

    fixed_seconds + sum of C_i channel_seconds_i          online, or offline and online together
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sphynx.errors import InputError
from sphynx.record import Record
from sphynx.space.json_file import read_json
from sphynx.space.stream import StreamDesign

Counted = Literal["online", "total"]  # total: offline, once an inference, and online


@dataclass(frozen=True)
class Prices(Record):
    stages: str  # of the design, as it writes them
    link: str
    backend: str
    machine: str
    fixed_seconds: float
    channel_seconds: tuple[float, ...]
    counted: Counted = "online"

    def seconds(self, design: StreamDesign) -> float:
        channels = (C for stage in design.stages for C in stage.channels)
        return self.fixed_seconds + sum(C * price for C, price in zip(channels, self.channel_seconds, strict=True))

    def require_fit(self, design: StreamDesign) -> None:
        if str(design) != self.stages:
            raise InputError(
                f"the prices are for {self.stages}, the design is {design}",
                where="prices",
                remedy="Make them for this design: sphynx estimate DESIGN --prices FILE.",
            )

    def save(self, path: Path) -> None:
        path.write_text(json.dumps(self.to_json(), indent=2) + "\n")


def load_prices(path: Path) -> Prices:
    return Prices.from_json(read_json(path), where=str(path))
