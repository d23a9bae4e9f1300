"""The page from its start to Ctrl-C: what `sphynx app` does, and `sphynx demo --open` at its end."""

from __future__ import annotations

import contextlib
import html
import signal
import tempfile
import threading
import webbrowser
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

from sphynx.api.rates import machine_rates
from sphynx.app.bulletin import Bulletin
from sphynx.app.desk import Desk
from sphynx.app.parties import Parties
from sphynx.app.watch import Watch
from sphynx.app.web import UNSURE_BELOW, App
from sphynx.program.backends import Backend

Opens = Callable[[Watch], AbstractContextManager[Parties]]  # the parties of one network, watched


def run_page(
    networks: Sequence[Opens],
    *,
    backend: Backend = "gmw",
    ready: int = 2,
    port: int = 0,
    in_browser: bool = False,
    unsure_below: float = UNSURE_BELOW,
    tell_address: Callable[[str], None],
    tell: Callable[[str], None],
) -> None:
    """Show the page until Ctrl-C or SIGTERM; then the server here is stopped, and the keys made for it are deleted."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with ExitStack() as opened:
        desks = []
        for opens in networks:
            watch = Watch()
            parties = opened.enter_context(opens(watch))
            desk = Desk(parties, watch, Bulletin(), machine_rates, backend=backend, keep_ready=ready)
            desks.append(opened.enter_context(desk))
        page = App(desks, port, unsure_below)
        tell_address(page.url)
        is_opened = in_browser and webbrowser.open(opened.enter_context(redirecting_file(page.url)).as_uri())
        tell(f"{'If no page appears, open' if is_opened else 'Open'} this address in a browser on this machine.")
        tell("Press Ctrl-C to stop.")
        with contextlib.suppress(KeyboardInterrupt):
            threading.Event().wait()
        page.close()


@contextlib.contextmanager
def redirecting_file(url: str) -> Iterator[Path]:
    """Make a file that leads a browser to `url`, for the user's eyes only; it is deleted at the end.

    The address holds the token, and every user of a machine may see what programs were started with.
    """
    address = html.escape(url)
    page = f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="referrer" content="no-referrer"><title>Sphynx</title>
<meta http-equiv="refresh" content="0; url={address}"></head><body><a href="{address}">Open the page</a></body></html>
"""
    with tempfile.TemporaryDirectory(prefix="sphynx-app-") as folder:  # which is 0700
        file = Path(folder) / "open.html"
        file.touch(mode=0o600)
        file.write_text(page, encoding="utf-8")
        yield file
