"""`sphynx demo`: from a data set to private answers on this machine, and a page about it."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sphynx.cli import options as opt
from sphynx.cli.output import called_as, print_json, print_table
from sphynx.errors import SphynxError
from sphynx.units import class_text, percent, seconds_text

if TYPE_CHECKING:
    from sphynx.demo.scenes import Answer, Scene


def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder for the page.")] = Path("out/demo"),
    pictures: Annotated[int, typer.Option("--pictures", min=1, max=100, help="How many digits to ask about.")] = 10,
    in_browser: Annotated[
        bool, typer.Option("--open", help="Open the page, then `sphynx app` for your own pictures, in the browser.")
    ] = False,
    verbose: opt.Verbose = False,
    quiet: opt.Quiet = False,
    as_json: opt.Json = False,
) -> None:
    """Design a small network for digits, serve it, and ask about pictures privately; then a CIFAR-100 network.

    Client and server are two processes on this machine and talk over mutual TLS, as they would between two machines.

    Examples:

      sphynx demo --open

      sphynx demo --pictures 50 --out demo
    """
    from sphynx.demo.page import demo_page
    from sphynx.demo.scenes import SHIPPED_MODEL, digits_scene, has_shipped_scene, shipped_scene

    voice = opt.voice_for(verbose, quiet)

    def tell(line: str) -> None:
        voice.say(f"  {line}")

    work = Path(tempfile.mkdtemp(prefix="sphynx-demo-"))
    try:
        voice.say("A network for digits:")
        scenes = [digits_scene(work / "digits", pictures, tell)]
        network = out / "digits"
        shutil.rmtree(network, ignore_errors=True)
        shutil.copytree(work / "digits" / "compiled", network)
        if has_shipped_scene():
            voice.say("A network that comes with Sphynx:")
            scenes.append(shipped_scene(work / "shipped", tell))
    finally:
        shutil.rmtree(work, ignore_errors=True)  # keys and bundles made for the occasion
    out.mkdir(parents=True, exist_ok=True)
    page = out / "demo.html"
    page.write_text(demo_page(scenes))
    if as_json:
        print_json({"page": str(page), "scenes": [_to_json(scene) for scene in scenes]})
    else:
        for scene in scenes:
            _print(scene)
        typer.echo(f"The same as a page: {page.resolve().as_uri()}")
        program = called_as()
        typer.echo(f"Your own pictures: {program} app --open   (digits: {program} app --open --local {network})")
    if not all(scene.all_equal for scene in scenes):
        raise SphynxError(
            "a private answer differs from the integer program's",
            where="demo",
            remedy="This is a bug: please report it with the output of sphynx doctor --json.",
        )
    if in_browser:
        _open(page, [*([SHIPPED_MODEL] if has_shipped_scene() else []), str(network)])


def _open(page: Path, networks: list[str]) -> None:
    import webbrowser

    from sphynx.app.opening import run_page
    from sphynx.app.parties import here

    def tell(line: str) -> None:
        typer.echo(line, err=True)

    webbrowser.open(page.resolve().as_uri())
    opens = [lambda watch, name=name: here(name, watch, tell) for name in networks]
    run_page(opens, in_browser=True, tell_address=typer.echo, tell=tell)


def _print(scene: Scene) -> None:
    from sphynx.demo.page import COLUMNS, NAMES, cost_rows

    print_table(
        scene.title,
        ["picture", "labelled", "private", "in the clear", "backend", ">online", "exact"],
        (
            [
                answer.question.name,
                class_text(answer.question.truth) or "-",
                _private_text(answer),
                class_text(answer.plaintext_label),
                NAMES[answer.private.backend],
                seconds_text(answer.private.online_seconds),
                "yes" if answer.equal else "NO",
            ]
            for answer in scene.answers
        ),
        note="exact: the private logits equal the integer oracle's, bit for bit.",
    )
    print_table(f"What it took: {scene.relus:,} ReLUs, {scene.ring_bits} bits", list(COLUMNS), cost_rows(scene))


def _private_text(answer: Answer) -> str:
    private = answer.private
    return f"{class_text(private.label)} ({percent(private.probability, 0)}){' WRONG' if answer.wrong else ''}"


def _to_json(scene: Scene) -> dict[str, object]:
    return {
        "title": scene.title,
        "relus": scene.relus,
        "ring_bits": scene.ring_bits,
        "plaintext_s": scene.plaintext_seconds,
        "test_accuracy": None if scene.judged is None else scene.judged.accuracy,
        "answers": [
            {
                "picture": answer.question.name,
                "labelled": answer.question.truth,
                "in_the_clear": answer.plaintext_label,
                "equal_to_oracle": answer.equal,
                "wrong": answer.wrong,
                **answer.private.to_json(top=1),
            }
            for answer in scene.answers
        ],
    }
