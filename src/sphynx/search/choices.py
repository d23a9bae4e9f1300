"""The strategies and forms of a cell search and of a placement, by name."""

from __future__ import annotations

from typing import Literal

StrategyName = Literal["darts", "darts-unrolled", "darts-2nd", "pc-darts", "gdas", "gaea", "enas", "random"]
Method = Literal["gumbel", "gates"]  # of an allocation of ReLUs
Candidates = Literal["all", "paper"]  # of C(D, n) placements: all, or those with positions up to 2D/3
SupernetForm = Literal["text", "released"]  # as the paper's text describes it, or as its code builds it
Estimator = Literal["paper", "released", "losses"]  # how a placement's gradient is taken
Rivals = Literal["uniform", "likely"]  # how the released form draws the candidates that it compares with
