"""A server's key folder as it is now: renewed keys and new lists of revoked ones take effect without a restart."""

from __future__ import annotations

import ssl
import threading
import time
from collections.abc import Callable
from pathlib import Path

from sphynx.errors import InputError
from sphynx.service.credentials import (
    CERTIFICATE,
    NEWEST_LIST,
    REVOKED,
    Stamp,
    server_context,
    stamp_of,
    why_list_is_unsigned,
)
from sphynx.service.revocation import Revocations, SeenNumbers, lifetime_of, read_revocations

LIST_WARNING_S = 14 * 86_400.0  # before the next list is due


class FreshKeys:
    """A server's folder as it is now: read again after `revoked.pem` or the certificate was replaced.

    Where the list is not signed by the authority or older than one used before (`seen`), the folder as it was still
    counts, and `warn` hears of it. At the start, when nothing newer is known but the number, it is an error.
    """

    def __init__(
        self, folder: Path, seen: SeenNumbers | None = None, warn: Callable[[str], None] = lambda _why: None
    ) -> None:
        self._folder, self._seen, self._warn = folder, seen, warn
        self._lock = threading.Lock()
        self._stamp, self._context, self._list = self._read()
        self._is_end_told = self._is_expiry_told = False
        why_not = self._why_not(self._stamp, self._list)
        if why_not:
            raise InputError(why_not, where=str(folder / REVOKED), remedy=NEWEST_LIST)
        self._warn_of_ends()

    def context(self) -> ssl.SSLContext:
        with self._lock:
            self._refresh()
            return self._context

    def is_revoked(self, serial: int) -> bool:
        """Return whether a certificate was revoked, for open connections: a new one is judged by its handshake."""
        with self._lock:
            self._refresh()
            return serial in self._list.serials

    def expires_at(self) -> float:
        """When this server's certificate expires, in seconds since 1970."""
        return self._lifetime[1]

    def list_ends_soon(self) -> bool:
        return self._list.next_update_s - time.time() < LIST_WARNING_S

    def is_list_overdue(self) -> bool:
        """Return whether the list is overdue, for connections that are open: OpenSSL then refuses every new one."""
        return self._list.next_update_s <= time.time()

    def _refresh(self) -> None:
        if stamp_of(self._folder) != self._stamp:
            stamp, context, listed = self._read()
            why_not = self._why_not(stamp, listed)
            self._stamp = stamp  # last: a list that could not be judged, on a full disk for instance, is judged again
            if why_not:
                self._warn(f"{why_not}; the previous one still applies")
            else:
                self._context, self._list = context, listed
                self._is_end_told = self._is_expiry_told = False
        self._warn_of_ends()

    def _why_not(self, stamp: Stamp, listed: Revocations) -> str:
        """Why it may not be used; empty if it may. Its number counts from now on."""
        unsigned = why_list_is_unsigned(self._folder)
        if unsigned or stamp_of(self._folder) != stamp:
            return f"this list of revoked keys cannot be verified ({unsigned or 'it changed meanwhile'})"
        newest = self._seen.raise_to(listed.number) if self._seen else max(self._list.number, listed.number)
        if listed.number == newest:
            return ""
        return f"this list of revoked keys (number {listed.number}) is older than one used before (number {newest})"

    def _warn_of_ends(self) -> None:
        """Once for each list and certificate, when its time has come: a server may run for months with one."""
        if self.list_ends_soon() and not self._is_end_told:
            self._is_end_told = True
            self._warn(
                "the list of revoked keys expires soon: run sphynx keys revoke, without a name, to sign it again"
            )
        begins_at, ends_at = self._lifetime
        if ends_at - time.time() < (ends_at - begins_at) / 3 and not self._is_expiry_told:
            self._is_expiry_told = True
            self._warn("this server's certificate expires soon: renew it with sphynx keys renew")

    def _read(self) -> tuple[Stamp, ssl.SSLContext, Revocations]:
        stamp, context, listed = stamp_of(self._folder), server_context(self._folder), _read_list(self._folder)
        self._lifetime = lifetime_of((self._folder / CERTIFICATE).read_bytes())
        return stamp, context, listed


def _read_list(folder: Path) -> Revocations:
    try:
        return read_revocations((folder / REVOKED).read_bytes())
    except (OSError, ValueError) as error:
        raise InputError(
            f"its list of revoked keys cannot be used ({error})", where=str(folder / REVOKED), remedy=NEWEST_LIST
        ) from None
