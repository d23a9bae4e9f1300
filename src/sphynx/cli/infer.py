"""`sphynx infer`: asks a server about images that it never sees."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from sphynx.cli.options import Json
from sphynx.cli.output import count, print_json, print_table, short
from sphynx.data.image_files import READ, describe_formats, find_images
from sphynx.errors import ConnectionLostError, InputError, PeerGaveUpError
from sphynx.program.backends import BackendChoice

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from sphynx.api.asking import Client
    from sphynx.service.prediction import Prediction

Done = TypeVar("Done")
USUAL_SERVER = "127.0.0.1:7443"
LOOK_S = 1.0  # for a signal
NICENESS = 10  # of a process that prepares what nobody waits for
PORTION = 8  # images at a time, however many there are: half of the bundles that a server keeps for a client by default


def infer(
    keys: Annotated[Path, typer.Option("--keys", help="Your folder from `sphynx keys issue`.")],
    images: Annotated[
        list[Path] | None, typer.Argument(metavar="IMAGE...", help="Image files, or folders of them.")
    ] = None,
    server: Annotated[
        list[str] | None,
        typer.Option(
            "--server",
            metavar="HOST:PORT",
            help="HOST:PORT; repeat it or use commas for replicas, one of which is asked. [default: 127.0.0.1:7443]",
        ),
    ] = None,
    prepare: Annotated[
        int, typer.Option("--prepare", min=0, help="Bundles to prepare for later, in addition to those needed now.")
    ] = 0,
    ahead: Annotated[
        int,
        typer.Option("--ahead", metavar="N", min=0, help="Then keep running, with N bundles ready, until Ctrl-C."),
    ] = 0,
    relu: Annotated[
        BackendChoice,
        typer.Option(
            "--relu",
            help="Backend of new bundles: auto (faster on the measured link), gc (few rounds) or gmw (few bytes).",
        ),
    ] = "auto",
    top: Annotated[int, typer.Option("--top", min=1, help="How many labels to print.")] = 5,
    program: Annotated[str, typer.Option("--program", help="Accept only the program with this hash.")] = "",
    state: Annotated[
        Path | None, typer.Option("--state", help="Where to keep your bundles. [default: KEYS/bundles]")
    ] = None,
    trust_state: Annotated[
        bool,
        typer.Option("--trust-state", help="Keep bundles after a restart of the machine or a move of their folder."),
    ] = False,
    timeout: Annotated[
        float, typer.Option("--timeout", min=0.1, help="Seconds to wait for each answer of the server.")
    ] = 120.0,
    wait: Annotated[
        float, typer.Option("--wait", min=0, help="Seconds to wait for a server that is still starting.")
    ] = 10.0,
    as_json: Json = False,
) -> None:
    """Ask a server what is in your images, without showing them. With --prepare and no images: only prepare, for later.

    With --ahead it keeps running and prepares new bundles as other processes with these keys use them up, whenever the
    server has capacity to spare.

    Pictures that cannot be read are listed at the end and skipped; the exit code is then 1.

    Examples:

      sphynx infer --server inference.example:7443 --keys keys/alice --prepare 8

      sphynx infer cat.png dog.jpg --server inference.example:7443 --keys keys/alice --top 3 --json

      sphynx infer photos/ --server inference.example:7443 --keys keys/alice

      sphynx infer cat.png --server a.example:7443,b.example:7443 --keys keys/alice
    """
    from sphynx.api.asking import Client

    failed: dict[Path, InputError] = {}
    files = _expand(images or [], failed)
    if not images and not prepare and not ahead:
        raise InputError(
            "there is no image to ask about, and nothing to prepare",
            remedy="Name images, or give --prepare N or --ahead N to make bundles for later.",
        )
    client_of = partial(
        Client,
        server or USUAL_SERVER,
        keys=keys,
        state=state,
        program=program,
        relu=relu,
        timeout_s=timeout,
        wait_s=wait,
        trust_state=trust_state,
        warn=lambda why: typer.echo(f"warning: {why}", err=True),
    )
    with client_of() as client:
        pictures: list[tuple[Path, NDArray[np.uint8]]] = []
        for path in files:
            try:
                pictures.append((path, client.pixels(path)))
            except InputError as error:
                failed[path] = error
        predictions = []
        for first in range(0, len(pictures), PORTION):
            portion = pictures[first : first + PORTION]
            _go_on(client, partial(_make_ready, client, len(portion), relu))
            predictions += [(path, _go_on(client, partial(_ask, client, pixels))) for path, pixels in portion]
        _go_on(client, partial(_make_ready, client, prepare, relu))
        ready = client.ready
    if as_json:
        found = [{"image": str(path), **seen.to_json(top)} for path, seen in predictions]
        bad = [{"image": str(path), "error": error.what, "remedy": error.remedy} for path, error in failed.items()]
        print_json({"predictions": found, "failed": bad, "bundles_ready": ready})
    else:
        _print(predictions, top)
        typer.echo(f"{count(ready)} bundles are ready for later.", err=True)
    if failed:
        _tell_failed(failed, len({*files, *failed}))  # a folder without images is not among the files
    if ahead:
        _stay(client_of(ahead=ahead), ahead)
    if failed:
        raise typer.Exit(1)


def _expand(given: list[Path], failed: dict[Path, InputError]) -> list[Path]:
    """Files as they are, of folders all images below them. A folder without images has failed."""
    files: list[Path] = []
    for path in given:
        if not path.is_dir():
            files.append(path)
            continue
        images, others = find_images(path)
        files += images
        if others:
            typer.echo(f"{path}: skipped {describe_formats(others)}: {READ}", err=True)
        if not images:
            failed[path] = InputError("the folder contains no images", where=str(path), remedy=f"{READ}.")
    return files


def _tell_failed(failed: dict[Path, InputError], asked: int) -> None:
    typer.echo(f"{count(len(failed))} of {count(asked)} could not be asked about:", err=True)
    for path, error in failed.items():
        typer.echo(f"error: {error if error.where else f'{path}: {error}'}\n  remedy: {error.remedy}", err=True)


def _stay(client: Client, ahead: int) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):  # a job in the background of a script is started with SIGINT ignored
        signal.signal(number, signal.default_int_handler)
    with contextlib.suppress(KeyboardInterrupt):  # while it connects, or again while it closes
        typer.echo(f"keeping {count(ahead)} bundles ready; press Ctrl-C to stop", err=True)
        if hasattr(os, "nice"):
            os.nice(NICENESS)
        with client, contextlib.suppress(KeyboardInterrupt):
            while True:  # a signal that comes just before it waits, or to another thread, does not wake it
                time.sleep(LOOK_S)


def _ask(client: Client, pixels: NDArray[np.uint8]) -> Prediction:
    client.warm()
    return client.infer(pixels)


def _go_on(client: Client, work: Callable[[], Done]) -> Done:
    """Where a server is lost and there are others, the work is done again there: a question with another bundle."""
    failures = 0
    while True:
        try:
            return work()
        except (ConnectionLostError, PeerGaveUpError):
            failures += 1
            if failures >= client.server_count:
                raise


def _make_ready(client: Client, bundles: int, relu: BackendChoice) -> None:
    """So many that can be used for one image each; those that are ready already count."""
    wanted = bundles - client.ready
    if wanted <= 0:
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True)) as progress:
        task = progress.add_task("preparing bundles", total=wanted)
        client.prepare(wanted, relu=relu, done=lambda number: progress.update(task, completed=number))


def _print(predictions: list[tuple[Path, Prediction]], top: int) -> None:
    if not predictions:
        return
    print_table(
        "What the images show",
        ["image", "label", ">probability"],
        (
            [str(path) if rank == 0 else "", label, f"{probability:.2%}"]
            for path, seen in predictions
            for rank, (label, probability) in enumerate(list(zip(seen.labels, seen.probabilities, strict=True))[:top])
        ),
    )
    print_table(
        "Cost",
        ["image", "ReLU", ">offline s", ">offline bytes", ">online s", ">online bytes", ">rounds"],
        (
            [
                str(path),
                seen.backend,
                f"{seen.offline_seconds:.3f}",
                short(seen.offline_bytes),
                f"{seen.online_seconds:.3f}",
                short(seen.online_bytes),
                count(seen.online_rounds),
            ]
            for path, seen in predictions
        ),
        note="Offline work was done before the image was needed.",
    )
