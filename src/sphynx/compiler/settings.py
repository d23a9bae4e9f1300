"""How a network is compiled, declared once: the keywords of `sphynx.compile_network` and the flags of `sphynx compile`
are this record, `Precision` and `Deployment`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sphynx.compiler.precision import Precision
from sphynx.config import parse_numbers, setting
from sphynx.errors import InputError
from sphynx.program.cost.deployment import Deployment
from sphynx.program.limits import LARGEST_NUMBER, MAX_INPUT_BITS
from sphynx.run.update import Listener, ignore

if TYPE_CHECKING:
    from torch import Tensor

    from sphynx.data.samples import Given

KNEES = range(1, 33)
DEFAULT_KNEES = 8


def read_names(file: Path) -> tuple[str, ...]:
    """The lines of a file, one name each."""
    try:
        return tuple(line.strip() for line in Path(file).read_text(encoding="utf-8").splitlines() if line.strip())
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file} cannot be read ({error})", remedy="Give a text file with one name a line.") from None


def parse_sizes(text: str) -> tuple[int, ...]:
    """`3x48x192`."""
    parts = text.lower().split("x")
    if all(part.isdigit() and int(part) > 0 for part in parts):
        return tuple(map(int, parts))
    raise InputError(f"{text} is not a shape", remedy="Give sizes with x between them: 3x48x192.")


@dataclass(frozen=True, kw_only=True)
class CompileSettings:
    """The keywords of `sphynx.compile_network`.

    >>> sphynx.CompileSettings(approximate=True, knees=12).knees
    12
    """

    calibrate: Given | str | Path | None = setting(
        None,
        "Data like the network's training data: a name or path, a folder of images, a .npy file of them. "
        "[default: the run's own]",
        written_as=str,
    )
    class_names: Sequence[str] = setting(
        (),
        "A file with the names of the classes, one on each line, in the network's order; in Python the names. "
        "[default: those of the data]",
        written_as=Path,
        parse=read_names,
    )
    example: Tensor | None = setting(
        None, "An image like those that a torch module reads, [1, channels, height, width].", flag=None
    )
    mean: Sequence[float] | float | None = setting(
        None,
        "For an ONNX or .pt2 file: subtracted from pixel/255; one number, or one per channel. [default: 0]",
        written_as=str,
        parse=parse_numbers,
    )
    std: Sequence[float] | float | None = setting(
        None,
        "For an ONNX or .pt2 file: the divisor of the result; one number, or one per channel. [default: 1]",
        written_as=str,
        parse=parse_numbers,
    )
    input_shape: Sequence[int] | None = setting(
        None,
        "For an ONNX file: its image's sizes without n, such as 3x48x192; fills those that it leaves open. [default: "
        "those of the data]",
        written_as=str,
        parse=parse_sizes,
    )
    input_range: Sequence[float] | None = setting(
        None,
        "For a network that reads numbers, not pictures: LOW,HIGH, to which clients clip theirs. [default: what "
        "`calibrate` has]",
        written_as=str,
        parse=parse_numbers,
        metavar="LOW,HIGH",
    )
    input_bits: int | None = setting(
        None,
        "For a network that reads numbers, not pictures: bits of each, 1 to 16. [default: 12; for whole numbers what "
        "they need]",
        least=1,
        most=MAX_INPUT_BITS,
    )
    inputs: Mapping[str, Any] = setting(
        {},
        "For an ONNX file: NAME=VALUE, the constant that a further input has; numbers, or a .npy file.",
        flag="input",
        metavar="NAME=VALUE",
    )
    heads: Sequence[str] = setting(
        (),
        "For a network with several outputs: the name of one that is wanted, or of a value inside it; repeat it for "
        "several. [default: all outputs]",
        flag="head",
        metavar="NAME",
    )
    precision: Precision | None = setting(None, "Bits of the numbers; None: as many as accuracy needs.", flag=None)
    approximate: bool = setting(
        False, "Allow smooth activations (Sigmoid, SiLU, GELU ...), as piecewise-linear functions."
    )
    knees: int = setting(DEFAULT_KNEES, "With `approximate`: ReLUs that a smooth activation may use, 1 to 32.")
    deployment: Deployment = setting(
        Deployment(), "The backend and the number of bundles that the network is cut for.", flag=None
    )
    accept_error: float | None = setting(
        None, "Accept logits that are off by up to this share of their spread. [default: 0.1]"
    )
    image_size: int | None = setting(None, "Resize the images of a folder to N x N.", least=1)
    stream: bool | None = setting(
        None,
        "Read images from the folder as they are needed. [default: as when it was made]",
    )
    skip_bad: bool = setting(False, "Leave out image files that cannot be read; they are listed.")
    progress: Listener = setting(ignore, "Called as the work goes on, stage by stage.", flag=None)
    warn: Callable[[str], None] = setting(warnings.warn, "Called with what is doubtful or was left out.", flag=None)

    def __post_init__(self) -> None:
        if self.accept_error is not None and not self.accept_error > 0:
            raise InputError(
                f"{self.accept_error} is not a valid share of a spread",
                where="`accept_error`",
                remedy="Give a share such as 0.2.",
            )
        given = None if self.input_range is None else tuple(self.input_range)
        if given is not None and not (len(given) == 2 and -LARGEST_NUMBER <= given[0] < given[1] <= LARGEST_NUMBER):
            raise InputError(
                f"{','.join(map(str, given))} is not a range",
                where="`input_range`",
                remedy="Give the lowest and the highest number with a comma between them: -1,1.",
            )
        if self.input_bits is not None and not 1 <= self.input_bits <= MAX_INPUT_BITS:
            raise InputError(
                f"{self.input_bits} is not a valid number of bits",
                where="`input_bits`",
                remedy=f"Choose from 1 to {MAX_INPUT_BITS}.",
            )
        if self.knees not in KNEES:
            raise InputError(
                f"{self.knees} is not a valid number of knees",
                where="`knees`",
                remedy=f"Choose from {KNEES.start} to {KNEES.stop - 1}.",
            )


AS_USUAL = CompileSettings()
