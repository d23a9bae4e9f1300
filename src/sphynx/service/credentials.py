"""A key folder as TLS settings: TLS 1.3 only, both sides prove themselves to the same authority.

    key.pem       this party's private key, readable by its owner alone
    cert.pem      its certificate
    ca.pem        the authority's certificate: nothing else is trusted, not even the system's authorities
    revoked.pem   the authority's list of revoked certificates; read again whenever it changes

Every certificate on the way to the authority's is looked up in the lists, not the party's alone.
A server refuses a list that its authority has not signed or that is older than one it has used, and lets nobody in by
one that is overdue. A client, which may not get new lists, goes on with a warning.

`sphynx keys issue` makes such folders. Reading one needs the standard library only.
"""

from __future__ import annotations

import contextlib
import ssl
import threading
import time
from collections.abc import Callable
from pathlib import Path

from sphynx.errors import HandshakeError, InputError
from sphynx.service.certificate import Role, why_not_file
from sphynx.service.revocation import Revocations, SeenNumbers, read_revocations

KEY, CERTIFICATE, AUTHORITY, REVOKED = "key.pem", "cert.pem", "ca.pem", "revoked.pem"
FILES = (KEY, CERTIFICATE, AUTHORITY, REVOKED)
LIST_WARNING_S = 14 * 86_400.0  # before the next list is due
# X509_V_ERR_CERT_NOT_YET_VALID, _CERT_HAS_EXPIRED, _CRL_HAS_EXPIRED, _CERT_REVOKED and _INVALID_PURPOSE of OpenSSL
_NOT_YET_VALID, _EXPIRED, _LIST_OVERDUE, _REVOKED, _OTHER_PURPOSE = 9, 10, 12, 23, 26
_ANY_TIME = 0x200000  # X509_V_FLAG_NO_CHECK_TIME: `ssl` has no name for it
_NEWEST_LIST = "Copy the authority's newest revoked.pem here (sphynx keys revoke signs a new one)."
_SERVERS_KEYS = "Give keys of a server: sphynx keys issue NAME --server HOST."
_CLIENTS_KEYS = "Give keys of a client: sphynx keys issue NAME --client."
Stamp = tuple[tuple[int, int, int], ...]


