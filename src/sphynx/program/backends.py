"""The protocols that compute ReLUs privately: gc, garbled circuits, and gmw. A program is priced and run by either."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

from sphynx.errors import InputError

Backend = Literal["gc", "gmw"]
BackendChoice = Literal["auto", "gc", "gmw"]  # auto: the faster one
BACKENDS: tuple[Backend, ...] = get_args(Backend)
BACKEND_CHOICES: tuple[BackendChoice, ...] = get_args(BackendChoice)


def check_backend(name: str, choices: Sequence[str], *, where: str) -> None:
    """Refuse an unknown ReLU backend; `where` is the argument that it was given as."""
    if name not in choices:
        raise InputError(
            f"{name!r} is not a ReLU backend",
            where=where,
            remedy=f"Choose {', '.join(choices[:-1])} or {choices[-1]}.",
        )
