#!/usr/bin/env python3
"""Seconds per training epoch of a Sphynx network, beside ResNet18 in the same run and beside the machine's floor.

    PYTHONPATH=src python benchmarks/bench_train.py                       # 25.6K ReLUs, CIFAR-100's shape, GPU
    PYTHONPATH=src python benchmarks/bench_train.py --images 256 --batch 32 --repeats 1 --channels 2 --resnet-width 8

The images are random (speed does not depend on their content), of CIFAR-100's shape and number unless --data is given.
The floor is what the machine would need if nothing but arithmetic, or nothing but memory, counted:

    floor = max(FLOPs of the step / FLOP/s of a large bf16 matrix product,
                bytes that the step's operators read and write / bytes/s of a large copy)

FLOPs are 2 x multiply-accumulates of the forward pass, times 3 for forward and backward. Bytes are counted from the
operators that an eager step of the network as designed runs (each tensor argument and result once), so an unfused chain
counts each time.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from sphynx.data.batches import Augmentation, Batches
from sphynx.data.images import Data, ImageSet, make_data
from sphynx.data.open import open_data
from sphynx.network.builder import SphynxNetwork
from sphynx.network.observe import observe
from sphynx.network.reference import ResNet18
from sphynx.network.widen import widened
from sphynx.run.environment import describe_environment
from sphynx.space.design import Design, default_reduce_positions
from sphynx.space.published import SPHYNX
from sphynx.space.reference import ResNet18Design
from sphynx.space.tally import Shape
from sphynx.train.objective import Objective
from sphynx.train.processes import pick_device
from sphynx.train.recipe import Recipe, load_recipe
from sphynx.train.step import Step, uses_channels_last, width_multiple


def synchronise(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def seconds_of(work: Callable[[], object], device: torch.device, repeats: int) -> float:
    """Median of `repeats`, after one run that is not counted."""
    work()
    times = []
    for _ in range(repeats):
        synchronise(device)
        started = time.perf_counter()
        work()
        synchronise(device)
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def measure_ceilings(device: torch.device) -> dict[str, float]:
    """What this machine really reaches: bf16 (fp32 on a CPU) matrix products, and a copy's reads plus writes."""
    cuda = device.type == "cuda"
    side, elements = (8192, 1 << 29) if cuda else (1024, 1 << 25)
    a = torch.randn(side, side, device=device, dtype=torch.bfloat16 if cuda else torch.float32)
    source = torch.zeros(elements, device=device, dtype=torch.uint8)
    target = torch.empty_like(source)
    flops = 2 * side**3 / seconds_of(lambda: a @ a, device, 10)
    copied = 2 * elements / seconds_of(lambda: target.copy_(source), device, 10)
    return {"flops_per_second": flops, "bytes_per_second": copied}


class _ByteCounter(TorchDispatchMode):  # type: ignore[no-untyped-call]
    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.bytes = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        if not func.is_view:
            tensors = [t for t in tree_leaves((args, kwargs, result)) if isinstance(t, Tensor)]
            self.bytes += sum(t.numel() * t.element_size() for t in tensors)
        return result


def step_bytes(network: nn.Module, recipe: Recipe, x: Tensor, y: Tensor) -> int:
    counter = _ByteCounter()
    step = Step(Objective(network, recipe), recipe, x.device, eager=True)
    step(x, y)
    with counter:
        step(x, y)
    return counter.bytes


