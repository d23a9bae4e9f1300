"""`sphynx check`: how a compiled program does on data, in exact integers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sphynx.cli import options as opt
from sphynx.cli.judgement_lines import judgement_rows, require_close
from sphynx.cli.output import count, nonlinear_text, print_json, print_table, range_text, say_next
from sphynx.cli.output_files import figure_file
from sphynx.errors import SphynxError
from sphynx.units import bytes_text, percent, seconds_text

if TYPE_CHECKING:
    from sphynx.api.compiled import Compiled
    from sphynx.data.images import Data
    from sphynx.data.samples import Samples
    from sphynx.data.streamed import StreamedData
    from sphynx.program.backends import Backend
    from sphynx.run.progress import Voice
    from sphynx.service.exam import Exam


def check(
    compiled: Annotated[str, typer.Argument(help="A folder made by `sphynx compile`, or a model's name.")],
    data: opt.KnownData = "",
    run: Annotated[
        str,
        typer.Option("--run", help="The trained run or model it was compiled from, to report float accuracy as well."),
    ] = "",
    split: opt.SplitOption = "test",
    images: Annotated[
        int, typer.Option("--images", min=0, show_default="all", help="Check this many images, drawn at random.")
    ] = 0,
    private: Annotated[
        str, typer.Option("--private", help="Also ask about each image privately, using gmw, gc or gmw,gc.")
    ] = "",
    image_size: opt.DataSize = None,
    stream: opt.KnownStream = None,
    skip_bad: opt.SkipBad = False,
    figure: Annotated[
        Path | None,
        typer.Option(
            "--figure",
            help="Draw each map's values, range and bound against the ring: a .svg, .png or .pdf file.",
            callback=figure_file(".svg", ".png", ".pdf"),
        ),
    ] = None,
    verbose: opt.Verbose = False,
    quiet: opt.Quiet = False,
    as_json: opt.Json = False,
) -> None:
    """Evaluate a compiled program as private inference will: integer accuracy, agreement with float, range use.

    Exits with 1 if the logits of the calibration images are off by more than a tenth of their spread.

    Examples:

      sphynx check compiled/digits

      sphynx check compiled/digits --data digits --run runs/digits --json

      sphynx check compiled/digits --private gmw,gc

      sphynx check sphynx-cifar100-25k --data cifar100 --run sphynx-cifar100-25k --images 1000 --figure ranges.svg
    """
    from sphynx.api.compiled import Compiled
    from sphynx.api.networks import load_network
    from sphynx.protocol.runnable import log2_off_by_one
    from sphynx.run.environment import describe_environment

    voice = opt.voice_for(verbose, quiet)
    backends = opt.parse_backends(private, "--private") if private else []
    loaded = Compiled.load(compiled, voice.report)
    network = load_network(run) if run else None
    opened = _open(loaded, data, image_size, stream, skip_bad, voice, where=compiled)
    chosen = loaded.images(opened, split=split, images=images)
    result = loaded.check(chosen, network=network)
    judged = loaded.judge(opened)
    if judged is None and loaded.original is not None:
        voice.say("The calibration images have changed, so they are not compared with the float network's answers.")
    off_by_one = log2_off_by_one(loaded.program, loaded.weights)
    exams = _ask_privately(loaded, chosen, backends, quiet=quiet) if backends else []
    if figure is not None:
        from sphynx.report.verb_figures import draw_ranges

        draw_ranges(result.layers, loaded.program.ring_bits, figure)
    if as_json:
        print_json(
            {
                "compiled": str(compiled),
                "data": opened.name,
                "split": split,
                "environment": describe_environment(),
                **result.to_json(),
                "log2_off_by_one": off_by_one,
                "original": None if judged is None else judged.to_json(),
                "private": [exam.to_json() for exam in exams],
            }
        )
        _require_exact(exams, compiled)
        require_close(judged, compiled)
        return
    rows = [
        ["integer accuracy", _percent(result.accuracy)],
        ["chance that a share is off by one, per image", f"2^{off_by_one:.1f}"],
    ]
    if result.float_network is not None:
        rows += [
            ["float accuracy", _percent(result.float_network.accuracy)],
            ["same class", percent(result.float_network.agreement)],
            ["largest logit difference", f"{result.float_network.largest_difference:.3f}"],
        ]
    print_table(f"{compiled} on {count(result.images)} {split} images of {opened.name}", ["", ">"], rows)
    if judged is not None:
        title = f"Compared with the float network ({judged.by}) on {count(judged.images)} calibration images"
        print_table(title, ["", ">"], judgement_rows(judged))
    if exams:
        print_table(
            "Asked privately, over TLS between two processes",
            ["backend", ">images", ">equal to the oracle", ">accuracy", ">offline", ">online", ">online bytes"],
            (
                [
                    exam.backend,
                    count(exam.images),
                    count(exam.equal_to_oracle),
                    _percent(exam.accuracy),
                    seconds_text(exam.offline_s),
                    seconds_text(exam.online_s),
                    bytes_text(exam.online_bytes),
                ]
                for exam in exams
            ),
            note="Medians per image; online includes loading the bundle.",
        )
    print_table(
        f"Bits of each linear map and sum; the ring has {loaded.program.ring_bits}; {nonlinear_text(loaded.program)}",
        ["map", ">range", ">used", ">worst case"],
        (
            [
                layer.name,
                range_text(loaded.program, layer.name, layer.range_bits),
                str(layer.used_bits),
                str(layer.bound_bits),
            ]
            for layer in result.layers
        ),
    )
    _require_exact(exams, compiled)
    require_close(judged, compiled)
    say_next("sphynx", "serve", str(compiled), "--keys", "keys/server")


def _percent(share: float | None) -> str:
    return "no labels" if share is None else percent(share)


def _open(
    compiled: Compiled,
    data: str,
    image_size: int | None,
    stream: bool | None,
    skip_bad: bool,
    voice: Voice,
    *,
    where: str,
) -> Data | StreamedData | Samples:
    """Open a data set, or loose images, which have neither splits nor classes."""
    from sphynx.data.samples import open_samples

    spec = data or (compiled.source.spec if compiled.source else "")
    loose = open_samples(spec, compiled.program.image, 0, skip_bad=skip_bad, left_out=voice.say) if spec else None
    return loose or opt.open_known_images(data, image_size, stream, skip_bad, compiled.source, voice, where=where)


def _require_exact(exams: Sequence[Exam], compiled: str) -> None:
    if any(exam.equal_to_oracle < exam.images for exam in exams):
        raise SphynxError(
            "a private answer differs from the integer program's",
            where=compiled,
            remedy="This is a bug: please report it with the output of sphynx doctor --json.",
        )


def _ask_privately(compiled: Compiled, images: Samples, backends: Sequence[Backend], *, quiet: bool) -> list[Exam]:
    from rich.console import Console
    from rich.progress import Progress, TaskID

    from sphynx.api.examining import examine_privately

    with Progress(console=Console(stderr=True), disable=quiet) as progress:
        tasks: dict[str, TaskID] = {}
        for each in backends:
            tasks[each] = progress.add_task(f"asking privately, {each}", total=len(images))
        return examine_privately(
            compiled,
            images,
            backends,
            progress=lambda update: progress.update(tasks[update.stage], completed=update.done),
        )
