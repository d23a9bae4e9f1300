"""`sphynx check`: how a compiled program does on data, in exact integers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sphynx.cli.bench_options import parse_backends, tell
from sphynx.cli.design_options import Json
from sphynx.cli.output import count, nonlinear_text, print_json, print_table, range_text
from sphynx.cli.output_files import figure_file
from sphynx.cli.train import DataSize, KnownData, KnownStream, open_known
from sphynx.errors import InputError, SphynxError

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from sphynx.data.images import ImageSet
    from sphynx.program.backends import Backend
    from sphynx.service.exam import Exam


def check(
    compiled: Annotated[str, typer.Argument(help="A folder of `sphynx compile`, or a model's name.")],
    data: KnownData = "",
    run: Annotated[
        str, typer.Option("--run", help="The trained run or model it was compiled from: its float accuracy as well.")
    ] = "",
    split: Annotated[str, typer.Option("--split", help="test or train.")] = "test",
    images: Annotated[int, typer.Option("--images", min=0, help="So many, drawn at random. [default: all]")] = 0,
    private: Annotated[
        str, typer.Option("--private", help="Ask about each image privately as well, with ReLUs by gmw, gc or gmw,gc.")
    ] = "",
    image_size: DataSize = None,
    stream: KnownStream = None,
    figure: Annotated[
        Path | None,
        typer.Option(
            "--figure",
            help="Draw each map's values, range and bound beside the ring: a .svg, .png or .pdf file.",
            callback=figure_file(".svg", ".png", ".pdf"),
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Evaluate a compiled program as private inference will: integer accuracy, agreement with float, range use.

    Examples:

      sphynx check compiled/digits

      sphynx check compiled/digits --data digits --run runs/digits --json

      sphynx check compiled/digits --private gmw,gc

      sphynx check sphynx-cifar100-25k --data cifar100 --run sphynx-cifar100-25k --images 1000 --figure ranges.svg
    """
    from sphynx.data.source import FILE, recorded_source
    from sphynx.data.streamed import StreamedSet
    from sphynx.network.model import load_model, load_normalisation
    from sphynx.program.by_name import compiled_folder
    from sphynx.program.check import check as check_program
    from sphynx.program.files import load_program
    from sphynx.program.weights import load_weights
    from sphynx.run.environment import describe_environment
    from sphynx.space.shipped import CARD, model_path, program_path

    if split not in ("test", "train"):
        raise InputError(f"there is no split {split!r}", where="--split", remedy="Use test or train.")
    backends = parse_backends(private, "--private") if private else []
    folder = compiled_folder(compiled, tell)
    program = load_program(folder)
    weights = load_weights(folder, program)
    path = model_path(run) if run else None
    network, normalisation = (None, None) if path is None else (load_model(path), load_normalisation(path))
    of_model = program_path(compiled).parent / CARD  # of a model by name
    known = recorded_source(folder / FILE) or recorded_source(of_model)
    opened = open_known(data, image_size, stream, known, where=compiled)
    every = opened.test if split == "test" else opened.train
    if isinstance(every, StreamedSet) and not images:
        raise InputError(
            "streamed images are checked by a sample", where="--images", remedy="Say how many: --images 1000."
        )
    chosen = every.sample(images)
    result = check_program(program, weights, chosen, network, normalisation)
    exams = _ask_privately(folder, chosen, backends) if backends else []
    if figure is not None:
        from sphynx.report.verb_figures import draw_ranges

        draw_ranges(result.layers, program.ring_bits, figure)
    if as_json:
        print_json(
            {
                "compiled": str(compiled),
                "data": opened.name,
                "split": split,
                "environment": describe_environment(),
                **result.to_json(),
                "private": [exam.to_json() for exam in exams],
            }
        )
        return
    rows = [["integer accuracy", f"{result.accuracy:.2%}"]]
    if result.float_network is not None:
        rows += [
            ["float accuracy", f"{result.float_network.accuracy:.2%}"],
            ["same class", f"{result.float_network.agreement:.2%}"],
            ["largest logit difference", f"{result.float_network.largest_difference:.3f}"],
        ]
    print_table(f"{compiled} on {count(result.images)} {split} images of {opened.name}", ["", ">"], rows)
    if exams:
        print_table(
            "Asked privately, over TLS between two processes",
            ["ReLU by", ">images", ">equal to the oracle", ">accuracy", ">offline s", ">online ms", ">online bytes"],
            (
                [
                    exam.backend,
                    count(exam.images),
                    count(exam.equal_to_oracle),
                    f"{exam.accuracy:.2%}",
                    f"{exam.offline_s:.3f}",
                    f"{1000 * exam.online_s:.1f}",
                    count(exam.online_bytes),
                ]
                for exam in exams
            ),
            note="Medians per image; online includes loading the bundle.",
        )
    print_table(
        f"Bits of each linear map and sum; the ring has {program.ring_bits}; {nonlinear_text(program)}",
        ["map", ">range", ">used", ">worst case"],
        (
            [
                layer.name,
                range_text(program, layer.name, layer.range_bits),
                str(layer.used_bits),
                str(layer.bound_bits),
            ]
            for layer in result.layers
        ),
    )
    if any(exam.equal_to_oracle < exam.images for exam in exams):
        raise SphynxError("a private answer differs from the oracle", where=compiled, remedy="Please report it.")


def _ask_privately(folder: Path, images: ImageSet, backends: Sequence[Backend]) -> list[Exam]:
    import tempfile

    from rich.console import Console
    from rich.progress import Progress

    from sphynx.program.files import load_program
    from sphynx.program.interpret import interpret
    from sphynx.program.weights import load_weights
    from sphynx.service.exam import examine
    from sphynx.service.local import connected_client

    program = load_program(folder)
    pixels, labels = images.images.numpy(), images.labels.numpy()
    expected = interpret(program, load_weights(folder, program), pixels)
    exams = []
    with (
        tempfile.TemporaryDirectory(prefix="sphynx-check-") as temporary,
        connected_client(folder, Path(temporary)) as client,
        Progress(console=Console(stderr=True)) as progress,
    ):
        for backend in backends:
            task = progress.add_task(f"asking privately, {backend}", total=len(pixels))
            exams.append(
                examine(
                    client,
                    backend,
                    pixels,
                    labels,
                    expected,
                    done=partial(_show, progress, task),
                )
            )
    return exams


def _show(progress: Progress, task: TaskID, done: int) -> None:
    progress.update(task, completed=done)
