"""A network that was read and can be compiled, wherever it comes from: what the readers beside this module make.

Reading one also walks it in outline, so that a layer that cannot run privately is named before data are opened, which
may take long.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import torch

from sphynx.compiler.fusion.fuse import Fused
from sphynx.compiler.originals import Judge
from sphynx.data.images import Statistics
from sphynx.program.ir import Graph
from sphynx.space.files import AnyDesign


class Walk(Protocol):
    """Makes a network's fused graph, or its outline, with these cuts."""

    def __call__(
        self,
        mean: tuple[float, ...],
        std: tuple[float, ...],
        *,
        cuts: Container[str] = ...,
        outline: bool = ...,
    ) -> Fused: ...


@dataclass(frozen=True, eq=False)
class Readable:
    """A network that was read and can be compiled with data like those it knows."""

    walk: Walk
    mean: Statistics
    std: Statistics
    name: str
    design: AnyDesign | None = None  # of a network of ours: the data must fit it
    judge: Callable[[], Judge | None] = lambda: None  # the float network; None where our own evaluation of it must do
    class_names: tuple[str, ...] = ()  # where it has its own
    made_from: str = ""  # the kind and the name of the file or module
    input_name: str = ""  # as the network calls it
    input_dims: tuple[int, ...] = ()  # as it sees it, where these are not channels, height, width

    def __post_init__(self) -> None:
        assert self.outline.steps

    @cached_property
    def outline(self) -> Graph:
        """Its steps, as far as shapes tell them; reading it names what cannot be compiled."""
        with torch.no_grad():
            return self.walk(self.mean, self.std, outline=True).graph
