"""The questions that every kind of design answers: its exact counts, from the description alone, and its file.

A design.json holds the design's fields, and in `format` which kind it is and how it is written. People write
such files, too: a key that the kind does not have is refused, and every key but `name` must be there.
"""

from __future__ import annotations

import dataclasses
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

from sphynx.errors import InputError, join_faults
from sphynx.record import Record, read_fields
from sphynx.space.json_file import read_json
from sphynx.space.tally import Account


@dataclasses.dataclass(frozen=True)
class Described(Record, ABC):
    """The base of all designs. Counts are of one image; nothing is built for them."""

    FORMAT: ClassVar[str]
    REMEDY: ClassVar[str] = "Write the file as `Described.save` does."
    FILE_DEFAULTS: ClassVar[Mapping[str, Any]] = {"name": ""}  # what a file need not say

    @property
    @abstractmethod
    def account(self) -> Account:
        """The counts of every layer, and in all."""

    @property
    def relus(self) -> int:
        return self.account.total.relus

    @property
    def parameters(self) -> int:
        return self.account.total.parameters

    @property
    def macs(self) -> int:
        """Multiply-accumulates."""
        return self.account.total.macs

    def to_json(self) -> dict[str, Any]:
        values = super().to_json()
        return {"format": self.FORMAT, "name": values.pop("name"), **values}

    @classmethod
    def from_json(cls, data: Any, where: str = "design") -> Self:
        if not isinstance(data, Mapping):
            raise InputError("it is not a JSON object", where=where, remedy=cls.REMEDY)
        if data.get("format") != cls.FORMAT:
            what = f"its format is {data.get('format')!r}; this version reads {cls.FORMAT!r}"
            raise InputError(what, where=where, remedy=cls.REMEDY)
        given = {**cls.FILE_DEFAULTS, **data}
        del given["format"]
        known = [field.name for field in dataclasses.fields(cls)]
        faults = [f"unknown key {key!r}" for key in given if key not in known]
        faults += [f"{key} is missing" for key in known if key not in given]
        try:
            if faults:
                raise ValueError(join_faults(faults))
            values = read_fields(cls, given)
        except ValueError as error:
            raise InputError(str(error), where=where, remedy=cls.REMEDY) from None
        except InputError as error:  # of a part with a format of its own
            raise InputError(error.what, where=f"{where}, {error.where}", remedy=error.remedy) from None
        try:
            return cls(**values)
        except InputError as error:
            raise InputError(error.what, where=where, remedy=error.remedy) from None

    def save(self, path: str | Path) -> None:
        """Write this design as a design.json."""
        Path(path).write_text(json.dumps(self.to_json(), indent=2) + "\n")

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a design.json, or that of a run folder."""
        file = Path(path) / "design.json" if Path(path).is_dir() else Path(path)
        return cls.from_json(read_json(file), where=str(file))
