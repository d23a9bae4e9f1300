"""A trained network as exact integers, ready to run privately: `compile` makes it, `Compiled` is it.

    compiled = sphynx.compile("runs/digits")
    print(compiled.relus, compiled.check().accuracy)
    compiled.save("compiled/digits")

A compiled folder is read, estimated, asked and served without torch.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sphynx.data.source import FILE, DataSource, Split, recorded_source, save_source
from sphynx.errors import InputError
from sphynx.program.backends import BACKENDS, Backend, check_backend
from sphynx.program.by_name import compiled_folder
from sphynx.program.cost.deployment import Deployment
from sphynx.program.cost.estimate import Estimate
from sphynx.program.cost.estimate import estimate as estimate_program
from sphynx.program.cost.link import Link, parse_link
from sphynx.program.files import load_program
from sphynx.program.folder import save_compiled
from sphynx.program.interpret import interpret
from sphynx.program.ir import Program
from sphynx.program.judgement import Judgement, Original, judge, load_original, save_original
from sphynx.program.weights import load_weights
from sphynx.service.prediction import Prediction, real_logits
from sphynx.space.artifact import is_foreign
from sphynx.space.shipped import CARD, program_path

if TYPE_CHECKING:
    from torch import Tensor, nn

    from sphynx.data.images import Data, ImageSet
    from sphynx.data.streamed import StreamedData
    from sphynx.network.trained import TrainedNetwork
    from sphynx.program.check import Check
    from sphynx.program.fusion.approximate import Approximation
    from sphynx.program.quantise import Precision
    from sphynx.program.readers import Readable


@dataclass(frozen=True, eq=False)
class Compiled:
    """A program, which is public, and its weights, which are the server's secret.

    >>> compiled = sphynx.Compiled.load("compiled/digits")
    >>> compiled.relus, compiled.image
    (512, Shape(channels=1, height=8, width=8))
    >>> compiled.infer(sphynx.open_data("digits").test.images[:2].numpy()).shape
    (2, 10)
    """

    program: Program
    weights: Mapping[str, NDArray[Any]] = field(repr=False)  # secrets: no log or traceback may print them
    name: str  # the program's, or as it was asked for
    source: DataSource | None = None  # the data that it was made with
    logit_error: float | None = None  # on the calibration images, relative to the logits' spread; known when compiled
    corrections: Mapping[str, NDArray[Any]] | None = field(default=None, repr=False)  # for `save(derivable=True)`
    folder: Path | None = None  # where it was loaded from
    original: Original | None = field(default=None, repr=False)  # the float network's answers, where they were kept
    judged: Judgement | None = None  # beside them, on the calibration images; known when compiled
    approximations: tuple[Approximation, ...] = ()  # of smooth functions, layer by layer; known when compiled
    approximation_error: float = 0.0  # of the logits, by those alone, relative to their spread

    @classmethod
    def load(cls, folder_or_name: str | Path, tell: Callable[[str], None] = lambda _line: None) -> Compiled:
        """A folder that `save` made, or a model's name, whose integer weights are derived once; `tell` is told about
        that."""
        folder = compiled_folder(folder_or_name, tell)
        program = load_program(folder)
        of_model = program_path(folder_or_name).parent / CARD
        source = recorded_source(folder / FILE) or recorded_source(of_model)
        name = program.name or Path(folder_or_name).resolve().name
        original = load_original(folder)
        return cls(program, load_weights(folder, program), name, source, folder=folder, original=original)

    def save(self, folder: str | Path, *, derivable: bool = False) -> Path:
        """program.json, weights.safetensors, original.safetensors (what the float network answers to the calibration
        images), and data.json, which says where the data were.

        `derivable`, for a model that comes with Sphynx: corrections.safetensors in place of the weights, which follow
        from it and the model.
        """
        folder = Path(folder)
        save_compiled(folder, self, derivable=derivable)
        if not derivable:  # a model's card says which data it knows
            save_source(folder, self.source)
            save_original(folder, self.original)
        return folder

    @property
    def relus(self) -> int:
        return self.program.relu_count

    @property
    def comparisons(self) -> int:
        """Of max pools; each costs what a ReLU costs."""
        return self.program.comparison_count

    @property
    def image(self) -> tuple[int, int, int]:
        """Channels, height, width of the uint8 images that it reads."""
        return self.program.image

    @property
    def class_names(self) -> tuple[str, ...]:
        return self.program.class_names

    def infer(self, images: NDArray[np.uint8] | Tensor) -> NDArray[np.float64]:
        """Logits in the clear, [n, classes], of uint8 images [n, channels, height, width]: what clients get."""
        return real_logits(self.program, interpret(self.program, self.weights, np.asarray(images)))

    def infer_privately(self, images: NDArray[np.uint8] | Tensor, *, backend: Backend = "gmw") -> list[Prediction]:
        """Both parties here, each in a thread of its own, without TLS: what an inference costs, and that it is exact.

        `images` are uint8 [n, channels, height, width]; each is asked about by itself.
        """
        from sphynx.api.both_parties import ask_privately

        check_backend(backend, BACKENDS, where="backend")
        return ask_privately(self.program, self.weights, np.asarray(images), backend)

    def check(
        self,
        data: Data | StreamedData | ImageSet | str | Path | None = None,
        *,
        split: Split = "test",
        images: int = 0,
        network: TrainedNetwork | str | Path | None = None,
    ) -> Check:
        """Integer accuracy on images (0: all), how much of each range they use; needs torch.

        With the `network` that it was compiled from: float accuracy, and how often the two agree.
        """
        from sphynx.api.networks import load
        from sphynx.data.images import ImageSet
        from sphynx.program.check import check

        trained = load(network) if isinstance(network, str | Path) else network
        chosen = data if isinstance(data, ImageSet) else self.images(data, split=split, images=images)
        if trained is None:
            return check(self.program, self.weights, chosen)
        return check(self.program, self.weights, chosen, trained.module, (trained.mean, trained.std))

    def judge(self, data: Data | StreamedData | str | Path | None = None) -> Judgement | None:
        """Compares it with the float network's answers to the calibration images, which are read from the data again;
        None if no answers were kept, or if the images have changed. Needs torch."""
        from sphynx.data.known import open_known
        from sphynx.program.compile import calibration_set

        if self.original is None:
            return None
        if data is None or isinstance(data, str | Path):
            data = open_known(str(data or ""), None, None, self.source, where=self.name)
        images = calibration_set(data.train, len(self.original.labels)).images.cpu().numpy()
        if not self.original.is_of(images):
            return None
        return judge(self.original, self.infer(images).reshape(len(images), -1), self.program.final)

    def images(
        self, data: Data | StreamedData | str | Path | None = None, *, split: Split = "test", images: int = 0
    ) -> ImageSet:
        """The images that `check` uses: those of the data that it was made with, unless others are given. Their classes
        are in the program's order."""
        from sphynx.data.class_order import ordered_as
        from sphynx.data.known import open_known
        from sphynx.data.streamed import StreamedSet

        if data is None or isinstance(data, str | Path):
            data = open_known(str(data or ""), None, None, self.source, where=self.name)
        every = data.test if split == "test" else data.train
        if isinstance(every, StreamedSet) and not images:
            raise InputError(
                "streamed images can only be checked on a sample",
                where="--images",
                remedy="Give its size: --images 1000 (in Python images=1000).",
            )
        return ordered_as(every.sample(images), self.class_names, where=data.name)

    def estimate(self, link: str | Link = "lan", *, backend: Backend | None = None) -> Estimate:
        """Time and traffic of one private inference, layer by layer, on this machine, which is measured once.

        `link` is loopback, lan, wan, or one such as "20ms,300Mbit". Without a `backend`: for the one that is faster
        online.
        """
        from sphynx.api.rates import machine_rates

        if backend is not None:
            check_backend(backend, BACKENDS, where="backend")
        parsed = parse_link(link) if isinstance(link, str) else link
        return estimate_program(self.program, machine_rates(), parsed, backend)


