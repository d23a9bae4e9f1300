"""Runs Algorithm 1 over any candidate networks: the epochs, beta over time, and how well each does in the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from sphynx.network.backend import fast_convolutions
from sphynx.run.folder import RunFolder
from sphynx.run.progress import Voice
from sphynx.search.epochs import Pairs, Watch, run_epochs
from sphynx.search.placement.algorithm import PlacementSearch

COLUMNS = ("epoch", "loss", "tau", "best", "beta_hat_best")


def run_candidates(
    search: PlacementSearch,
    halves: Pairs[tuple[Tensor, ...]],
    generator: torch.Generator,
    folder: RunFolder,
    config: Mapping[str, Any],
    names: Sequence[str],
    *,
    epochs: int,
    voice: Voice,
) -> tuple[tuple[tuple[float, ...], ...], tuple[float, ...], float]:
    """beta_hat per epoch and candidate; each one's held-out accuracy with the weights it has then; minutes."""

    def finish(epoch: int, rows: list[dict[str, Any]]) -> tuple[dict[str, Any], bool]:
        del epoch, rows
        beta_hat = search.beta_hat
        best = int(beta_hat.argmax())
        return {
            "best": names[best],
            "beta_hat_best": float(beta_hat[best]),
            "tau": search.tau,
            "beta_hat": beta_hat.tolist(),
        }, False

    watch = Watch(folder, {**config, "candidates": list(names)}, str(config["stage"]), COLUMNS, voice)
    with fast_convolutions(halves.device):
        rows = run_epochs(search, halves, generator, watch, epochs=epochs, finish=finish)
        accuracies = tuple(held_out_accuracy(network, halves) for network in search.networks)
    minutes = round(sum(row["seconds"] for row in rows) / 60, 4)
    return tuple(tuple(row["beta_hat"]) for row in rows), accuracies, minutes


@torch.no_grad()
def held_out_accuracy(network: nn.Module, halves: Pairs[tuple[Tensor, ...]]) -> float:
    network.eval()
    right, count = torch.zeros((), device=halves.device), 0
    for x, y in halves.evaluation():
        right += (network(x).argmax(dim=1) == y).sum()
        count += len(y)
    network.train()
    return float(right) / max(count, 1)
