"""How `sphynx`, `sphynx keys` and the like list and run their verbs.

They list the first sentence of each, whole: by itself the list cuts sentences off, at 80 columns most of them. Errors
of a verb name its flags, where the library names parameters. Examples are written so that they can be copied: by itself
typer breaks those that are too wide anywhere, also within words that have a hyphen.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.models import CommandFunctionType as Called

from sphynx.cli.wording import write_flags
from sphynx.errors import SphynxError

NO_LIMIT = 1000
AS_IT_IS = "\b\n"  # before a paragraph that typer must not wrap
CONTINUED = " \\"
FLAG_WITH_VALUE = re.compile(r"( --?\S+) (?!-)")


class Verb(TyperCommand):
    """A verb whose examples can be copied from its help."""

    def format_help_text(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002  # click's
        paragraphs = inspect.cleandoc(self.help or "").split("\n\n")
        room = formatter.width - formatter.current_indent - formatter.indent_increment
        shown = [_copyable(one, room) if one.startswith(" ") else one for one in paragraphs]
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text("\n\n".join(shown))


class VerbGroup(TyperGroup):
    def format_commands(self, ctx: Any, formatter: Any) -> None:
        found = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, verb.get_short_help_str(NO_LIMIT)) for name, verb in found if verb and not verb.hidden]
            )

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except SphynxError as error:
            verb = self.get_command(ctx, ctx.invoked_subcommand or "")
            if verb is not None:
                write_flags(error, typer.Context(verb, info_name=verb.name, parent=ctx))
            raise


class Verbs(typer.Typer):
    """Verbs, registered as typer's are, listed and explained as ours."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(cls=VerbGroup, rich_markup_mode=None, **settings)

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Called], Called]:
        return super().command(name, **{"cls": Verb, **settings})


def _copyable(example: str, room: int) -> str:
    """Lines that a shell takes as one: broken between words alone, not after a flag, with a backslash."""
    lines = textwrap.wrap(
        FLAG_WITH_VALUE.sub(r"\1\0", " ".join(example.split())),
        room - len(CONTINUED),
        initial_indent="  ",
        subsequent_indent="      ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    return AS_IT_IS + f"{CONTINUED}\n".join(lines).replace("\0", " ")