def compile(
    network: TrainedNetwork | nn.Module | str | Path,
    *,
    example: Tensor | None = None,
    calibrate: Data | StreamedData | str | Path | None = None,
    mean: Sequence[float] | float | None = None,
    std: Sequence[float] | float | None = None,
    precision: Precision | None = None,
    image_size: int | None = None,
    stream: bool | None = None,
    skip_bad: bool = False,
    approximate: bool = False,
    knees: int = 8,
    deployment: Deployment | None = None,
    warn: Callable[[str], None] = warnings.warn,
) -> Compiled:
    """Folds, fuses and quantises a trained network: a run folder, a model's name, what `load` gave, an ONNX file, a
    .pt2 file of torch.export.save, or a torch module, of Sphynx or your own.

    A module of your own is exported for an image like `example`, [1, channels, height, width]; by default for one of
    `calibrate`. Number ranges are measured on training images of `calibrate`: data, their name or path; by default
    those that a run was trained on. `skip_bad` leaves out files of them that cannot be read. `mean` and `std` say how
    the inputs of a file or a torch module were normalised, if the network itself does not: (pixel / 255 - mean) / std.
    They default to 0 and 1; for a module of Sphynx to those of `calibrate`. `warn` is told if the float network is
    hardly better than guessing, which a wrong `mean` or `std` can cause. Without a `precision` the weights get as few
    bits as preserve the logits. `approximate` allows smooth activations (Sigmoid, SiLU, GELU ...), which become
    piecewise linear with at most `knees` knees, fitted to these images; errors are in `Compiled.approximations`. The
    `deployment` says what the network is cut for: its ReLUs' protocol, link, bundles at once, memory for weights.

        >>> compiled = sphynx.compile("runs/digits")
        >>> compiled.save("compiled/again").name, compiled.judged.images
        ('again', 200)
    """
    opened = partial(_opened, calibrate, image_size, stream, skip_bad, warn)
    if isinstance(network, str | Path) and is_foreign(network):
        readable = _read_file(Path(network), mean, std, approximate, knees)
        return _doubted(_compiled(readable, opened(None, readable.name), precision, deployment), warn)
    if isinstance(network, str | Path):
        from sphynx.api.networks import load

        network = load(network)
    from sphynx.network.trained import TrainedNetwork
    from sphynx.program.readers import read_trained

    if isinstance(network, TrainedNetwork):
        if mean is not None or std is not None:
            raise InputError(
                "a trained run has its own normalisation",
                where="--mean, --std",
                remedy="Leave them out: they are for ONNX and .pt2 files, and for torch modules of your own.",
            )
        readable = read_trained(network)
        return _compiled(readable, opened(network.source, readable.name), precision, deployment)
    _require_module(network)
    if calibrate is None:
        where = type(network).__name__
        raise InputError("a torch module does not name its training data", where=where, remedy="Give calibrate=DATA.")
    data = opened(None, type(network).__name__)
    readable = _read_module(network, example, data, mean, std, approximate, knees)
    return _doubted(_compiled(readable, data, precision, deployment), warn)


