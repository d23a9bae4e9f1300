"""Flags that several verbs share: which network, which data, where, how much is said. Choices are the library's own."""

from __future__ import annotations

import shlex
import sys
import threading
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sphynx.config import described, setting
from sphynx.data.source import Split
from sphynx.errors import InputError
from sphynx.program.backends import BACKENDS, BackendChoice
from sphynx.program.cost.deployment import WEIGHT_MEMORY
from sphynx.program.cost.link import LINK_WORDS
from sphynx.space import choices

if TYPE_CHECKING:
    from sphynx.data.images import Data
    from sphynx.data.source import DataSource
    from sphynx.data.streamed import StreamedData
    from sphynx.program.backends import Backend
    from sphynx.run.progress import Voice
    from sphynx.space.design import Design

SILENCE_S = 3.0  # after which people ask themselves whether it still works
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}

# Which network.
CellsOption = Annotated[
    str, typer.Option("--cells", help="A published genotype's name (sphynx, darts-v2, pc-darts, ...) or a file.")
]
ImageSize = Annotated[int, typer.Option("--image-size", min=1, help="Height and width of the images, in pixels.")]
ImageChannels = Annotated[int, typer.Option("--image-channels", min=1, help="3 for colour, 1 for grey.")]
Classes = Annotated[int, typer.Option("--classes", min=1, help="Number of classes.")]
StemOption = Annotated[
    choices.StemChoice,
    typer.Option("--stem", help=f"auto: imagenet for images of {choices.IMAGENET_STEM_FROM} pixels or more."),
]
BalancingOption = Annotated[
    choices.Balancing, typer.Option("--balancing", help="Channels at a reduce cell: relu x4, flop x2.")
]
ConvStackOption = Annotated[choices.ConvStack, typer.Option("--conv-stack", help="Structure of conv3 and conv5.")]
ConvolutionOption = Annotated[choices.Convolution, typer.Option("--convolution")]
BordersOption = Annotated[
    choices.Borders,
    typer.Option("--borders", help="Borders of a stream network; the compiler can fuse halo borders exactly."),
]
PoolOption = Annotated[
    choices.Pool,
    typer.Option("--pool", help="Pools of resnet18 and vgg11; max is as first published, and costs comparisons."),
]
FamilyOption = Annotated[
    choices.Family, typer.Option("--family", help="stream: a linear stream with a few rectified channels beside it.")
]
RunArgument = Annotated[str, typer.Argument(help="A trained run folder, its model.safetensors, or a model's name.")]

# Which data.
DataSize = Annotated[int | None, typer.Option("--image-size", min=1, help="Resize the images of a folder to N x N.")]
KnownData = Annotated[
    str,
    typer.Option("--data", help="A name from `sphynx data ls`, or a path. [default: the data it was made with]"),
]
SkipBad = Annotated[
    bool, typer.Option("--skip-bad", help="Leave out image files that cannot be read; they are listed.")
]
GROUPS = (
    "Which images belong together, such as those of one patient, and are held out together: a regular expression for "
    "CLASS/FILE, or a .csv file of FILE,GROUP."
)
GroupsOption = Annotated[str | None, typer.Option("--groups", help=GROUPS)]
StreamOption = Annotated[bool, typer.Option("--stream", help="Read images from the folder while training (ImageNet).")]
KnownStream = Annotated[
    bool | None,
    typer.Option(
        "--stream/--no-stream", help="Read images from the folder as they are needed. [default: as when it was made]"
    ),
]
SplitOption = Annotated[Split, typer.Option("--split", help="Which images to use.")]

