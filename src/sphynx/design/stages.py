"""Settings of a way of several stages, such as training.epochs, for both families of networks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sphynx.errors import InputError


def split_by_stage(names: Sequence[str], settings: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The settings of each stage, from those of a whole way, whose names are STAGE.NAME. Raises InputError."""
    stages: dict[str, dict[str, Any]] = {stage: {} for stage in names}
    for name, value in settings.items():
        stage, dot, key = name.partition(".")
        if not dot or stage not in stages:
            raise InputError(
                f"{name!r} does not name a stage",
                where="`settings`",
                remedy=f"Write it as STAGE.NAME, such as training.epochs; the stages are {', '.join(stages)}.",
            )
        stages[stage][key] = value
    return stages
