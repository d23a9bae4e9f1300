"""Prints a bill of materials (CycloneDX 1.6, JSON) of an installed distribution: `make sbom`.

python .ci/sbom.py sphynx-inference serve > out/sbom.json      the distribution, then extras that count as well

All packages of the dependency closure that are installed in this environment, with version, licence and who needs whom.
No time and no random serial number: equal environments have equal bills.
"""

from __future__ import annotations

import json
import sys
from importlib import metadata
from typing import Any

from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def needs(found: metadata.Distribution, extras: set[str]) -> dict[str, set[str]]:
    """The installed packages that it needs here, and the extras that it asks them for."""
    wanted: dict[str, set[str]] = {}
    for line in found.requires or []:
        requirement = Requirement(line)
        environments = [dict(default_environment()) | {"extra": extra} for extra in ("", *sorted(extras))]
        if requirement.marker is None or any(requirement.marker.evaluate(one) for one in environments):
            wanted.setdefault(canonicalize_name(requirement.name), set()).update(requirement.extras)
    return {name: asked for name, asked in sorted(wanted.items()) if _installed(name)}


def _installed(name: str) -> bool:
    try:
        metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return False
    return True


def component(found: metadata.Distribution) -> dict[str, Any]:
    name = canonicalize_name(found.metadata["Name"])
    made: dict[str, Any] = {"type": "library", "bom-ref": reference(name), "name": name, "version": found.version}
    made["purl"] = reference(name)
    expression = found.metadata.get("License-Expression")
    classifiers = [line for line in found.metadata.get_all("Classifier") or [] if line.startswith("License :: OSI")]
    if expression:
        made["licenses"] = [{"expression": expression}]
    elif classifiers:
        made["licenses"] = [{"license": {"name": line.split(" :: ")[-1]}} for line in classifiers]
    return made


def reference(name: str) -> str:
    return f"pkg:pypi/{name}@{metadata.version(name)}"


def bill(name: str, extras: set[str]) -> dict[str, Any]:
    seen: dict[str, set[str]] = {}
    graph: dict[str, set[str]] = {}
    waiting = [(canonicalize_name(name), extras)]
    while waiting:
        at, asked = waiting.pop()
        if at in seen and asked <= seen[at]:
            continue
        seen[at] = seen.get(at, set()) | asked
        wanted = needs(metadata.distribution(at), seen[at])
        graph[at] = set(wanted)
        waiting += wanted.items()
    root = canonicalize_name(name)
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": component(metadata.distribution(root)) | {"type": "application"}},
        "components": [component(metadata.distribution(part)) for part in sorted(graph) if part != root],
        "dependencies": [
            {"ref": reference(part), "dependsOn": [reference(other) for other in sorted(graph[part])]}
            for part in sorted(graph)
        ],
    }


if __name__ == "__main__":
    print(json.dumps(bill(sys.argv[1], set(sys.argv[2:])), indent=2))
