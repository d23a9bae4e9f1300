"""A key folder as TLS settings: TLS 1.3 only, both sides prove themselves to the same authority.

    key.pem       this party's private key, readable by its owner alone
    cert.pem      its certificate
    ca.pem        the authority's certificate: nothing else is trusted, not even the system's authorities
    revoked.pem   the authority's list of revoked certificates; read again whenever it changes

Every certificate on the way to the authority's is looked up in the lists, not the party's alone.
A server refuses a list that its authority has not signed or that is older than one it has used, and lets nobody in by
one that is overdue (`fresh_keys.py`). A client, which may not get new lists, goes on with a warning.

`sphynx keys` makes such folders. A client reads one with the standard library only: lists are OpenSSL's to read.
"""

from __future__ import annotations

import contextlib
import ssl
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from sphynx.errors import HandshakeError, InputError
from sphynx.service.certificate import Role, why_not_file

KEY, CERTIFICATE, AUTHORITY, REVOKED = "key.pem", "cert.pem", "ca.pem", "revoked.pem"
FILES = (KEY, CERTIFICATE, AUTHORITY, REVOKED)
# X509_V_ERR_CERT_NOT_YET_VALID, _CERT_HAS_EXPIRED, _CRL_HAS_EXPIRED, _CERT_REVOKED and _INVALID_PURPOSE of OpenSSL
_NOT_YET_VALID, _EXPIRED, _LIST_OVERDUE, _REVOKED, _OTHER_PURPOSE = 9, 10, 12, 23, 26
_ANY_TIME = 0x200000  # X509_V_FLAG_NO_CHECK_TIME: `ssl` has no name for it
NEWEST_LIST = "Copy the authority's newest revoked.pem here (sphynx keys revoke signs a new one)."
_SERVERS_KEYS = "Give keys that were signed for a server: sphynx keys sign NAME --server HOST."
_CLIENTS_KEYS = "Give keys that were signed for a client: sphynx keys sign NAME --client."
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
            remedy=NEWEST_LIST,
        )
    remedies = {
        _NOT_YET_VALID: "Check this machine's clock.",
        _OTHER_PURPOSE: _SERVERS_KEYS,
    }
    raise InputError(
        f"no client would accept these keys: {error.verify_message}",
        where=str(folder),
        remedy=remedies.get(error.verify_code, "Renew this server's keys: sphynx keys renew NAME."),
    )


def check_client_keys(folder: Path) -> None:
    """Refuse keys that are certainly wrong: a server's, or expired ones. Only a server knows whom it admits."""
    error = _judge_by_itself(folder, as_client=True)
    remedies = {
        _NOT_YET_VALID: "Check this machine's clock.",
        _EXPIRED: "Renew them: sphynx keys renew NAME.",
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


def why_list_is_unsigned(folder: Path) -> str:
    """Say why a server's list is not signed by the authority, at whatever time; empty if it is. OpenSSL checks that
    before it looks for the server's own certificate in it."""
    error = _judge_by_itself(folder, _ANY_TIME)
    return "" if error is None or error.verify_code == _REVOKED else error.verify_message


def _judge_by_itself(
    folder: Path, flags: int = 0, *, as_client: bool = False, looks_up: bool = False
) -> ssl.SSLCertVerificationError | None:
    """A party's keys shake hands with themselves in memory: why the other one would not accept them. A client's list,
    which may be overdue, counts only if that is asked for."""
    of_client, of_server = client_context(folder), server_context(folder)
    of_client.check_hostname = False  # whom clients will ask for is not known here
    if as_client:
        of_client.verify_mode = ssl.CERT_NONE
        if not looks_up:
            of_server.verify_flags &= ~ssl.VERIFY_CRL_CHECK_CHAIN
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


class ClientKeys:
    """A client's folder. Without a new list for long it goes on by the one it has: `warn` hears of it.

    The list itself is read by OpenSSL alone, so a client that only asks needs no other parser of it.
    """

    def __init__(self, folder: Path, warn: Callable[[str], None]) -> None:
        check_client_keys(folder)
        self._folder = folder
        self._stamp = stamp_of(folder)
        self.context = client_context(folder)
        self._is_overdue = _is_list_overdue(folder)
        if self._is_overdue:
            # OpenSSL would refuse every server now. It goes on looking them up, and `check` looks at the clock.
            self.context.verify_flags |= _ANY_TIME
            warn(f"{folder / REVOKED} is overdue: ask for the authority's newest list, which may name this server")

    def have_changed(self) -> bool:
        """Return whether the folder holds other keys, or another list, than these."""
        with contextlib.suppress(InputError, OSError):  # a folder that lacks a file is about to be replaced
            return stamp_of(self._folder) != self._stamp
        return False

    def check(self, server_expires_at: float, where: str) -> None:
        """Refuse a server whose certificate has expired where OpenSSL does not; `where` is it, for the error."""
        if not self._is_overdue:
            return
        ends = [server_expires_at, *(_expiry(found) for found in self.context.get_ca_certs())]
        if min(ends) <= time.time():
            raise HandshakeError(
                "the server's certificate, or the authority's, has expired",
                where=where,
                remedy="Contact the server's operator, or check this machine's clock.",
            )


def stamp_of(folder: Path) -> Stamp:
    """Say which files are there now: replaced ones have another stamp."""
    _check_files(folder)
    found = ((folder / name).stat() for name in FILES)
    return tuple((status.st_mtime_ns, status.st_size, status.st_ino) for status in found)


def _is_list_overdue(folder: Path) -> bool:
    error = _judge_by_itself(folder, as_client=True, looks_up=True)
    return error is not None and error.verify_code == _LIST_OVERDUE


def _expiry(certificate: Mapping[str, object]) -> float:
    return ssl.cert_time_to_seconds(str(certificate["notAfter"]))


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
            remedy="Make new ones: sphynx keys --help.",
        ) from None
    return context


def _check_files(folder: Path) -> None:
    missing = [name for name in FILES if not (folder / name).is_file()]
    if missing:
        raise InputError(
            f"there is no {', '.join(missing)}",
            where=str(folder),
            remedy="Give a folder with " + ", ".join(FILES) + ", as sphynx keys request and install make it.",
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
