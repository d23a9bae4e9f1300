"""Several processes (torchrun, one per GPU), or the only one. Rank 0 writes, prints and evaluates."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel

Shared = TypeVar("Shared")


@dataclass(frozen=True)
class Processes:
    device: torch.device
    rank: int = 0
    world: int = 1

    @property
    def leads(self) -> bool:
        return self.rank == 0

    def wrap(self, module: nn.Module) -> nn.Module:
        """Averages gradients over the processes. Batch norm's statistics stay each process's own; rank 0's are kept."""
        if self.world == 1:
            return module
        ids = [self.device.index] if self.device.type == "cuda" else None
        return DistributedDataParallel(module, device_ids=ids, broadcast_buffers=False)

    def total(self, values: torch.Tensor) -> torch.Tensor:
        """The sum over the processes."""
        if self.world > 1:
            distributed.all_reduce(values)
        return values

    def wait(self) -> None:
        if self.world > 1:
            distributed.barrier()

    def shared(self, value: Shared | None) -> Shared:
        """Give the leading process's value to every process; the others pass None."""
        held = [value]
        if self.world > 1:
            distributed.broadcast_object_list(held, src=0, device=self.device)
        assert held[0] is not None
        return held[0]

    def any(self, flag: bool) -> bool:
        return bool(self.total(torch.tensor(int(flag), device=self.device)) > 0) if self.world > 1 else flag


def leads_here() -> bool:
    """Return whether this process speaks for the group that torchrun started, or for itself."""
    return os.environ.get("RANK", "0") == "0"


@contextmanager
def join_processes(device: torch.device) -> Iterator[Processes]:
    """Joins the group that torchrun started (RANK, WORLD_SIZE, LOCAL_RANK), if it did."""
    chosen = device
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if world == 1:
        yield Processes(chosen)
        return
    if chosen.type == "cuda":
        chosen = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
        torch.cuda.set_device(chosen)
    distributed.init_process_group("nccl" if chosen.type == "cuda" else "gloo")
    try:
        yield Processes(chosen, distributed.get_rank(), world)
    finally:
        distributed.destroy_process_group()
