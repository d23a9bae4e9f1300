"""Compiles a network region by region: each repeated block by itself, for training.

Blocks of one structure and shape share one compiled graph, across cells and across networks of a process: a network
twice as deep takes no longer to compile, and a second seed takes nothing. What is lost is fusion across blocks, whose
borders are few beside the operations within.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from sphynx.network.cell import Cell
from sphynx.network.inside_norm import InsideNorm
from sphynx.network.micro import MicroCell
from sphynx.network.reference import BasicBlock, WideBlock
from sphynx.network.stream import StreamBlock

BLOCKS = (Cell, MicroCell, BasicBlock, WideBlock, StreamBlock, InsideNorm)
# Each structure and shape is one graph; torch's own limit (8) would be met by two networks with a teacher.
GRAPHS_LIMIT = 256


def compile_regions(network: nn.Module, backend: str | Callable[..., Any] = "inductor") -> None:
    torch._dynamo.config.recompile_limit = max(torch._dynamo.config.recompile_limit, GRAPHS_LIMIT)
    blocks: list[nn.Module] = [module for module in network.modules() if isinstance(module, BLOCKS)]
    for block in blocks or [network]:
        block.compile(fullgraph=True, dynamic=False, backend=backend)


@contextmanager
def as_written(network: nn.Module) -> Iterator[None]:
    """Compiled blocks run operation by operation here: other modes and shapes are not worth a graph of their own."""
    if all(module._compiled_call_impl is None for module in network.modules()):
        yield  # without loading the compiler
        return
    with torch.compiler.set_stance("force_eager"):
        yield
