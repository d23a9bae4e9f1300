"""Independent parts of a supernet side by side on a GPU: each part in a lane, a CUDA stream of its own.

The kernels of a narrow supernet are too small to fill a GPU, and a step captured on one stream is as long as all of
them in a row. Captured over several streams, a CUDA graph keeps only the dependencies that are there. Backward follows
by itself: autograd runs an operation's gradient on the stream of its forward pass and orders the streams.

    with side_by_side(device):                        # around a whole step: forward, backward, update
        first, second = start(part, x), start(other, x)
        y = first.join() + second.join()

Outside of `side_by_side`, and without a GPU, `start` computes at once. The allocator must not hand memory on that
another stream still reads: what crosses is marked as used by both (`record_stream`), and stays during a capture.

Only supernets run so: on an H200 their captured steps equalled eager ones bit for bit, which `bench_search.py
--check-graphs` compares. Those of placement's finished networks did not, and why was not found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import cycle

import torch
from torch import Tensor

LANES = 8  # as many as the driver runs at once unless it is told otherwise (CUDA_DEVICE_MAX_CONNECTIONS)


class _Lanes:
    def __init__(self, device: torch.device) -> None:
        self._streams = [torch.cuda.Stream(device) for _ in range(LANES)]
        self._turn = cycle(self._streams)
        self.used: set[torch.cuda.Stream] = set()

    def next(self) -> torch.cuda.Stream:
        lane = next(self._turn)
        self.used.add(lane)
        return lane


_lanes: _Lanes | None = None


class Part:
    """A part that was started; `join` makes what comes after wait for it."""

    def __init__(self, result: Tensor, lane: torch.cuda.Stream | None = None) -> None:
        self._result, self._lane = result, lane

    def join(self) -> Tensor:
        if self._lane is not None:
            current = torch.cuda.current_stream(self._result.device)
            current.wait_stream(self._lane)
            self._result.record_stream(current)
        return self._result


def start(operation: Callable[..., Tensor], *inputs: Tensor | None) -> Part:
    """Every tensor of this step that `operation` reads must be among its inputs; weights need not."""
    if _lanes is None:
        return Part(operation(*inputs))
    lane = _lanes.next()
    lane.wait_stream(torch.cuda.current_stream(lane.device))
    for tensor in inputs:
        if tensor is not None:
            tensor.record_stream(lane)
    with torch.cuda.stream(lane):
        return Part(operation(*inputs), lane)


@contextmanager
def side_by_side(device: torch.device) -> Iterator[None]:
    global _lanes
    before, _lanes = _lanes, _Lanes(device)
    lanes = _lanes
    try:
        yield
    finally:
        _lanes = before
        # A capture ends only when all of its streams have come back, and must not wait for one that never took part.
        for stream in lanes.used:
            torch.cuda.current_stream(device).wait_stream(stream)
