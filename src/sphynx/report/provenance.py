"""Where a result was made: on this machine by this source, or elsewhere. Every table and chart says which.

Two machines are told apart by platform, device and cores; two programs by the hash of their Python source.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

HERE = "made here"


@dataclass(frozen=True)
class Provenance:
    text: str
    here: bool

    def __str__(self) -> str:
        return self.text


def provenance(environment: Mapping[str, Any] | None, present: Mapping[str, Any]) -> Provenance:
    """Of a result's environment.json, compared with `run.environment.describe_environment()` of now."""
    if not environment:
        return Provenance("unknown machine and version", False)
    parts = []
    if _machine(environment) != _machine(present):
        parts.append(f"other machine ({environment.get('device', 'unknown')})")
    if environment.get("source_sha256") != present.get("source_sha256"):
        version, source = environment.get("sphynx", "unknown"), environment.get("source_sha256", "unknown")
        parts.append(f"other version ({version}, source {str(source)[:8]})")
    return Provenance("; ".join(parts), False) if parts else Provenance(HERE, True)


def joined(several: Sequence[Provenance]) -> Provenance:
    """Of a mean over several runs."""
    texts = dict.fromkeys(p.text for p in several)
    return Provenance(" / ".join(texts), all(p.here for p in several))


def made_elsewhere(environments: Iterable[Mapping[str, Any]], present: Mapping[str, Any]) -> str:
    """A sentence for a caption, or nothing where all was made here."""
    texts = dict.fromkeys(str(made) for e in environments if not (made := provenance(e, present)).here)
    return f" Made elsewhere: {' / '.join(texts)}." if texts else ""


def _machine(environment: Mapping[str, Any]) -> tuple[object, ...]:
    """How many threads torch was given belongs to a run, not to its machine."""
    device = str(environment.get("device")).partition(",")[0]
    return environment.get("platform"), device, environment.get("cores")
