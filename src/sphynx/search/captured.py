"""A step as a CUDA graph: captured once on fixed buffers, then replayed with one launch instead of thousands.

A captured step must not look at values on the host: rates are device tensors, optimisers are fused or capturable, and
what is sampled is decided before, so that each choice has its own graph. Warming up and capturing run the step for
real; what it changed (`state`: weights, statistics, optimisers) is put back, and optimiser state that only appeared
then starts from zero, as it would have.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor

from sphynx.search.supernet.lanes import side_by_side

WARMUP_STEPS = 3

Step = Callable[..., Tensor]  # of tensors; what it returns is overwritten by the next replay


class CapturedStep:
    def __init__(
        self, step: Step, inputs: Sequence[Tensor], state: Callable[[], list[Tensor]], *, lanes: bool = False
    ) -> None:
        device = inputs[0].device

        def parts() -> AbstractContextManager[None]:
            return side_by_side(device) if lanes else nullcontext()

        self._inputs = [x.clone() for x in inputs]
        before = [(tensor, tensor.detach().clone()) for tensor in state()]
        side = torch.cuda.Stream(device)
        side.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(side):
            for _ in range(WARMUP_STEPS):
                with parts():
                    step(*self._inputs)
        torch.cuda.current_stream(device).wait_stream(side)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph), parts():
            self._result = step(*self._inputs)
        known = {id(tensor) for tensor, _ in before}
        with torch.no_grad():
            for tensor, value in before:
                tensor.copy_(value)
            for tensor in state():
                if id(tensor) not in known:
                    tensor.zero_()

    def __call__(self, *inputs: Tensor) -> Tensor:
        for buffer, value in zip(self._inputs, inputs, strict=True):
            buffer.copy_(value)
        self._graph.replay()
        return self._result


class Captures:
    """Runs steps, each by its key's graph; as they are where graphs are off."""

    def __init__(self, enabled: bool, *, lanes: bool = False) -> None:
        self._enabled, self._lanes = enabled, lanes
        self._steps: dict[object, CapturedStep] = {}

    def run(self, key: object, step: Step, inputs: Sequence[Tensor], state: Callable[[], list[Tensor]]) -> Tensor:
        if not self._enabled:
            return step(*inputs)
        if key not in self._steps:
            self._steps[key] = CapturedStep(step, inputs, state, lanes=self._lanes)
        return self._steps[key](*inputs)


def optimiser_tensors(*optimisers: torch.optim.Optimizer) -> list[Tensor]:
    return [
        value
        for optimiser in optimisers
        for state in optimiser.state.values()
        for value in state.values()
        if isinstance(value, Tensor)
    ]


def use_rate(optimiser: torch.optim.Optimizer, rate: Tensor) -> None:
    """Makes the optimiser read its rate from a tensor: at the start, and again after loading its state."""
    for group in optimiser.param_groups:
        group["lr"] = rate
