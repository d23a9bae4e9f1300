"""Time a network in the clear, on the cores that private inference has: by torch and by ONNX Runtime, fp32.

Medians of forward passes on up to two threads; of torch for the memory layout and the kernels that are fastest here, of
ONNX Runtime where it is installed, with its own fusion. Ratios are to the faster of the two. CPU seconds are of one
thread, where none waits for another: what other work on the machine does not change.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from sphynx.compiler.frontend.export.module import read_module
from sphynx.compiler.frontend.onnx.write import INPUT, write_onnx
from sphynx.errors import MissingPartError
from sphynx.network.backend import fast_convolutions
from sphynx.network.build import build_network
from sphynx.network.layout import lay_out
from sphynx.space.files import AnyDesign
from sphynx.threads import available_cores

THREADS = 2
RUNS, WARMUP_RUNS = 40, 3  # the first three are not counted
ENOUGH_SECONDS = 4.0  # a large network has fewer runs, but not fewer than this many counted ones:
FEWEST_RUNS = 8

Clock = Callable[[], float]
Forward = Callable[[], object]


@dataclass(frozen=True)
class ClearTime:
    torch_s: float
    torch_cpu_s: float
    onnxruntime_s: float | None
    onnxruntime_cpu_s: float | None

    @property
    def seconds(self) -> float:
        """Seconds of the faster of the two."""
        return self.torch_s if self.onnxruntime_s is None else min(self.torch_s, self.onnxruntime_s)

    @property
    def cpu_seconds(self) -> float:
        return self.torch_cpu_s if self.onnxruntime_cpu_s is None else min(self.torch_cpu_s, self.onnxruntime_cpu_s)


def median_time(times: Sequence[ClearTime]) -> ClearTime | None:
    """The median of each time by itself."""
    if not times:
        return None
    wall_s = [time.onnxruntime_s for time in times if time.onnxruntime_s is not None]
    cpu_s = [time.onnxruntime_cpu_s for time in times if time.onnxruntime_cpu_s is not None]
    return ClearTime(
        statistics.median(time.torch_s for time in times),
        statistics.median(time.torch_cpu_s for time in times),
        statistics.median(wall_s) if wall_s else None,
        statistics.median(cpu_s) if cpu_s else None,
    )


class InTheClear:
    """A network with any weights: they do not change its time. Written for ONNX Runtime once."""

    def __init__(self, design: AnyDesign) -> None:
        self._network = build_network(design).float().eval()
        self._image = design.image
        self._onnx = _as_onnx(self._network, design)

    def time(self, batch: int) -> ClearTime:
        threads = min(THREADS, available_cores())
        images = torch.randn(batch, *self._image)
        before = torch.get_num_threads()
        try:
            wall = self._by_torch(images, threads, time.perf_counter)
            cpu = self._by_torch(images, 1, time.process_time)
        finally:
            torch.set_num_threads(before)
        if self._onnx is None:
            return ClearTime(wall, cpu, None, None)
        pixels = images.numpy()
        return ClearTime(
            wall,
            cpu,
            _by_onnxruntime(self._onnx, pixels, threads, time.perf_counter),
            _by_onnxruntime(self._onnx, pixels, 1, time.process_time),
        )

    def _by_torch(self, images: torch.Tensor, threads: int, clock: Clock) -> float:
        torch.set_num_threads(threads)
        medians = []
        for layout in (torch.contiguous_format, torch.channels_last):
            lay_out(self._network, layout)
            x = images.to(memory_format=layout)
            for kernels in (nullcontext(), fast_convolutions(images.device)):
                with torch.inference_mode(), kernels:
                    medians.append(_median(partial(self._network, x), clock))
        return min(medians)


def _as_onnx(network: torch.nn.Module, design: AnyDesign) -> bytes | None:
    """None where ONNX or its runtime is not installed."""
    try:
        import onnxruntime  # noqa: F401
    except ImportError:
        return None
    channels = design.image.channels
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "network.onnx"
        try:
            write_onnx(read_module(network, design.image).graph, file, (0.0,) * channels, (1.0,) * channels)
        except MissingPartError:
            return None
        return file.read_bytes()


def _by_onnxruntime(model: bytes, images: NDArray[np.float32], threads: int, clock: Clock) -> float:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return _median(lambda: session.run(None, {INPUT: images}), clock)


def _median(forward: Forward, clock: Clock) -> float:
    seconds: list[float] = []
    for run in range(RUNS):
        if run >= WARMUP_RUNS + FEWEST_RUNS and sum(seconds) > ENOUGH_SECONDS:
            break
        started = clock()
        forward()
        seconds.append(clock() - started)
    return statistics.median(seconds[WARMUP_RUNS:])
