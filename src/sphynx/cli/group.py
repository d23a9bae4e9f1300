"""How `sphynx`, `sphynx keys` and the like list their verbs: the first sentence of each, whole.

By itself the list cuts sentences off, at 80 columns most of them.
"""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup

NO_LIMIT = 1000


class VerbGroup(TyperGroup):
    def format_commands(self, ctx: Any, formatter: Any) -> None:
        found = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, verb.get_short_help_str(NO_LIMIT)) for name, verb in found if verb and not verb.hidden]
            )
