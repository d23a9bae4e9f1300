"""A network that was read and can be compiled, wherever it comes from: how it is walked, and who answers for it.

Reading one also walks it in outline, so that a layer that cannot run privately is named before data are opened, which
may take long. Float networks are judges: each answers integer images one way or the other, normalised as it wants them.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import nn

from sphynx.compiler.frontend.export.module import evaluating, name_outputs
from sphynx.compiler.frontend.onnx.feed import Feed
from sphynx.compiler.frontend.onnx.file import runnable
from sphynx.compiler.fusion.fuse import Fused
from sphynx.compiler.side_by_side import Map, limit_openmp, side_by_side
from sphynx.data.images import Statistics
from sphynx.program.convolve import Array
from sphynx.program.ir import Graph
from sphynx.program.judgement import SINGLE_PRECISION
from sphynx.space.files import AnyDesign

_BATCH, _BATCH_NUMBERS = 50, 1 << 20  # of networks of ours: images, and the numbers in them
_MAPS = 64  # as large as all images of a batch: about what a call takes


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


@dataclass(frozen=True, eq=False)
class Judge:
    by: str
    answer: Callable[[Array, Statistics, Statistics], Array]  # images, mean, std -> [n, classes]
    resolution: float  # of the numbers that it computes in, relative to 1


def torch_judge(module: nn.Module, outputs: Sequence[str] = (), *, is_ours: bool = False) -> Judge:
    """Networks of ours answer batches side by side. Others are called with one image after the other, in the caller's
    thread: they may know a batch of one only, and may keep things from one call to the next, in hooks as well."""

    def answer(images: Array, mean: Statistics, std: Statistics) -> Array:
        kept = next(module.parameters(), torch.zeros(()))
        batch = max(1, min(_BATCH, _BATCH_NUMBERS // images[0].size)) if is_ours else 1
        calls: AbstractContextManager[Map] = nullcontext(_one_by_one)
        if is_ours:
            taken = kept.element_size() * batch * images[0].size * _MAPS
            calls = side_by_side(taken, begin=_limit_torch)

        @torch.no_grad()  # of each thread's own
        def answers(first: int) -> Array:
            x = torch.from_numpy(_normalise(images[first : first + batch], mean, std)).to(kept.device, kept.dtype)
            return _joined(module(x), outputs, len(x))

        with evaluating(module), calls as mapped:
            return np.concatenate(list(mapped(answers, range(0, len(images), batch))))

    kinds = {parameter.dtype for parameter in module.parameters() if parameter.is_floating_point()}
    return Judge("torch", answer, max((torch.finfo(kind).eps for kind in kinds), default=SINGLE_PRECISION))


def _one_by_one(call: Callable[..., Any], /, *items: Iterable[Any]) -> Iterator[Any]:
    return map(call, *items)


def _limit_torch() -> None:
    """Let torch start no threads for this one. It first takes over the process's number, which stays as it is."""
    torch.get_num_threads()
    limit_openmp()


def _joined(answer: Any, outputs: Sequence[str], count: int) -> Array:
    """Lay these outputs of a module, by default all, out one behind the other."""
    named = name_outputs(answer)
    parts = [named[name].reshape(count, -1).double().cpu() for name in outputs or named]
    found: Array = torch.cat(parts, 1).numpy()
    return found


def onnx_judge(path: Path, feed: Feed, outputs: Sequence[str] = ()) -> Judge | None:
    """Judge by ONNX Runtime's answers for these outputs, one behind the other. Return None where it is not installed,
    too old for the file, or cannot run it.

    The network has been walked before: nothing in it is too large.
    """
    try:
        import onnxruntime
    except ImportError:
        return None
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # what it cannot run is judged without it: its errors would only alarm
    # What it fuses may be another network: it takes a pad of zeros into the max pool behind it, which pads by -inf.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = onnxruntime.InferenceSession(runnable(path, outputs), options, providers=["CPUExecutionProvider"])
        return _judge_by(session, feed, outputs)
    except Exception:  # of kinds that cannot be named where it is not installed
        return None


def _judge_by(session: Any, feed: Feed, outputs: Sequence[str]) -> Judge:
    """Fail at once where the first run would: a dilated convolution that is padded by auto_pad loads all the same."""
    source = next(value for value in session.get_inputs() if value.name == feed.input)
    kinds: dict[str, type[np.floating[Any]]] = {"tensor(double)": np.float64, "tensor(float16)": np.float16}
    kind = kinds.get(source.type, np.float32)
    session.run(None, {**feed.constants, source.name: np.zeros((1, *feed.dims), kind)})

    def answer(images: Array, mean: Statistics, std: Statistics) -> Array:
        found = []
        for image in _normalise(images, mean, std).astype(kind):
            given = {**feed.constants, source.name: feed.viewed(image)[None]}
            answers = session.run(list(outputs) or None, given)
            found.append(np.concatenate([np.asarray(answer).reshape(-1) for answer in answers]))
        return np.stack(found)

    return Judge("ONNX Runtime", answer, float(np.finfo(kind).eps))


def _normalise(images: Array, mean: Statistics, std: Statistics) -> Array:
    means, deviations = (np.asarray(each).reshape(-1, 1, 1) for each in (mean, std))
    found: Array = (images / 255 - means) / deviations
    return found
