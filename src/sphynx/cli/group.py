"""How `sphynx`, `sphynx keys` and the like list and run their verbs.

They list the first sentence of each, whole: by itself the list cuts sentences off, at 80 columns most of them. Errors
of a verb name its flags, where the library names parameters.
"""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup

from sphynx.cli.wording import write_flags
from sphynx.errors import SphynxError

NO_LIMIT = 1000


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
