"""Placement by comparing losses: a gradient for short schedules, where Algorithm 1's own is mostly noise.

Algorithm 1 sees one network's logits at a time and never compares two losses (docs/search.md). Here the expected
held-out loss, sum_i beta_hat_i d_i, is differentiated instead. d_i is candidate i's running mean distance from the
common loss, so that losses measured at different times of training can be compared:

    gradient at beta_i = beta_hat_i (d_i - sum_j beta_hat_j d_j)

As in Algorithm 1 only the drawn network runs, and its half of the images is the one that no weights learn from.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

RATE = 0.05  # of the running means: about the last 20 draws count


class RunningLosses:
    def __init__(self, candidates: int) -> None:
        self.distances = torch.zeros(candidates)
        self.draws = torch.zeros(candidates)
        self.common = torch.zeros(())

    def record(self, chosen: int, loss: float) -> None:
        if not self.draws.any():
            self.common.fill_(loss)
        self.draws[chosen] += 1
        rate = max(RATE, 1 / float(self.draws[chosen]))  # a plain mean until there is something to forget
        self.distances[chosen] += rate * (loss - self.common - self.distances[chosen])
        self.common += RATE * (loss - self.common)

    def gradient(self, beta_hat: Tensor) -> Tensor:
        return beta_hat * (self.distances - (beta_hat * self.distances).sum())

    def state_dict(self) -> dict[str, Tensor]:
        return {"distances": self.distances, "draws": self.draws, "common": self.common}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        for name in ("distances", "draws", "common"):
            getattr(self, name).copy_(state[name])
