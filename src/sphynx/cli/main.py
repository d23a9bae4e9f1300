"""`sphynx`: registers the verbs and turns a failure into one message and an exit code (1 failed, 2 bad input)."""

from __future__ import annotations

import errno
import io
import sys
from collections.abc import Callable
from typing import Annotated

import typer

from sphynx.cli import app as app_verb
from sphynx.cli import (
    bench,
    check,
    compile,
    data,
    demo,
    design,
    doctor,
    estimate,
    eval,
    export,
    infer,
    inspect,
    keys,
    models,
    plan,
    recipes,
    reduce,
    report,
    search,
    serve,
    show,
    train,
)
from sphynx.cli.group import Verbs
from sphynx.cli.options import resume_command
from sphynx.errors import INSTALL_DESIGN, InterruptedWorkError, SphynxError
from sphynx.version import __version__

app = Verbs(
    name="sphynx",
    help="Design networks that are cheap to run privately, and run them privately.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)
app.command("demo")(demo.demo)
app.command("app")(app_verb.app)
app.command("plan")(plan.plan)
app.command("design")(design.design)
app.command("show")(show.show)
app.command("report")(report.report)
app.add_typer(data.app, name="data")
app.add_typer(recipes.app, name="recipes")
app.add_typer(models.app, name="models")
app.add_typer(search.app, name="search")
app.command("train")(train.train)
app.command("reduce")(reduce.reduce)
app.command("eval")(eval.evaluate)
app.command("inspect")(inspect.inspect)
app.command("compile")(compile.compile_run)
app.command("check")(check.check)
app.command("export")(export.export)
app.add_typer(keys.app, name="keys")
app.command("serve")(serve.serve)
app.command("infer")(infer.infer)
app.command("estimate")(estimate.estimate)
app.add_typer(bench.app, name="bench")
app.command("doctor")(doctor.doctor)


# What only the design wing needs: absent where no more than a client is installed.
DESIGN_PACKAGES = ("jinja2", "matplotlib", "PIL", "safetensors", "sklearn", "torch")

DISK_REMEDY = "Check the path, its permissions and the free disk space."


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"sphynx {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Design networks that are cheap to run privately."""


def _print_any_name() -> None:
    """Folders give classes their names, which need not be what a terminal can show: escaped, they can be printed."""
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")


def main() -> None:
    call(app, resume_command)


def call(verbs: typer.Typer, command_again: Callable[[], str]) -> None:
    """Run what was typed; a failure becomes one message and an exit code. `command_again` continues saved work."""
    _print_any_name()
    try:
        verbs()
    except InterruptedWorkError as error:
        print(f"error: {error}\n  remedy: Continue with: {command_again()}", file=sys.stderr)
        sys.exit(error.exit_code)
    except SphynxError as error:
        print(f"error: {error}\n  remedy: {error.remedy}", file=sys.stderr)
        sys.exit(error.exit_code)
    except OSError as error:  # what no verb foresaw: a disk that is full, a folder that was taken away
        if error.filename is None and error.errno != errno.ENOSPC:
            raise
        where = f"{error.filename}: " if error.filename is not None else ""
        print(f"error: {where}{error.strerror}\n  remedy: {DISK_REMEDY}", file=sys.stderr)
        sys.exit(1)
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in DESIGN_PACKAGES:
            raise
        print(f"error: this needs the package {error.name}\n  remedy: {INSTALL_DESIGN}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
