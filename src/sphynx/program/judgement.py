"""A program's answers beside those of the float network it was compiled from, on the calibration images. No torch.

`original.safetensors` in a compiled folder keeps the float network's answers, the labels and a hash of the images; not
the images. Where the network ended in a softmax or sigmoid, its answers are behind it, and ours are taken there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from sphynx.errors import DiskError, InputError
from sphynx.program.classes import possible_scores
from sphynx.program.convolve import Array
from sphynx.program.ir import Graph
from sphynx.program.outputs import LOGITS
from sphynx.units import percent

ORIGINAL = "original.safetensors"
FAR_OFF = 0.1  # of the answers' spread from image to image: a compilation farther off than that has failed
MISREAD = 0.02  # of the same spread, before anything is rounded: then the file was read as a different network
HARDLY_VARYING = 0.01  # of the answers' own size: from image to image they are as good as constant
GUESSING = 0.2  # of the way from guessing to no mistakes: less, on training images, is hardly better than guessing
SINGLE_PRECISION = float(np.finfo(np.float32).eps)
_LEAST_PROBABILITY = 0.01  # an output of smaller ones says nothing, and float networks round them roughly
_ROUNDINGS = 1000  # that a float network's answers may be off by, relative to their size: sums of many rounded numbers

MISREAD_REMEDY = (
    "This is a bug in Sphynx: please report it with the network, whose weights may be random, the size of its "
    "images, and the output of sphynx doctor --json."
)


@dataclass(frozen=True, eq=False)
class Original:
    """The float network's answers to the calibration images."""

    answers: Array  # [n, numbers], floats: of all outputs, one behind the other
    labels: Array | None  # [n]; None where nobody knows them
    images_hash: str
    by: str  # who computed them
    resolution: float = SINGLE_PRECISION  # of the numbers that they were computed in, relative to 1

    def is_of(self, images: Array) -> bool:
        return hash_of(images) == self.images_hash


@dataclass(frozen=True)
class OutputError:
    """One output beside the float network's, on the calibration images."""

    name: str
    error: float  # root mean square, relative to the spread from image to image
    largest_difference: float
    variation: float  # that spread, relative to the output's own size
    read_error: float | None = None  # as `error`, of what was read, before rounding


@dataclass(frozen=True)
class Judgement:
    """A program beside its float network, on the calibration images.

    >>> judgement: sphynx.Judgement | None = sphynx.compile_network("runs/digits").judged
    >>> judgement.images, judgement.fault
    (200, None)
    """

    images: int
    same_class: float | None  # the share of images for which both name the same class; None where there are none
    error: float  # of the answers, root mean square, relative to their spread from image to image; of the worst output
    largest_difference: float
    variation: float  # that spread, relative to the answers' own size; of the output with the largest error
    accuracy: float | None  # of the program, on these images; None where their classes are not known
    float_accuracy: float | None
    by: str  # who computed the float network's answers
    classes: int  # among which the network chooses
    read_error: float | None = None  # as `error`, of what was read, before rounding; known when compiled
    outputs: tuple[OutputError, ...] = ()  # each by itself

    @property
    def hardly_varies(self) -> bool:
        return self.variation < HARDLY_VARYING

    @property
    def is_far_off(self) -> bool:
        return not self.error <= FAR_OFF  # also where it is not a number

    @property
    def is_misread(self) -> bool:
        """True if the network that was read is another one."""
        return self.read_error is not None and not self.read_error <= MISREAD

    @property
    def is_guessing(self) -> bool:
        """True if the float network is hardly better than guessing, on these images."""
        if self.float_accuracy is None or not self.classes:
            return False
        chance = 1 / self.classes
        return self.classes > 1 and self.float_accuracy < chance + GUESSING * (1 - chance)

    @property
    def doubt(self) -> str | None:
        """A doubt to look into although program and float network agree: both get the same images."""
        if not self.is_guessing or self.float_accuracy is None:
            return None
        return (
            f"the float network itself is right about only {percent(self.float_accuracy, 1)} of {self.images} "
            f"calibration images; guessing among {self.classes} classes is right about {percent(1 / self.classes, 1)}. "
            "The likely cause is a normalisation that differs from that in training: give `mean` and `std`. Otherwise "
            "bring trained weights, and data whose classes are in the network's order."
        )

    @property
    def fault(self) -> tuple[str, str] | None:
        """The fault and its remedy; None where there is none."""
        return self.fault_beyond(None)

    def fault_beyond(self, accepted: float | None) -> tuple[str, str] | None:
        """Say what is wrong where errors up to this share of the spread are accepted; by default a tenth."""
        if self.is_misread and (accepted is None or not (self.read_error or 0.0) <= accepted):
            share = None if self.same_class is None else percent(self.same_class, 0)
            same = "" if share is None else f", and {share} of the images get the same class"
            return (
                f"the file was read as a different network: even before rounding, {self._words} are off by "
                f"{percent(self.read_error, 0)} of their spread from image to image{same}",
                MISREAD_REMEDY,
            )
        limit = FAR_OFF if accepted is None else accepted
        if self.error <= limit:  # not where it is not a number
            return None
        far, most = percent(self.error, 0), percent(limit, 0)
        off = f"{self._words} are off by {far} of their spread from image to image, more than {most}"
        if self.hardly_varies:
            return (
                f"{off}: the float network's hardly vary ({percent(self.variation)} of their size)",
                "Use trained weights, and images normalised as in training (`mean`, `std`).",
            )
        return (
            off,
            "Give more bits (`weight_bits`, `activation_bits`), or calibrate with images like its training images "
            "(`calibrate`); where smooth activations are approximated, give more `knees`.",
        )

    @property
    def _words(self) -> str:
        """Say what is judged: its logits, or its output that is farthest off."""
        if self.same_class is not None or not self.outputs:
            return "its logits"
        farthest = max(self.outputs, key=lambda output: output.error)
        return f"the numbers of its output {farthest.name}"

    def to_json(self) -> dict[str, Any]:
        judged = {"hardly_varies": self.hardly_varies, "far_off": self.is_far_off, "guessing": self.is_guessing}
        return {**asdict(self), **judged}


