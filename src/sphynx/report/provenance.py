"""Say where a result was made: on this machine by this source, or elsewhere. Every table and chart says which.

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
    """Compare a result's environment.json with `run.environment.describe_environment()` of now."""
    if not environment:
        return Provenance("unknown machine and version", False)
    parts = (_other_machine(environment, present), _other_versions([environment], present))
    return Provenance("; ".join(filter(None, parts)), False) if any(parts) else Provenance(HERE, True)


def joined(several: Sequence[Provenance]) -> Provenance:
    """The provenance of a mean over several runs."""
    texts = dict.fromkeys(p.text for p in several)
    return Provenance(" / ".join(texts), all(p.here for p in several))


def made_elsewhere(environments: Iterable[Mapping[str, Any]], present: Mapping[str, Any]) -> str:
    """A sentence for a caption, or nothing where all was made here. Each machine is named once, with its versions."""
    by_machine: dict[str, dict[str, Mapping[str, Any]]] = {}
    for environment in environments:
        if not (made := provenance(environment, present)).here:
            machine = _other_machine(environment, present) if environment else made.text
            by_machine.setdefault(machine, {})[str(environment.get("source_sha256"))] = environment
    texts = (
        "; ".join(filter(None, (machine, _other_versions(list(found.values()), present))))
        for machine, found in by_machine.items()
    )
    return f" Not made here by this version: {' / '.join(texts)}." if by_machine else ""


def _other_machine(environment: Mapping[str, Any], present: Mapping[str, Any]) -> str:
    if _same_machine(environment, present):
        return ""
    return f"other machine ({environment.get('device') or environment.get('platform') or 'unknown'})"


def _other_versions(environments: Sequence[Mapping[str, Any]], present: Mapping[str, Any]) -> str:
    others = [e for e in environments if e and e.get("source_sha256") != present.get("source_sha256")]
    sources: dict[str, list[str]] = {}
    for environment in others:
        version, source = (str(environment.get(key) or "unknown") for key in ("sphynx", "source_sha256"))
        sources.setdefault(version, []).append(source[:8])
    return "; ".join(f"other version ({version}, source {', '.join(found)})" for version, found in sources.items())


def _same_machine(environment: Mapping[str, Any], present: Mapping[str, Any]) -> bool:
    named = [key for key in ("platform", "device", "cores") if environment.get(key) is not None]
    return bool(named) and all(_fact(environment, key) == _fact(present, key) for key in named)


def _fact(environment: Mapping[str, Any], key: str) -> str:
    """How many threads torch was given belongs to a run, not to its machine."""
    return str(environment.get(key)).partition(",")[0]
