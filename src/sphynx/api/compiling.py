"""`compile_network` makes a trained network, ours or anybody's, into exact integers (`compiled`). Needs torch.

compiled = sphynx.compile_network("runs/digits")
compiled.save("compiled/digits")
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import ceil, isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sphynx.api.compiled import Compiled
from sphynx.compiler.settings import CompileSettings
from sphynx.config import Keywords
from sphynx.data.source import DataSource
from sphynx.errors import InputError, OpenSizesError, SphynxError
from sphynx.program.judgement import Judgement, judge
from sphynx.program.outputs import joined
from sphynx.protocol.runnable import require_runnable, with_ring_for
from sphynx.space.artifact import is_foreign

if TYPE_CHECKING:
    from torch import nn

    from sphynx.compiler.frontend.readable import Readable
    from sphynx.data.samples import Given, Samples
    from sphynx.network.trained import TrainedNetwork
    from sphynx.space.tally import Shape


@Keywords(CompileSettings).function
def compile_network(network: TrainedNetwork | nn.Module | str | Path, settings: CompileSettings) -> Compiled:
    """Fold, fuse and quantise a trained network: a run folder, a model's name, what `load_network` gave, an ONNX file,
    a .pt2 file of torch.export.save, or a torch module, of Sphynx or your own.

    A module of your own is exported for an image like `example`, [1, channels, height, width]; by default for one of
    `calibrate`. Number ranges are measured on training images of `calibrate`: data, their name or path; by default
    those that a run was trained on. `skip_bad` leaves out files of them that cannot be read. `mean` and `std` say how
    the inputs of a file or a torch module were normalised, if the network itself does not: (pixel / 255 - mean) / std.
    They default to 0 and 1; for a module of Sphynx to those of `calibrate`. `warn` is told if the float network is
    hardly better than guessing, which a wrong `mean` or `std` can cause. Without a `precision` the weights get as few
    bits as preserve the logits. `approximate` allows smooth activations (Sigmoid, SiLU, GELU ...), which become
    piecewise linear with at most `knees` knees, fitted to these images; errors are in `Compiled.approximations`. The
    `deployment` says what the network is cut for: its ReLUs' protocol, link, bundles at once, memory for weights.

    A program that answers otherwise than the float network is an error: its logits are off by more than a tenth of
    their spread from image to image, or were off before anything was rounded. `accept_error` is another share of the
    spread for both. A network that the protocol cannot run is refused too.

        >>> compiled = sphynx.compile_network("runs/digits")
        >>> compiled.save("compiled/again").name, compiled.judged.images
        ('again', 200)
    """
    if isinstance(network, str | Path) and is_foreign(network):
        return _compile_file(Path(network), settings)
    if isinstance(network, str | Path):
        from sphynx.network.trained import load_trained
        from sphynx.zoo.shipped import model_path

        network = load_trained(model_path(network))
    from sphynx.compiler.frontend.torch_network import read_trained
    from sphynx.network.trained import TrainedNetwork

    if isinstance(network, TrainedNetwork):
        if settings.mean is not None or settings.std is not None:
            raise InputError(
                "a trained run has its own normalisation",
                where="`mean`, `std`",
                remedy="Leave them out: they are for ONNX and .pt2 files, and for torch modules of your own.",
            )
        readable = read_trained(network)
        return _compile(readable, _open(settings, network.source, readable.name), settings)
    _require_module(network)
    if settings.calibrate is None:
        where = type(network).__name__
        raise InputError("a torch module does not name its training data", where=where, remedy="Give `calibrate=DATA`.")
    data = _open(settings, None, type(network).__name__)
    return _warn_of_doubt(_compile(_read_module(network, data, settings), data, settings), settings)


def _require_module(given: object) -> None:
    from torch import nn

    if isinstance(given, nn.Module):
        return
    if isinstance(given, Mapping):
        raise InputError(
            "a state_dict holds weights, not the layers that they belong to",
            where="`network`",
            remedy="Load it into its module, module.load_state_dict(weights), and give the module.",
        )
    raise InputError(
        f"{type(given).__name__} is not a network",
        where="`network`",
        remedy="Give a torch module, a trained network, a model's name, or the path of a run or an .onnx or .pt2 file.",
    )


def _compile_file(path: Path, settings: CompileSettings) -> Compiled:
    """Sizes that a file leaves open are those of the data; else it is read first, which says at once what is wrong."""
    try:
        readable = _read_file(path, settings)
    except OpenSizesError:
        if settings.calibrate is None:
            raise
        data = _samples(settings, None, path.stem)
        settings = replace(settings, calibrate=data, input_shape=data.images.shape[1:])
        readable = _read_file(path, settings)
    opened = _open(settings, None, readable.name, readable.outline.image)
    return _warn_of_doubt(_compile(readable, opened, settings), settings)


def _samples(settings: CompileSettings, known: DataSource | None, where: str, image: Shape | None = None) -> Samples:
    from sphynx.compiler.compile import CALIBRATION_IMAGES
    from sphynx.data.samples import samples_of

    return samples_of(_open(settings, known, where, image), CALIBRATION_IMAGES)


def _open(settings: CompileSettings, known: DataSource | None, where: str, image: Shape | None = None) -> Given:
    """The calibration data; `warn` is told what `skip_bad` leaves out. Loose images become as large as `image`."""
    from sphynx.compiler.compile import CALIBRATION_IMAGES
    from sphynx.data.open import open_known
    from sphynx.data.samples import open_samples
    from sphynx.space.tally import Shape

    data = settings.calibrate
    if data is not None and not isinstance(data, str | Path):
        return data
    if data is not None:
        size = settings.image_size
        loose = open_samples(
            str(data),
            image if size is None else Shape(3 if image is None else image.channels, size, size),
            CALIBRATION_IMAGES,
            skip_bad=settings.skip_bad,
            left_out=settings.warn,
        )
        if loose is not None:
            return loose
    opened = open_known(
        str(data or ""),
        settings.image_size,
        settings.stream,
        known,
        where=where or "network",
        parameter="calibrate",
        skip_bad=settings.skip_bad,
    )
    for line in opened.left_out.lines() if settings.skip_bad else ():
        settings.warn(line)
    return opened


def _warn_of_doubt(compiled: Compiled, settings: CompileSettings) -> Compiled:
    """Warn of a doubt about a network from elsewhere, which may have been given a wrong normalisation."""
    if compiled.judged is not None and compiled.judged.doubt is not None:
        settings.warn(f"{compiled.name or 'network'}: {compiled.judged.doubt}")
    return compiled


def _read_module(module: nn.Module, data: Given, settings: CompileSettings) -> Readable:
    from sphynx.compiler.frontend.elsewhere import read_torch
    from sphynx.data.images import DataFace
    from sphynx.data.samples import Samples, samples_of
    from sphynx.network.build import is_network
    from sphynx.space.tally import Shape

    example = settings.example
    if is_network(module):
        return _read_own(module, data, settings)
    if isinstance(data, DataFace):
        image = tuple(data.image)
    elif example is not None:
        return read_torch(module, Shape(*example.shape[-3:]), settings)
    else:
        found = data if isinstance(data, Samples) else samples_of(data, 1)
        image = found.images.shape[1:]
    if len(image) != 3 or (example is not None and tuple(example.shape[-3:]) != image):
        shown = "x".join(map(str, image))
        raise InputError(
            f"the images of the data are {shown}"
            if example is None
            else f"its shape is {list(example.shape)}, but the images of the data are {shown}",
            where="`example`",
            remedy="Give an example like the images of `calibrate`, which are resized with `image_size`.",
        )
    return read_torch(module, Shape(*image), settings)


def _read_own(module: Any, data: Given, settings: CompileSettings) -> Readable:
    """A network of Sphynx was trained on images with the mean and deviation of its data."""
    from sphynx.compiler.frontend.elsewhere import per_channel
    from sphynx.compiler.frontend.torch_network import read_trained
    from sphynx.data.images import DataFace
    from sphynx.network.trained import TrainedNetwork

    mean, std = settings.mean, settings.std
    if isinstance(data, DataFace):
        mean, std = (data.mean if mean is None else mean), (data.std if std is None else std)
    if mean is None or std is None:
        raise InputError(
            "a network of Sphynx is normalised by the statistics of its training data, which these data do not tell",
            where=module.design.name,
            remedy="Give `mean` and `std`, or the data set itself.",
        )
    channels = module.design.image.channels
    means, deviations = per_channel(mean, channels, "mean"), per_channel(std, channels, "std")
    return read_trained(TrainedNetwork(module.design.name, module.eval(), means, deviations))


def _read_file(path: Path, settings: CompileSettings) -> Readable:
    from sphynx.compiler.frontend.elsewhere import read_exported, read_onnx

    return (read_onnx if path.suffix.lower() == ".onnx" else read_exported)(path, settings)


def _compile(readable: Readable, data: Given, settings: CompileSettings) -> Compiled:
    from sphynx.compiler.compile import OURSELVES, compile_read

    made, original = compile_read(readable, data, settings)
    where = made.program.name or "network"
    answers = joined(made.program.answers(made.logits))
    read = None if original.by == OURSELVES else joined(made.program.answers(made.float_logits))
    judged = judge(original, answers, read, made.program)
    _require_close(judged, where, settings)
    program = with_ring_for(made.program, made.weights)
    require_runnable(program, made.weights)
    return Compiled(
        program,
        made.weights,
        program.name,
        getattr(data, "source", None),
        made.logit_error,
        made.corrections,
        original=original,
        judged=judged,
        approximations=made.approximations,
        approximation_error=made.approximation_error,
    )


def _require_close(judged: Judgement, where: str, settings: CompileSettings) -> None:
    """A program that answers otherwise than its network must not be served by mistake."""
    accept_error = settings.accept_error
    fault = judged.fault_beyond(accept_error)
    if fault is None:
        if judged.fault is not None:
            settings.warn(f"{where}: {judged.fault[0]}. This is accepted, by `accept_error={accept_error:g}`.")
        return
    what, remedy = fault
    largest = max(judged.error, judged.read_error or 0.0)
    enough = f" `accept_error={ceil(100 * largest) / 100:g}` would accept it." if isfinite(largest) else ""
    raise SphynxError(what, where=where, remedy=f"{remedy}{enough}")
