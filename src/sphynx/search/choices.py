"""The strategies of a cell search and the candidates of a placement, by name."""

from __future__ import annotations

from typing import Literal

StrategyName = Literal["darts", "darts-unrolled", "darts-2nd", "pc-darts", "gdas", "gaea", "enas", "random"]
Method = Literal["gumbel", "gates"]  # of an allocation of ReLUs
Candidates = Literal["all", "paper"]  # of C(D, n) placements: all, or those with positions up to 2D/3
