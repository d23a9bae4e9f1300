"""Decide who may talk to the page's server: only a page that it served itself, to whoever was given the address.

A browser reaches loopback for any site it shows, so the address alone protects nothing. A request is refused unless

    its path begins with the token of this run: 256 bits, in the address that the user was told;
    its Host is this server's own, by address or as localhost: another name means DNS rebinding;
    its Origin and Sec-Fetch-Site, where a browser sends them, say that it comes from this page, or from no page at all,
    or it opens the page itself, as the file does that `sphynx app --open` shows to the browser.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping

TOKEN_BYTES = 32
HOST = "127.0.0.1"


class Access:
    def __init__(self, port: int) -> None:
        self.token = secrets.token_urlsafe(TOKEN_BYTES)
        self._hosts = {f"{name}:{port}" for name in (HOST, "localhost")}
        self.url = f"http://{HOST}:{port}/{self.token}/"

    def granted_path(self, path: str, headers: Mapping[str, str]) -> str | None:
        """The path that is asked for below the token; None: refused."""
        given, _, rest = path.removeprefix("/").partition("/")
        if not secrets.compare_digest(given.encode(), self.token.encode()) or headers.get("Host") not in self._hosts:
            return None
        origin, site = headers.get("Origin"), headers.get("Sec-Fetch-Site")
        if origin is not None and origin != f"http://{headers['Host']}":
            return None
        opens_page = (rest, headers.get("Sec-Fetch-Mode"), headers.get("Sec-Fetch-Dest")) == (
            "",
            "navigate",
            "document",
        )
        return rest if site in (None, "none", "same-origin") or opens_page else None
