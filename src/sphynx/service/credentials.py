"""A key folder as TLS settings: TLS 1.3 only, both sides prove themselves to the same authority.

    key.pem       this party's private key, readable by its owner alone
    cert.pem      its certificate
    ca.pem        the authority's certificate: nothing else is trusted, not even the system's authorities
    revoked.pem   the authority's list of revoked certificates; read again whenever it changes

`sphynx keys issue` makes such folders. Reading one needs the standard library only.
"""

from __future__ import annotations

import contextlib
import ssl
import threading
from pathlib import Path

from sphynx.errors import InputError
from sphynx.service.revocation import revoked_serials

KEY, CERTIFICATE, AUTHORITY, REVOKED = "key.pem", "cert.pem", "ca.pem", "revoked.pem"
FILES = (KEY, CERTIFICATE, AUTHORITY, REVOKED)


def server_context(folder: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.verify_mode = ssl.CERT_REQUIRED
    context.num_tickets = 0  # a resumed session would skip the check of the client's certificate
    return _load(context, folder)


def client_context(folder: Path) -> ssl.SSLContext:
    return _load(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), folder)


def check_server_keys(folder: Path) -> None:
    """Shakes hands with itself in memory: by keys that no client accepts a server would start and serve nobody."""
    context = client_context(folder)
    context.check_hostname = False  # whom clients will ask for is not known here
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(to_client, to_server)
    server = server_context(folder).wrap_bio(to_server, to_client, server_side=True)
    try:
        for side in (client, server, client):  # TLS 1.3: then the client has judged the server's certificate
            with contextlib.suppress(ssl.SSLWantReadError):
                side.do_handshake()
    except ssl.SSLCertVerificationError as error:
        raise InputError(
            f"no client would accept these keys: {error.verify_message}",
            where=str(folder),
            remedy="Give keys of a server: sphynx keys issue NAME --server HOST.",
        ) from None


class FreshKeys:
    """A server's folder as it is now: read again after `revoked.pem` or the certificate was replaced."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._stamp = self._look()
        self._context, self._revoked = self._read()

    def context(self) -> ssl.SSLContext:
        with self._lock:
            self._refresh()
            return self._context

    def is_revoked(self, serial: int) -> bool:
        """For connections that are open: a new one is judged by its handshake."""
        with self._lock:
            self._refresh()
            return serial in self._revoked

    def _refresh(self) -> None:
        stamp = self._look()
        if stamp != self._stamp:
            (self._context, self._revoked), self._stamp = self._read(), stamp

    def _read(self) -> tuple[ssl.SSLContext, frozenset[int]]:
        context = server_context(self._folder)
        try:
            return context, revoked_serials((self._folder / REVOKED).read_bytes())
        except (OSError, ValueError) as error:
            raise InputError(
                f"its list of revoked keys cannot be used ({error})",
                where=str(self._folder / REVOKED),
                remedy="Copy the authority's again: sphynx keys revoke --help.",
            ) from None

    def _look(self) -> tuple[tuple[int, int, int], ...]:
        _check_files(self._folder)
        found = ((self._folder / name).stat() for name in FILES)
        return tuple((status.st_mtime_ns, status.st_size, status.st_ino) for status in found)


def _load(context: ssl.SSLContext, folder: Path) -> ssl.SSLContext:
    _check_files(folder)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF
    try:
        context.load_cert_chain(folder / CERTIFICATE, folder / KEY)
        context.load_verify_locations(folder / AUTHORITY)
        context.load_verify_locations(folder / REVOKED)
    except (ssl.SSLError, OSError) as error:
        raise InputError(
            f"its keys cannot be used ({error.strerror or error})",
            where=str(folder),
            remedy="Issue them again: sphynx keys issue --help.",
        ) from None
    return context


def _check_files(folder: Path) -> None:
    missing = [name for name in FILES if not (folder / name).is_file()]
    if missing:
        raise InputError(
            f"there is no {', '.join(missing)}",
            where=str(folder),
            remedy="Give the folder that `sphynx keys issue NAME` made (it holds " + ", ".join(FILES) + ").",
        )
    check_private(folder / KEY, "revoke it and issue a new one")


def check_private(key: Path, otherwise: str) -> None:
    """`otherwise`: what to do about a key that somebody else may have read."""
    if key.stat().st_mode & 0o077:
        raise InputError(
            "others on this machine may read the private key",
            where=str(key),
            remedy=f"chmod 600 {key}; if somebody else may have read it, {otherwise}.",
        )