def hash_of(images: Array) -> str:
    return hashlib.sha256(repr(images.shape).encode() + np.ascontiguousarray(images).tobytes()).hexdigest()


def judge(original: Original, found: Array, read: Array | None = None, layout: Graph | None = None) -> Judgement:
    """`found` are the program's answers to the same images, `read` those of the network as it was read, before anything
    is rounded or approximated: [n, numbers] each, behind the network's own final functions. They are laid out as the
    outputs of `layout`, or are the scores of classes where none is given."""
    wanted = original.answers.astype(np.float64)
    outputs = tuple(_compare(original, *parts) for parts in _split(layout, wanted, found, read))
    farthest = max(outputs, key=lambda output: output.error if output.error == output.error else np.inf)
    scores = _scores(layout)
    labels = original.labels
    same, accuracy, float_accuracy, count = None, None, None, 0
    if scores is not None:
        classes, float_classes = (each[:, scores].argmax(axis=1) for each in (found, wanted))
        same, count = float((classes == float_classes).mean()), wanted[:, scores].shape[1]
        accuracy, float_accuracy = _accuracy(classes, labels), _accuracy(float_classes, labels)
    return Judgement(
        images=len(wanted),
        same_class=same,
        error=farthest.error,
        largest_difference=max(output.largest_difference for output in outputs),
        variation=farthest.variation,
        accuracy=accuracy,
        float_accuracy=float_accuracy,
        by=original.by,
        classes=count,
        read_error=None if read is None else max(output.read_error or 0.0 for output in outputs),
        outputs=outputs,
    )


def _split(
    layout: Graph | None, wanted: Array, found: Array, read: Array | None
) -> Iterator[tuple[str, float, Array, Array, Array | None]]:
    """Give each output's name, the least size that its numbers are measured by, and its numbers three times."""
    if layout is None:
        yield LOGITS, 0.0, wanted, found, read
        return
    first = 0
    for output in layout.outputs:
        own = slice(first, first + prod(output.dims))
        least = _LEAST_PROBABILITY if output.final in ("sigmoid", "softmax") else 0.0
        yield output.name, least, wanted[:, own], found[:, own], None if read is None else read[:, own]
        first = own.stop


def _scores(layout: Graph | None) -> slice | None:
    """Find the scores of classes among all numbers."""
    if layout is None:
        return slice(None)
    scores, first = possible_scores(layout), 0
    for output in layout.outputs:
        last = first + prod(output.dims)
        if output is scores:
            return slice(first, last)
        first = last
    return None


def _compare(
    original: Original, name: str, least: float, wanted: Array, found: Array, read: Array | None
) -> OutputError:
    spread, size = float(np.std(wanted - wanted.mean(axis=0))), max(least, _root_mean_square(wanted))
    read_error = None
    if read is not None:
        off = _root_mean_square(read - wanted)
        read_error = 0.0 if off <= _ROUNDINGS * original.resolution * size else _relative(off, spread)
    return OutputError(
        name,
        error=_relative(_root_mean_square(found - wanted), spread),
        largest_difference=float(np.abs(found - wanted).max()),
        variation=spread / size if size else 0.0,
        read_error=read_error,
    )


def _accuracy(classes: Array, labels: Array | None) -> float | None:
    return None if labels is None else float((classes == labels).mean())


def _root_mean_square(numbers: Array) -> float:
    return float(np.sqrt(np.square(numbers).mean()))


def _relative(off: float, spread: float) -> float:
    return off / spread if spread else float(off > 0)


def save_original(folder: Path, original: Original | None) -> None:
    """None removes that of an earlier program."""
    file = folder / ORIGINAL
    try:
        if original is None:
            file.unlink(missing_ok=True)
            return
        arrays: dict[str, Array] = {
            "answers": original.answers.astype(np.float32),
        }
        if original.labels is not None:
            arrays["labels"] = original.labels.astype(np.int64)
        temporary = file.with_name(file.name + ".new")
        temporary.touch(mode=0o600)  # what a network says of its training images is not for everybody
        save_file(arrays, temporary, {"images": original.images_hash, "by": original.by})
        temporary.chmod(0o600)
        temporary.replace(file)
    except (OSError, SafetensorError) as error:
        raise DiskError(f"it cannot be written ({error})", where=str(file), remedy="Free disk space.") from error


def load_original(folder: Path) -> Original | None:
    """None where the folder has none: it is older, or a model's."""
    file = folder / ORIGINAL
    if not file.is_file():
        return None
    try:
        with safe_open(file, framework="np") as opened:
            told = opened.metadata() or {}
            answers = opened.get_tensor("answers")
            labels = opened.get_tensor("labels") if "labels" in opened.keys() else None  # noqa: SIM118 - no mapping
        if answers.ndim != 2 or not len(answers) or (labels is not None and labels.shape != answers.shape[:1]):
            raise ValueError("its shapes do not fit")
        return Original(answers, labels, str(told["images"]), str(told["by"]))
    except (OSError, SafetensorError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"it cannot be read ({error})", where=str(file), remedy="Compile the network again.") from None