# How long work runs, and what it says.
DeviceOption = Annotated[str, typer.Option("--device", help="auto, cpu, cuda or cuda:N.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="More progress on stderr, also between epochs.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress on stderr.")]

# Private inference.
LinkOption = Annotated[
    str,
    typer.Option(
        "--link",
        help=LINK_WORDS,
    ),
]
WeightMemory = Annotated[
    str,
    typer.Option(
        "--weight-memory",
        help=WEIGHT_MEMORY,
    ),
]
BackendOption = Annotated[
    BackendChoice, typer.Option("--backend", help="Backend for ReLUs; auto: the one that is faster online.")
]


@dataclass(frozen=True, kw_only=True)
class Images:
    """Data in memory."""

    data: str = field(metadata=described("digits, a name from `sphynx data ls`, or a path."))
    image_size: int | None = setting(None, "Resize the images of a folder to N x N.", least=1)
    skip_bad: bool = setting(False, "Leave out image files that cannot be read; they are listed.")
    groups: str | None = setting(None, GROUPS)

    def open(self, voice: Voice) -> Data:
        """Read them; what was left out is said."""
        from sphynx.data.open import open_data

        with reading(self.data, voice):
            images = open_data(self.data, image_size=self.image_size, skip_bad=self.skip_bad, groups=self.groups)
        say_left_out(images, voice)
        return images


@dataclass(frozen=True, kw_only=True)
class Output:
    """How much long work says on stderr, and how its result is printed."""

    verbose: bool = setting(False, "More progress on stderr, also between epochs.")
    quiet: bool = setting(False, "No progress on stderr.")
    as_json: bool = setting(False, "Print JSON instead of tables.")

    @property
    def voice(self) -> Voice:
        return voice_for(self.verbose, self.quiet, self.as_json)


def voice_for(verbose: bool, quiet: bool, as_json: bool = False) -> Voice:
    """Choose a voice: a verb that prints JSON says nothing else, unless it is asked to."""
    from sphynx.run.progress import Voice

    if verbose and quiet:
        raise InputError("-v and -q exclude each other", where="-v, -q", remedy="Give one of them.")
    return Voice("verbose" if verbose else "quiet" if quiet or as_json else "normal")


@contextmanager
def reading(data: str, voice: Voice) -> Iterator[None]:
    """Say what takes so long, where it does: thousands of large pictures take a minute."""
    waiting = threading.Timer(SILENCE_S, voice.say, (f"reading {data} ...",), {"stage": "data"})
    waiting.daemon = True
    waiting.start()
    try:
        yield
    finally:
        waiting.cancel()


def open_known_images(
    data: str,
    image_size: int | None,
    stream: bool | None,
    skip_bad: bool,
    known: DataSource | None,
    voice: Voice,
    *,
    where: str,
) -> Data | StreamedData:
    """The data of a run or program, or others; what `skip_bad` left out is said."""
    from sphynx.data.open import open_known

    with reading(data or (known.spec if known else "its data"), voice):
        images = open_known(data, image_size, stream, known, where=where, skip_bad=skip_bad)
    if skip_bad:
        say_left_out(images, voice)
    return images


def say_left_out(data: Data | StreamedData, voice: Voice) -> None:
    from sphynx.data.images import classes_without_images, some_of

    for line in data.left_out.lines():
        voice.say(line, stage="data")
    if data.shared_groups:
        voice.say(f"warning: {data.shared_groups:,} groups have both training and test images", stage="data")
    if untested := classes_without_images(data.test):
        voice.say(f"warning: the accuracy leaves out classes without test images: {some_of(untested)}", stage="data")


def backend_for(choice: BackendChoice) -> Backend | None:
    """None: whichever is faster."""
    return None if choice == "auto" else choice


def parse_bytes(text: str, flag: str) -> int:
    """`500M`, `16G`, `16GB` or a number of bytes."""
    size = text.removesuffix("B")
    number, unit = (size[:-1], _UNITS[size[-1]]) if size[-1:] in _UNITS else (size, 1)
    if not number.isdecimal():
        raise InputError(f"{text!r} is not a valid size", where=flag, remedy="Write it as 500M or 16G.")
    return int(number) * unit


def parse_memory(text: str, flag: str) -> int | None:
    """None: as much as it takes."""
    return parse_bytes(text, flag) if text else None


def parse_backends(text: str, flag: str) -> list[Backend]:
    """`gc`, `gmw` or `gc,gmw`."""
    found = [backend for word in text.split(",") for backend in BACKENDS if backend == word]
    if len(found) != len(text.split(",")):
        raise InputError(f"{text!r} is not a valid ReLU backend", where=flag, remedy="Use gc, gmw or gc,gmw.")
    return found


def given_flags(context: typer.Context, names: Sequence[str]) -> list[str]:
    """List those of the flags that the command line has, as they are written there."""
    found = []
    for option in context.command.params:
        source = context.get_parameter_source(option.name or "")
        if option.name in names and source is not None and source.name != "DEFAULT":
            switched_off = context.params.get(option.name) is False and option.secondary_opts
            found.append((option.secondary_opts if switched_off else option.opts)[0])
    return found


def refuse_idle(context: typer.Context, names: Sequence[str], why: str, instead: str = "") -> None:
    """Flags that would change nothing: whoever gives one expects something of it."""
    if idle := given_flags(context, names):
        leave = f"{instead}, or leave" if instead else "Leave"
        raise InputError(why, where=", ".join(idle), remedy=f"{leave} {' and '.join(idle)} out.")


def parse_settings(pairs: list[str] | None, flag: str = "--set") -> dict[str, Any]:
    """name=value, the value written as in TOML; a word needs no quotes."""
    values: dict[str, Any] = {}
    for pair in pairs or []:
        name, equals, text = pair.partition("=")
        if not equals:
            raise InputError(f"{pair!r} is not a valid setting", where=flag, remedy="Write it as NAME=VALUE.")
        try:
            values[name.strip()] = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            values[name.strip()] = text.strip()
    return values


def resume_command() -> str:
    """The command that was given, to be given again."""
    words = ["sphynx", *sys.argv[1:]]
    if "--resume" not in words:
        words.append("--resume")
    return shlex.join(words)


def design_for(
    *,
    cells: str,
    channels: int,
    depth: int,
    reduce_positions: tuple[int, ...] | None,
    image_size: int,
    image_channels: int,
    classes: int,
    stem: choices.StemChoice,
    balancing: choices.Balancing,
    conv_stack: choices.ConvStack,
    convolution: choices.Convolution,
) -> Design:
    """The network of cells that the flags describe."""
    from sphynx.space.design import Design, default_reduce_positions, stem_for
    from sphynx.space.published_cells import find_cells
    from sphynx.space.tally import Shape

    return Design(
        genotype=find_cells(cells),
        channels=channels,
        depth=depth,
        reduce_positions=default_reduce_positions(depth) if reduce_positions is None else reduce_positions,
        image=Shape(image_channels, image_size, image_size),
        classes=classes,
        stem=stem_for(stem, image_size),
        balancing=balancing,
        conv_stack=conv_stack,
        convolution=convolution,
    )
