"""Networks that can be compiled, by where they come from: trained by Sphynx, a torch module, an ONNX or a .pt2 file.

Reading one also walks it in outline, so that a layer that cannot run privately is named before data are opened, which
may take long.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import isfinite
from pathlib import Path

import numpy as np
import torch
from torch import nn

from sphynx.compiler.calibration import calibrate
from sphynx.compiler.compile import CALIBRATION_IMAGES, Walk, compile_walk
from sphynx.compiler.frontend.export.module import load_module, read_module
from sphynx.compiler.frontend.onnx.feed import Feed
from sphynx.compiler.frontend.onnx.file import load_graph
from sphynx.compiler.frontend.operators.network import OperatorNetwork
from sphynx.compiler.frontend.torch_network import trace
from sphynx.compiler.originals import BATCH, Judge, onnx_judge, torch_judge
from sphynx.compiler.quantise import Quantised
from sphynx.compiler.settings import AS_USUAL, CompileSettings
from sphynx.data.class_order import numbers_among
from sphynx.data.images import DataFace, Statistics
from sphynx.data.samples import Given, Samples, pixels_for, samples_of
from sphynx.errors import InputError
from sphynx.network.build import as_designed
from sphynx.network.fit import require_fit
from sphynx.network.trained import TrainedNetwork
from sphynx.program.ir import Graph
from sphynx.program.judgement import Original, hash_of
from sphynx.program.outputs import joined
from sphynx.run.update import Update
from sphynx.space.files import AnyDesign
from sphynx.space.tally import Shape

OURSELVES = "Sphynx, in float"
ASKED_AT_ONCE = 50  # inputs, of the float network: between them progress is told


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

    def compile(self, data: Given, settings: CompileSettings = AS_USUAL) -> tuple[Quantised, Original]:
        """Compile; return also what the float network answers to the calibration images."""
        if self.design is not None and isinstance(data, DataFace):
            require_fit(self.design, data, trained=True)
        chosen = self.labelled(samples_of(data, CALIBRATION_IMAGES), settings)
        image = self.outline.image
        if self.design is not None:
            pixels_for(chosen.images, image, self.mean, self.std)  # else it is refused: it was trained on pictures
        given = calibrate(chosen, image, self.mean, self.std, settings, name=self.input_name, dims=self.input_dims)
        made = compile_walk(
            self.walk,
            given.mean,
            given.std,
            given.integers,
            settings,
            source=given.source,
            class_names=chosen.class_names,
            name=self.name,
            made_from=self.made_from,
        )
        labels, images_hash = chosen.labels, hash_of(given.integers)
        judge = self.judge()  # not before the network was walked: that finds out what is too large to be computed
        if judge is None:
            answers = joined(made.program.answers(made.float_logits))
            return made, Original(answers, labels, images_hash, OURSELVES)
        found = []
        for first in range(0, len(given.integers), ASKED_AT_ONCE):
            settings.progress(Update(f"asking {judge.by}", first, len(given.integers)))
            found.append(judge.answer(given.integers[first : first + ASKED_AT_ONCE], given.mean, given.std))
        return made, Original(np.concatenate(found), labels, images_hash, judge.by, judge.resolution)

    def labelled(self, samples: Samples, settings: CompileSettings) -> Samples:
        """The samples with the classes in the network's order, named as the settings say; without labels, and with a
        warning, where these cannot be the network's classes."""
        outputs = next((output.dims[0] for output in self.outline.outputs if len(output.dims) == 1), 0)
        names = settings.class_names or samples.class_names
        if settings.class_names and len(names) != outputs:
            raise InputError(
                f"there are {len(names)} class names for {outputs} outputs", where="`class_names`", remedy="Name each."
            )
        if samples.labels is None:
            return replace(samples, class_names=tuple(names) or self.class_names)
        known = len(names) or int(samples.labels.max()) + 1
        if not outputs:
            settings.warn(
                f"{samples.name}: the network's outputs are not scores of classes: labels are left out, and agreement "
                "with the float network is reported instead of accuracy"
            )
            return samples.without_labels()
        if known > outputs or (names and len(names) != outputs):
            settings.warn(
                f"{samples.name}: its {known} classes are not the network's {outputs} outputs: its labels are left "
                "out, and agreement with the float network is reported instead of accuracy"
            )
            return samples.without_labels()
        order = numbers_among(tuple(names), self.class_names, where=samples.name)
        if order is None:
            return replace(samples, class_names=tuple(names))
        return replace(samples, labels=np.array(order)[samples.labels], class_names=self.class_names)


def read_trained(trained: TrainedNetwork) -> Readable:
    """A run's program is called as its design, a model's as the model."""
    network = as_designed(trained.module)
    name = trained.name if trained.is_model else network.design.name
    return Readable(
        partial(trace, network),
        trained.mean,
        trained.std,
        name,
        network.design,
        judge=partial(torch_judge, network, BATCH),
        class_names=trained.class_names,
    )


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