def server_context(folder: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.verify_mode = ssl.CERT_REQUIRED
    context.num_tickets = 0  # a resumed session would skip the check of the client's certificate
    return _load(context, folder)


def client_context(folder: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.hostname_checks_common_name = False  # a name that the authority wrote for people, perhaps a client's
    return _load(context, folder)


def check_server_keys(folder: Path) -> None:
    """Refuse keys that every client would reject."""
    error = _judge_by_itself(folder)
    if error is None:
        _check_role(folder, Role.SERVER, "client", _SERVERS_KEYS)
        return
    if error.verify_code == _LIST_OVERDUE:
        raise InputError(
            "its list of revoked keys is overdue: no client would be admitted",
            where=str(folder / REVOKED),
            remedy=_NEWEST_LIST,
        )
    remedies = {
        _NOT_YET_VALID: "Check this machine's clock.",
        _OTHER_PURPOSE: _SERVERS_KEYS,
    }
    raise InputError(
        f"no client would accept these keys: {error.verify_message}",
        where=str(folder),
        remedy=remedies.get(error.verify_code, "Issue new keys for this server: sphynx keys issue NAME --server HOST."),
    )


def check_client_keys(folder: Path) -> None:
    """Refuse keys that are certainly wrong: a server's, or expired ones. Only a server knows whom it admits."""
    error = _judge_by_itself(folder, as_client=True)
    remedies = {
        _NOT_YET_VALID: "Check this machine's clock.",
        _EXPIRED: "Ask for new ones: sphynx keys issue NAME --client.",
        _OTHER_PURPOSE: _CLIENTS_KEYS,
    }
    if error is not None and error.verify_code in remedies:
        raise InputError(
            f"no server would accept these keys: {error.verify_message}",
            where=str(folder),
            remedy=remedies[error.verify_code],
        )
    _check_role(folder, Role.CLIENT, "server", _CLIENTS_KEYS)


def _check_role(folder: Path, role: Role, other: str, remedy: str) -> None:
    """Check what the other party looks at beyond OpenSSL's own checks."""
    why = why_not_file(folder / CERTIFICATE, role)
    if why:
        raise InputError(f"no {other} would accept these keys: {why}", where=str(folder), remedy=remedy)


def _why_not_signed(folder: Path) -> str:
    """Say why the list is not signed by the authority, at whatever time; empty if it is. OpenSSL checks that before
    it looks for the server's own certificate in it."""
    error = _judge_by_itself(folder, _ANY_TIME)
    return "" if error is None or error.verify_code == _REVOKED else error.verify_message


def _judge_by_itself(folder: Path, flags: int = 0, *, as_client: bool = False) -> ssl.SSLCertVerificationError | None:
    """A party's keys shake hands with themselves in memory: why the other one would not accept them."""
    of_client, of_server = client_context(folder), server_context(folder)
    of_client.check_hostname = False  # whom clients will ask for is not known here
    if as_client:
        of_client.verify_mode = ssl.CERT_NONE
        of_server.verify_flags &= ~ssl.VERIFY_CRL_CHECK_CHAIN  # a client's list may be overdue
    of_client.verify_flags |= flags
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = of_client.wrap_bio(to_client, to_server)
    server = of_server.wrap_bio(to_server, to_client, server_side=True)
    try:
        # TLS 1.3: with its second step the client has judged the server's certificate, and the server then the client's
        for side in (client, server, client, server)[: 4 if as_client else 3]:
            with contextlib.suppress(ssl.SSLWantReadError):
                side.do_handshake()
    except ssl.SSLCertVerificationError as error:
        return error
    return None


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
        self._is_end_told = False
        why_not = self._why_not(self._stamp, self._list)
        if why_not:
            raise InputError(why_not, where=str(folder / REVOKED), remedy=_NEWEST_LIST)
        self._warn_of_end()

    def context(self) -> ssl.SSLContext:
        with self._lock:
            self._refresh()
            return self._context

    def is_revoked(self, serial: int) -> bool:
        """Return whether a certificate was revoked, for open connections: a new one is judged by its handshake."""
        with self._lock:
            self._refresh()
            return serial in self._list.serials

    def list_ends_soon(self) -> bool:
        return self._list.next_update_s - time.time() < LIST_WARNING_S

    def is_list_overdue(self) -> bool:
        """Return whether the list is overdue, for connections that are open: OpenSSL then refuses every new one."""
        return self._list.next_update_s <= time.time()

    def _refresh(self) -> None:
        if self._look() != self._stamp:
            stamp, context, listed = self._read()
            why_not = self._why_not(stamp, listed)
            self._stamp = stamp  # last: a list that could not be judged, on a full disk for instance, is judged again
            if why_not:
                self._warn(f"{why_not}; the previous one still applies")
            else:
                self._context, self._list, self._is_end_told = context, listed, False
        self._warn_of_end()

    def _why_not(self, stamp: Stamp, listed: Revocations) -> str:
        """Why it may not be used; empty if it may. Its number counts from now on."""
        unsigned = _why_not_signed(self._folder)
        if unsigned or self._look() != stamp:
            return f"this list of revoked keys cannot be verified ({unsigned or 'it changed meanwhile'})"
        newest = self._seen.raise_to(listed.number) if self._seen else max(self._list.number, listed.number)
        if listed.number == newest:
            return ""
        return f"this list of revoked keys (number {listed.number}) is older than one used before (number {newest})"

    def _warn_of_end(self) -> None:
        """Once for each list, when its time has come: a server may run for months with one."""
        if self.list_ends_soon() and not self._is_end_told:
            self._is_end_told = True
            self._warn(
                "the list of revoked keys expires soon: run sphynx keys revoke, without a name, to sign it again"
            )

    def _read(self) -> tuple[Stamp, ssl.SSLContext, Revocations]:
        return self._look(), server_context(self._folder), _read_list(self._folder)

    def _look(self) -> Stamp:
        _check_files(self._folder)
        found = ((self._folder / name).stat() for name in FILES)
        return tuple((status.st_mtime_ns, status.st_size, status.st_ino) for status in found)


class ClientKeys:
    """A client's folder. Without a new list for long it goes on by the one it has: `warn` hears of it."""

    def __init__(self, folder: Path, warn: Callable[[str], None]) -> None:
        check_client_keys(folder)
        self._folder, self._warn = folder, warn
        self.context = client_context(folder)
        self._list = _read_list(folder)
        self._is_overdue = self._list.next_update_s <= time.time()
        if self._is_overdue:
            # OpenSSL would refuse every server now. The serial is compared in `check` instead.
            self.context.verify_flags &= ~ssl.VERIFY_CRL_CHECK_CHAIN
            warn(f"{folder / REVOKED} is overdue: ask for the authority's newest list, which may name this server")

    def warn_if_older(self, seen: SeenNumbers) -> None:
        """After a handshake, which verifies the list. An overdue one is not verified, and its number not kept."""
        newest = seen.raise_to(0 if self._is_overdue else self._list.number)
        if self._list.number < newest:
            self._warn(f"{self._folder / REVOKED} is older than one that was here before: ask for the newest list")

    def check(self, server_serial: int, where: str) -> None:
        """Refuse a server whose certificate was revoked; `where` is the server, for the error."""
        if server_serial in self._list.serials:
            raise HandshakeError(
                "the server's certificate was revoked", where=where, remedy="Contact the server's operator."
            )


def _read_list(folder: Path) -> Revocations:
    try:
        return read_revocations((folder / REVOKED).read_bytes())
    except (OSError, ValueError) as error:
        raise InputError(
            f"its list of revoked keys cannot be used ({error})", where=str(folder / REVOKED), remedy=_NEWEST_LIST
        ) from None


def _load(context: ssl.SSLContext, folder: Path) -> ssl.SSLContext:
    _check_files(folder)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.verify_flags |= ssl.VERIFY_CRL_CHECK_CHAIN
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
            "other users of this machine may read the private key",
            where=str(key),
            remedy=f"chmod 600 {key}; if somebody else may have read it, {otherwise}.",
        )
