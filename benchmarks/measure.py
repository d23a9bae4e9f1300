"""Tools that the benchmarks share: this machine's ceilings, what a step computes and moves, seconds per step, one
table.

A step's floor is what it would take if nothing but arithmetic, or nothing but memory, counted:

    floor = max(FLOPs of the step / FLOP/s of a large matrix product,
                bytes that the step's operators read and write / bytes/s of a large copy)

Both counts are taken from the operators that an eager step really runs, forward and backward: FLOPs are 2 x the
multiply-accumulates of convolutions and matrix products; bytes are each tensor argument and result once, so an unfused
chain counts each time. Both ceilings are measured in the same run (bf16 products on a GPU, fp32 on a CPU).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from sphynx.cli.output import print_json, print_table
from sphynx.data.images import Data, ImageSet, make_data
from sphynx.run.environment import describe_environment

aten = torch.ops.aten


@dataclass(frozen=True)
class Effort:
    """How long to measure: windows of `window` steps, until `seconds` have passed or an epoch is through."""

    warmup: int
    window: int
    seconds: float


GPU_EFFORT = Effort(warmup=5, window=24, seconds=2.0)
QUICK_EFFORT = Effort(warmup=1, window=2, seconds=0.0)


def wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def seconds_per_step(step: Callable[[], object], device: torch.device, effort: Effort, epoch_steps: int) -> float:
    """The mean over whole windows; the device is waited for between windows only."""
    for _ in range(effort.warmup):
        step()
    wait(device)
    started, done = time.perf_counter(), 0
    while True:
        for _ in range(effort.window):
            step()
        done += effort.window
        wait(device)
        elapsed = time.perf_counter() - started
        if elapsed >= effort.seconds or done >= epoch_steps:
            return elapsed / done


@dataclass(frozen=True)
class Ceilings:
    flops_per_second: float
    bytes_per_second: float


def measure_ceilings(device: torch.device) -> Ceilings:
    """Measure what this machine really reaches; a copy counts its reads and its writes."""
    cuda = device.type == "cuda"
    side, elements = (8192, 1 << 29) if cuda else (1024, 1 << 25)
    a = torch.randn(side, side, device=device, dtype=torch.bfloat16 if cuda else torch.float32)
    source = torch.zeros(elements, device=device, dtype=torch.uint8)
    target = torch.empty_like(source)
    effort = Effort(warmup=2, window=10, seconds=0.0)
    product = seconds_per_step(lambda: a @ a, device, effort, 1)
    copy = seconds_per_step(lambda: target.copy_(source), device, effort, 1)
    return Ceilings(2 * side**3 / product, 2 * elements / copy)


class WorkCounter(TorchDispatchMode):
    """Sees every operator that runs within it, backward passes included."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # the same
        self.flops, self.bytes = 0, 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        operator = func.overloadpacket
        if operator is aten.convolution:
            self.flops += 2 * result.numel() * args[1][0].numel()
        elif operator is aten.convolution_backward:
            gradients = sum(args[-1][:2])  # of the input, of the weight: each as many products as the forward pass
            self.flops += 2 * gradients * args[0].numel() * args[2][0].numel()
        elif operator in (aten.mm, aten.addmm, aten.bmm):
            self.flops += 2 * result.numel() * args[-2].shape[-1]
        if not func.is_view:
            tensors = [t for t in tree_leaves((args, kwargs, result)) if isinstance(t, Tensor)]
            self.bytes += sum(t.numel() * t.element_size() for t in tensors)
        return result


@dataclass(frozen=True)
class Work:
    flops: float
    bytes: float

    def floor_seconds(self, ceilings: Ceilings) -> float:
        return max(self.flops / ceilings.flops_per_second, self.bytes / ceilings.bytes_per_second)


def count_work(step: Callable[[], object], steps: int = 1) -> Work:
    """Per step, after one that is not counted (it makes optimizer state). Steps that draw differ: average several."""
    step()
    counter = WorkCounter()
    with counter:
        for _ in range(steps):
            step()
    return Work(counter.flops / steps, counter.bytes / steps)


def row_of(
    what: str, how: str, batch: int, seconds: float, epoch_steps: int, work: Work, ceilings: Ceilings
) -> dict[str, Any]:
    floor = work.floor_seconds(ceilings)
    return {
        "what": what,
        "how": how,
        "batch": batch,
        "epoch_seconds": seconds * epoch_steps,
        "step_milliseconds": 1e3 * seconds,
        "epoch_steps": epoch_steps,
        "floor_flops_seconds": work.flops / ceilings.flops_per_second * epoch_steps,
        "floor_bytes_seconds": work.bytes / ceilings.bytes_per_second * epoch_steps,
        "times_floor": seconds / floor,
    }


def print_rows(rows: Sequence[dict[str, Any]], ceilings: Ceilings, device: torch.device, as_json: bool) -> None:
    environment = describe_environment(device)
    if as_json:
        print_json({"environment": environment, "ceilings": vars(ceilings), "rows": list(rows)})
        return
    print_table(
        f"Epochs on {environment['device']}",
        ["what", "how", ">batch", ">s/epoch", ">ms/step", ">floor FLOPs s", ">floor bytes s", ">times floor"],
        (
            [row["what"], row["how"], str(row["batch"])]
            + [
                f"{row[name]:.4g}"
                for name in (
                    "epoch_seconds",
                    "step_milliseconds",
                    "floor_flops_seconds",
                    "floor_bytes_seconds",
                    "times_floor",
                )
            ]
            for row in rows
        ),
        note=f"ceilings measured in this run: {ceilings.flops_per_second:.3g} FLOP/s, "
        f"{ceilings.bytes_per_second:.3g} bytes/s",
    )


def argument_parser(doc: str | None) -> argparse.ArgumentParser:
    """With the flags of every benchmark of epochs."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="auto")
    for flag, meaning in (
        ("--tensor-cores", "searches: channels last, widths of 8; on for a GPU"),
        ("--lanes", "cell searches: independent parts on streams of their own; on for a GPU"),
    ):
        parser.add_argument(flag, action=argparse.BooleanOptionalAction, help=meaning)
    parser.add_argument("--quick", action="store_true", help="tiny sizes, two steps each")
    parser.add_argument("--json", action="store_true")
    return parser


def ceilings_of(device: torch.device) -> Ceilings:
    """Measured with the convolutions' algorithms chosen by trial from then on, as training does."""
    torch.backends.cudnn.benchmark = device.type == "cuda"
    return measure_ceilings(device)


def random_data(images: int) -> Data:
    """CIFAR-100's shape; speed does not depend on what the images show."""
    generator = torch.Generator().manual_seed(0)
    pixels = torch.randint(0, 256, (images, 3, 32, 32), dtype=torch.uint8, generator=generator)
    classes = min(100, images // 4)
    everything = ImageSet(pixels, torch.arange(images) % classes, tuple(map(str, range(classes))))
    return make_data("random 3x32x32", everything, everything, where="random")
