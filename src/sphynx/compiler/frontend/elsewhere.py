"""Networks from elsewhere, read so that they can be compiled: an ONNX or a .pt2 file, a torch module."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from math import isfinite
from pathlib import Path

from torch import nn

from sphynx.compiler.frontend.export.module import load_module, read_module
from sphynx.compiler.frontend.onnx.feed import Feed
from sphynx.compiler.frontend.onnx.file import load_graph
from sphynx.compiler.frontend.operators.network import OperatorNetwork
from sphynx.compiler.frontend.readable import Judge, Readable, onnx_judge, torch_judge
from sphynx.compiler.settings import AS_USUAL, CompileSettings
from sphynx.errors import InputError
from sphynx.space.tally import Shape


def read_onnx(path: Path, settings: CompileSettings = AS_USUAL) -> Readable:
    """Read a file. Of the settings `input_shape`, `inputs`, `mean`, `std` and `approximate` count: `mean` is subtracted
    from pixel / 255, which is then divided by `std`; 0 and 1 unless given."""
    graph, feed = load_graph(path, settings.input_shape, settings.inputs, settings.heads)
    for note in feed.notes:
        settings.warn(f"{path}: {note}")
    network = OperatorNetwork(graph, approximate=settings.approximate)
    judge = partial(onnx_judge, path, feed, [end.name for end in graph.ends])
    return _read_operators(network, settings, judge, f"onnx {path.name}", feed)


def read_exported(path: Path, settings: CompileSettings = AS_USUAL) -> Readable:
    """A file of torch.export.save, as an ONNX file is read."""
    module, image = load_module(path)
    network = read_module(
        module, image, where=str(path), name=path.stem, approximate=settings.approximate, heads=settings.heads
    )
    return _read_operators(network, settings, partial(torch_judge, module, outputs=settings.heads), f"pt2 {path.name}")


def read_torch(module: nn.Module, image: Shape, settings: CompileSettings = AS_USUAL) -> Readable:
    """Any module from images [n, channels, height, width] to arrays [n, ...]."""
    network = read_module(module, image, approximate=settings.approximate, heads=settings.heads)
    judge = partial(torch_judge, module, outputs=settings.heads)
    return _read_operators(network, settings, judge, f"torch {type(module).__name__}")


def _read_operators(
    network: OperatorNetwork,
    settings: CompileSettings,
    judge: Callable[[], Judge | None],
    made_from: str,
    feed: Feed | None = None,
) -> Readable:
    mean, std = (0.0 if settings.mean is None else settings.mean), (1.0 if settings.std is None else settings.std)
    channels = network.image.channels
    means, deviations = per_channel(mean, channels, "mean"), per_channel(std, channels, "std")
    if min(deviations) <= 0:
        raise InputError(
            "a standard deviation is not positive", where="`std`", remedy="Give what the network was trained with."
        )
    read = Readable(network.trace, means, deviations, network.name, judge=judge, made_from=made_from)
    if feed is None:
        return read
    return replace(read, input_name=feed.input, input_dims=() if feed.is_channels_last else feed.dims)


def per_channel(given: Sequence[float] | float, channels: int, parameter: str) -> tuple[float, ...]:
    values = tuple(given) if isinstance(given, Sequence) else (float(given),)
    if len(values) not in (1, channels) or not all(map(isfinite, values)):
        raise InputError(
            f"{','.join(map(str, values)) or 'nothing'} is not one number per channel ({channels})",
            where=f"`{parameter}`",
            remedy="Give one number, or one per channel with commas between them: 0.5,0.5,0.5.",
        )
    return values if len(values) == channels else values * channels
