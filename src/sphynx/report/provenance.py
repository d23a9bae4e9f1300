"""Where a result was made: on this machine by this source, or elsewhere. Every table and chart says which.

Two machines are told apart by platform, device and cores, as far as the result names them; two programs by the hash of
their Python source.
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
    parts = [part for part in (_other_machine(environment, present), _other_version(environment, present)) if part]
    return Provenance("; ".join(parts), False) if parts else Provenance(HERE, True)


def joined(several: Sequence[Provenance]) -> Provenance:
    """Of a mean over several runs."""
    texts = dict.fromkeys(p.text for p in several)
    return Provenance(" / ".join(texts), all(p.here for p in several))


def made_elsewhere(environments: Iterable[Mapping[str, Any]], present: Mapping[str, Any]) -> str:
    """A sentence for a caption, or nothing where all was made here. Each machine is named once, with its versions."""
    versions: dict[str, dict[str, None]] = {}
    for environment in environments:
        if not (made := provenance(environment, present)).here:
            machine = _other_machine(environment, present) if environment else made.text
            version = _other_version(environment, present) if environment else ""
            versions.setdefault(machine, {})[version] = None
    texts = ("; ".join(part for part in (machine, *found) if part) for machine, found in versions.items())
    return f" Not made here by this version: {' / '.join(texts)}." if versions else ""


def _other_machine(environment: Mapping[str, Any], present: Mapping[str, Any]) -> str:
    if _same_machine(environment, present):
        return ""
    return f"other machine ({environment.get('device') or environment.get('platform') or 'unknown'})"


def _other_version(environment: Mapping[str, Any], present: Mapping[str, Any]) -> str:
    if environment.get("source_sha256") == present.get("source_sha256"):
        return ""
    version, source = (environment.get(key) or "unknown" for key in ("sphynx", "source_sha256"))
    return f"other version ({version}, source {str(source)[:8]})"


def _same_machine(environment: Mapping[str, Any], present: Mapping[str, Any]) -> bool:
    named = [key for key in ("platform", "device", "cores") if environment.get(key) is not None]
    return bool(named) and all(_fact(environment, key) == _fact(present, key) for key in named)


def _fact(environment: Mapping[str, Any], key: str) -> str:
    """How many threads torch was given belongs to a run, not to its machine."""
    return str(environment.get(key)).partition(",")[0]