def bench(
    name: str, build: Callable[[], nn.Module], data: Data, recipe: Recipe, device: torch.device, repeats: int,
    ceilings: Mapping[str, float],
) -> dict[str, Any]:  # fmt: skip
    torch.manual_seed(0)
    network = as_trained(build().to(device), recipe, device)
    batches = Batches(
        data.train, recipe.batch_size, device=device, augmentation=Augmentation(crop=True, flip=True),
        mean=data.mean, std=data.std,
    )  # fmt: skip
    x, y = next(iter(batches))
    narrow = build().to(device)
    flops = 3 * 2 * observe(narrow, Shape(*data.train.shape)).macs * len(batches) * batches.batch_size
    moved = step_bytes(narrow, recipe, x, y) * len(batches)
    step = Step(Objective(network, recipe), recipe, device)

    def epoch() -> None:
        for x, y in batches:
            step(x, y)

    seconds = seconds_of(epoch, device, repeats)
    floor_flops, floor_bytes = flops / ceilings["flops_per_second"], moved / ceilings["bytes_per_second"]
    return {
        "network": name,
        "batch": batches.batch_size,
        "seconds_per_epoch": seconds,
        "ms_per_step": 1e3 * seconds / len(batches),
        "images_per_second": len(batches) * batches.batch_size / seconds,
        "floor_flops_seconds": floor_flops,
        "floor_bytes_seconds": floor_bytes,
        "times_floor": seconds / max(floor_flops, floor_bytes),
        "parameters": sum(p.numel() for p in network.parameters()),
    }


def as_trained(network: nn.Module, recipe: Recipe, device: torch.device) -> nn.Module:
    """In the widths and the memory format that the training loop uses on this device."""
    if isinstance(network, SphynxNetwork):
        network = widened(network, width_multiple(recipe, device))
    if uses_channels_last(recipe, device):
        network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return network.train()


def random_data(images: int) -> Data:
    generator = torch.Generator().manual_seed(0)
    pixels = torch.randint(0, 256, (images, 3, 32, 32), dtype=torch.uint8, generator=generator)
    classes = min(100, images)
    everything = ImageSet(pixels, torch.arange(images) % classes, tuple(map(str, range(classes))))
    return make_data("random 3x32x32", everything, everything, where="random")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="", help="a data set instead of random images")
    parser.add_argument("--images", type=int, default=50_000)
    parser.add_argument("--batch", type=int, nargs="+", default=[96, 512])
    parser.add_argument("--channels", type=int, default=5)
    parser.add_argument("--depth", type=int, default=5)
    parser.add_argument("--conv-stack", default="paper")
    parser.add_argument("--resnet-width", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--acceleration", nargs="+", default=["auto"], help="auto, eager, graph, compile")
    parser.add_argument("--precision", default="auto")
    parser.add_argument("--memory-format", default="auto", help="auto, contiguous, channels_last")
    parser.add_argument("--json", action="store_true")
    a = parser.parse_args()
    device = pick_device(a.device)
    data = open_data(a.data) if a.data else random_data(a.images)
    image = Shape(*data.train.shape)
    design = Design(
        SPHYNX, a.channels, a.depth, default_reduce_positions(a.depth), image, data.classes, conv_stack=a.conv_stack
    )
    relus = image.height * image.width * a.channels * a.depth
    networks: dict[str, Callable[[], nn.Module]] = {
        f"sphynx {relus / 1000:.1f}K": lambda: SphynxNetwork(design, auxiliary=True, drop_path=True),
        f"resnet18 w{a.resnet_width}": lambda: ResNet18(ResNet18Design(a.resnet_width, image, data.classes, "small")),
    }
    ceilings = measure_ceilings(device)
    rows = []
    for acceleration in a.acceleration:
        for batch in a.batch:
            for name, build in networks.items():
                recipe = load_recipe(
                    "paper-cifar100",
                    {"batch_size": batch, "acceleration": acceleration, "precision": a.precision,
                     "memory_format": a.memory_format},
                )  # fmt: skip
                row = bench(name, build, data, recipe, device, a.repeats, ceilings)
                rows.append({"acceleration": acceleration, **row})
                if not a.json:
                    print_row(rows)
    if a.json:
        print(json.dumps({"environment": describe_environment(device), "ceilings": ceilings, "rows": rows}, indent=2))
    else:
        print("ceilings: " + ", ".join(f"{name} {value:.3e}" for name, value in ceilings.items()))


def print_row(rows: list[dict[str, Any]]) -> None:
    if len(rows) == 1:
        print("  ".join(name.rjust(19) for name in rows[0]))
    cells = (f"{value:.4g}" if isinstance(value, float) else str(value) for value in rows[-1].values())
    print("  ".join(cell.rjust(19) for cell in cells), flush=True)


if __name__ == "__main__":
    main()
