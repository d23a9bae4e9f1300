"""The protocols that compute ReLUs privately: gc, garbled circuits, and gmw. A program is priced and run by either."""

from __future__ import annotations

from typing import Literal, get_args

Backend = Literal["gc", "gmw"]
BackendChoice = Literal["auto", "gc", "gmw"]  # auto: the faster one
BACKENDS: tuple[Backend, ...] = get_args(Backend)