def _require_module(given: object) -> None:
    from torch import nn

    if isinstance(given, nn.Module):
        return
    if isinstance(given, Mapping):
        raise InputError(
            "a state_dict holds weights, not the layers that they belong to",
            where="network",
            remedy="Load it into its module, module.load_state_dict(weights), and give the module.",
        )
    raise InputError(
        f"{type(given).__name__} is not a network",
        where="network",
        remedy="Give a torch module, a trained network, a model's name, or the path of a run or an .onnx or .pt2 file.",
    )


def _opened(
    data: Data | StreamedData | str | Path | None,
    image_size: int | None,
    stream: bool | None,
    skip_bad: bool,
    warn: Callable[[str], None],
    known: DataSource | None,
    where: str,
) -> Data | StreamedData:
    """`warn` is told what `skip_bad` leaves out."""
    from sphynx.data.known import open_known

    if data is not None and not isinstance(data, str | Path):
        return data
    where = where or "network"
    opened = open_known(str(data or ""), image_size, stream, known, where=where, flag="--calibrate", skip_bad=skip_bad)
    for line in opened.left_out.lines() if skip_bad else ():
        warn(line)
    return opened


def _doubted(compiled: Compiled, warn: Callable[[str], None]) -> Compiled:
    """Of networks from elsewhere, which may have been given a wrong normalisation."""
    if compiled.judged is not None and compiled.judged.doubt is not None:
        warn(f"{compiled.name or 'network'}: {compiled.judged.doubt}")
    return compiled


def _read_module(
    module: nn.Module,
    example: Tensor | None,
    data: Data | StreamedData,
    mean: Sequence[float] | float | None,
    std: Sequence[float] | float | None,
    approximate: bool,
    knees: int,
) -> Readable:
    from sphynx.network.build import is_network
    from sphynx.network.trained import TrainedNetwork
    from sphynx.program.readers import per_channel, read_torch, read_trained
    from sphynx.space.tally import Shape

    if is_network(module):
        means = data.mean if mean is None else per_channel(mean, data.image[0], "mean")
        deviations = data.std if std is None else per_channel(std, data.image[0], "std")
        return read_trained(TrainedNetwork(module.design.name, module.eval(), means, deviations))
    if example is not None and tuple(example.shape[-3:]) != tuple(data.image):
        raise InputError(
            f"its shape is {list(example.shape)}, but the images of the data are {data.image}",
            where="example",
            remedy="Give an example like the images of calibrate, which are resized with image_size.",
        )
    normalisation = _normalisation(mean, std)
    return read_torch(module, Shape(*data.image), *normalisation, approximate=approximate, knees=knees)


def _read_file(
    path: Path, mean: Sequence[float] | float | None, std: Sequence[float] | float | None, approximate: bool, knees: int
) -> Readable:
    from sphynx.program.readers import read_exported, read_onnx

    read = read_onnx if path.suffix.lower() == ".onnx" else read_exported
    return read(path, *_normalisation(mean, std), approximate=approximate, knees=knees)


def _normalisation(
    mean: Sequence[float] | float | None, std: Sequence[float] | float | None
) -> tuple[Sequence[float] | float, Sequence[float] | float]:
    """Of a network from elsewhere, whichever way it comes."""
    return 0.0 if mean is None else mean, 1.0 if std is None else std


def _compiled(
    readable: Readable, data: Data | StreamedData, precision: Precision | None, deployment: Deployment | None
) -> Compiled:
    made, original = readable.compile(data, precision, deployment or Deployment())
    judged = judge(original, made.logits.reshape(original.answers.shape), readable.final)
    return Compiled(
        made.program,
        made.weights,
        made.program.name,
        data.source,
        made.logit_error,
        made.corrections,
        original=original,
        judged=judged,
        approximations=made.approximations,
        approximation_error=made.approximation_error,
    )
