"""`sphynx infer`: asks a server about images that it never sees."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sphynx.cli.answers import Answers
from sphynx.cli.options import Json
from sphynx.cli.output import count, print_json, print_table
from sphynx.cli.output_files import array_file, record_file
from sphynx.cli.record_flags import with_record_flags
from sphynx.cli.wording import warner, write_flags
from sphynx.data.image_files import READ, describe_formats, find_images
from sphynx.errors import InputError, SphynxError
from sphynx.service.settings import USUAL_ADDRESS, ClientSettings

if TYPE_CHECKING:
    from sphynx.api.asking import Client
    from sphynx.cli.asking import Picture

LOOK_S = 1.0  # for a signal
NICENESS = 10  # of a process that prepares what nobody waits for


@with_record_flags
def infer(
    context: typer.Context,
    images: Annotated[
        list[Path] | None,
        typer.Argument(metavar="IMAGE...", help="Image files, folders of them, or .npy files of numbers."),
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
        int,
        typer.Option(
            "--prepare", metavar="N", min=0, help="Leave N bundles ready for later: prepares those that are missing."
        ),
    ] = 0,
    lists: Annotated[bool, typer.Option("--list", help="List the programs that the server serves, and end.")] = False,
    top: Annotated[int, typer.Option("--top", min=1, help="How many labels to print.")] = 5,
    unsure_below: Annotated[
        float,
        typer.Option(
            "--unsure-below",
            min=0,
            max=1,
            help="Call an answer not sure whose probability is lower, such as 0.8; `sphynx eval --per-class` says how "
            "many answers that leaves.",
        ),
    ] = 0.0,
    arrays: Annotated[
        Path | None,
        typer.Option(
            "--arrays",
            metavar="FILE.npz",
            help="Write all outputs of the answers as numpy arrays, one row for each image.",
            callback=array_file,
        ),
    ] = None,
    record: Annotated[
        Path | None,
        typer.Option(
            "--record",
            metavar="FILE.html",
            help="Write a page to print or keep: network, date, bytes, what each side learned, what is assumed.",
            callback=record_file,
        ),
    ] = None,
    as_json: Json = False,
    *,
    settings: ClientSettings,
) -> None:
    """Ask a server what is in your images, without showing them. With --prepare and no images: only prepare, for later.

    With --ahead it keeps running and prepares new bundles as other processes with these keys use them up, whenever the
    server has capacity to spare.

    Pictures that cannot be read are listed at the end and skipped; the exit code is then 1. When something fails or you
    press Ctrl-C, the answers so far are printed.

    Examples:

      sphynx infer --server inference.example:7443 --keys keys/alice --prepare 8

      sphynx infer cat.png dog.jpg --server inference.example:7443 --keys keys/alice --top 3 --json

      sphynx infer scan.png --server inference.example:7443 --keys keys/alice --record scan.html

      sphynx infer photos/ --server inference.example:7443 --keys keys/alice

      sphynx infer cat.png --server a.example:7443,b.example:7443 --keys keys/alice
    """
    from sphynx.api.asking import Client
    from sphynx.cli.asking import Asking
    from sphynx.zoo.shipped import warning_of

    ahead = settings.ahead
    answers = Answers()
    files = _expand(images or [], answers.unreadable)
    settings = replace(settings, ahead=0, warn=warner(context))
    client_of = partial(Client, server or USUAL_ADDRESS, **vars(settings))
    if lists:
        found = client_of().list_programs()
        if as_json:
            print_json(found)
        else:
            print_table("Programs", ["name", "hash"], [[name, one[:16]] for name, one in found.items()])
        return
    if not images and not prepare and not ahead:
        raise InputError(
            "there is no image to ask about, and nothing to prepare",
            remedy="Name images, or give --prepare N or --ahead N to make bundles for later.",
        )
    failure = SphynxError("the client failed", remedy="Ask again about the images without an answer.")
    if not files and not prepare and not ahead:  # no server is asked, nor waited for
        answers.print(top, unsure_below=unsure_below, as_json=as_json, why_not_all=failure)
        raise typer.Exit(1)
    with _interrupt_on_sigterm(), contextlib.ExitStack() as printing:
        try:
            with client_of() as client:
                name = client.program.name  # asked for later, it would connect again
                if client.program.reveals_label and (unsure_below or arrays is not None):
                    raise _without_scores(unsure_below)
                printing.callback(
                    lambda: answers.print(top, unsure_below=unsure_below, as_json=as_json, why_not_all=failure)
                )
                if record is not None:
                    facts = client.program, client.server, client.security  # the client is closed by then
                    printing.callback(answers.keep_record, record, *facts)
                if arrays is not None:
                    printing.callback(answers.save, arrays)
                pictures = _read(client, files, answers)
                with Asking(client, pictures, prepare) as asking:
                    for answer in asking.answers():
                        answers.found.append(answer)
                ready = answers.bundles_ready = client.ready
        except SphynxError as error:
            write_flags(error, context)  # it is printed beside the images without an answer, too
            failure = error
            raise
        except KeyboardInterrupt:
            failure = SphynxError("interrupted", remedy="Ask again about the rest; bundles that are ready are kept.")
            raise failure from None
    if not as_json and (answers.found or prepare or ahead):
        typer.echo(f"{count(ready)} bundles are ready for later.", err=True)
    if not as_json and answers.found and (not_for := warning_of(name)):
        typer.echo(f"warning: {not_for}", err=True)
    if ahead:
        _stay(client_of(ahead=ahead), ahead)
    if answers.unreadable:
        raise typer.Exit(1)


def _without_scores(unsure_below: float) -> InputError:
    return InputError(
        "this server reveals labels, and neither scores nor probabilities",
        where="`unsure_below`" if unsure_below else "`arrays`",
        remedy="Leave it out.",
    )


def _read(client: Client, files: list[Path], answers: Answers) -> list[Picture]:
    pictures: list[Picture] = []
    for path in files:
        try:
            pixels = client.pixels(path)
            # A file of numbers is read again when it is asked about: integers would be taken for numbers of its range.
            pictures.append((path, pixels if client.program.input.accepts_files else path))
        except InputError as error:
            answers.unreadable[path] = error
    answers.readable = [path for path, _ in pictures]
    return pictures


@contextlib.contextmanager
def _interrupt_on_sigterm() -> Iterator[None]:
    """Treat SIGTERM as Ctrl-C: what is done is printed."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _expand(given: list[Path], failed: dict[Path, InputError]) -> list[Path]:
    """Files as they are, of folders all images below them.

    Paths that do not exist and folders without images go into `failed`."""
    files: list[Path] = []
    for path in given:
        if not path.exists():
            failed[path] = InputError("there is no such file", where=str(path), remedy="Check the path.")
            continue
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
