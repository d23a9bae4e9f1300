"""A small certificate authority in a folder: issues key folders for servers and clients, and revokes them.

    KEYS/authority/key.pem     the authority's private key (P-256): whoever has it can admit clients
    KEYS/authority/ca.pem      its certificate
    KEYS/authority/revoked.pem the signed list of revoked certificates (RFC 5280)
    KEYS/authority/issued/     a copy of every certificate, so that one can be revoked whose folder is gone
    KEYS/NAME/...              one party's folder, as `credentials` describes it: hand it over whole

A server's certificate serves no client and the other way round. Importing this needs the package `cryptography`; using
the folders does not.

    >>> sphynx.keys.init("authority-of-mine").name
    'authority'
    >>> sphynx.keys.issue("authority-of-mine", "server", hosts=["inference.example"]).name
    'server'
    >>> [(party.name, party.kind) for party in sphynx.keys.list_parties("authority-of-mine")]
    [('server', 'server')]
"""

from __future__ import annotations

import contextlib
import datetime
import fcntl
import ipaddress
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sphynx.errors import InputError, MissingPartError
from sphynx.service.credentials import AUTHORITY, CERTIFICATE, KEY, REVOKED, check_private

try:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
        load_pem_private_key,
    )
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
except ModuleNotFoundError:
    raise MissingPartError("making keys needs the package cryptography", remedy="pip install cryptography") from None

FOLDER, ISSUED = "authority", "issued"
AUTHORITY_DAYS = 3650
PARTY_DAYS = 365
LIST_DAYS = 90  # a list of revoked keys is due again after that
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_HOST = re.compile(r"(\*\.)?[A-Za-z0-9_-]{1,63}(\.[A-Za-z0-9_-]{1,63})*")
_CLOCK_SKEW = datetime.timedelta(minutes=5)


@dataclass(frozen=True)
class Party:
    """One issued folder."""

    name: str
    kind: str  # server or client
    serial: int
    not_after: datetime.datetime
    revoked: bool

    @property
    def expired(self) -> bool:
        return self.not_after <= datetime.datetime.now(datetime.UTC)


def init(folder: str | Path, *, days: int = AUTHORITY_DAYS) -> Path:
    """Make an authority in a folder, which is refused if it has one. Return the authority's own folder."""
    folder = Path(folder)
    home = folder / FOLDER
    if home.exists():
        raise InputError(
            "the folder already has an authority",
            where=str(home),
            remedy="Issue keys with it (sphynx keys issue), or choose another folder.",
        )
    key = _new_key()
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"sphynx authority {os.urandom(4).hex()}")])
    usage = _key_usage(key_cert_sign=True, crl_sign=True)
    certificate = (
        _builder(name, name, key.public_key(), _now(), days)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, SHA256())
    )
    _make_private_folder(folder)
    with _whole(home) as made:
        _make_private_folder(made / ISSUED)
        _write(made / KEY, _private_pem(key))
        _write(made / AUTHORITY, certificate.public_bytes(Encoding.PEM))
        _write(made / REVOKED, _revocation_list(certificate, key, [], after=0).public_bytes(Encoding.PEM))
    return home


def issue(
    folder: str | Path,
    name: str,
    *,
    hosts: Sequence[str] = (),
    days: int = PARTY_DAYS,
    start: datetime.datetime | None = None,
) -> Path:
    """Issue a server's keys if it has `hosts`, names or addresses that clients connect to, otherwise a client's.

    Return the folder to hand over.
    """
    folder = Path(folder)
    if not _NAME.fullmatch(name):
        raise InputError(
            f"{name!r} is not a valid name", where="`name`", remedy="Use letters, digits, '.', '_' and '-'."
        )
    if name == FOLDER:
        raise InputError(
            f"{name!r} is the folder of the authority itself", where="`name`", remedy="Choose another name."
        )
    authority, key = _load_authority(folder)
    home = folder / name
    if home.exists():
        raise InputError(
            "this name already has keys", where=str(home), remedy=f"sphynx keys revoke {name}, then remove the folder."
        )
    party_key = _new_key()
    purpose = ExtendedKeyUsageOID.SERVER_AUTH if hosts else ExtendedKeyUsageOID.CLIENT_AUTH
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    builder = (
        _builder(subject, authority.subject, party_key.public_key(), start or _now(), days)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(digital_signature=True), critical=True)
        .add_extension(x509.ExtendedKeyUsage([purpose]), critical=True)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()), critical=False)
    )
    if hosts:
        builder = builder.add_extension(x509.SubjectAlternativeName([_host(host) for host in hosts]), critical=False)
    certificate = builder.sign(key, SHA256())
    pem = certificate.public_bytes(Encoding.PEM)
    _write(folder / FOLDER / ISSUED / f"{name}.{certificate.serial_number:x}.pem", pem)
    _make_private_folder(home)
    _write(home / KEY, _private_pem(party_key))
    _write(home / CERTIFICATE, pem)
    with _alone(folder):  # a revocation at the same time finds the folder, or has signed the list that is copied
        for shared in (AUTHORITY, REVOKED):
            _write(home / shared, (folder / FOLDER / shared).read_bytes())
    return home


def revoke(folder: str | Path, name: str | None = None) -> list[Path]:
    """Sign the list of revoked keys, with all keys of this name added, and put it into every folder that is here.

    Without a name the entries stay as they are: before a list runs out, it must be signed again. Return the lists'
    places.
    """
    folder = Path(folder)
    authority, key = _load_authority(folder)
    with _alone(folder):
        issued = list_parties(folder)
        serials = {party.serial for party in issued if party.name == name}
        if name is not None and not serials:
            known = ", ".join(dict.fromkeys(party.name for party in issued)) or "nobody"
            raise InputError(f"no keys were issued to {name!r}", where=str(folder), remedy=f"Issued so far: {known}.")
        return _publish(folder, authority, key, serials)


def _publish(folder: Path, authority: x509.Certificate, key: ec.EllipticCurvePrivateKey, more: set[int]) -> list[Path]:
    before = _load_revoked(folder)
    serials = sorted(more | {entry.serial_number for entry in before})
    listed = _revocation_list(authority, key, serials, after=_number(before)).public_bytes(Encoding.PEM)
    places = list(dict.fromkeys([folder / FOLDER / REVOKED, *sorted(folder.glob(f"*/{REVOKED}"))]))
    for place in places:
        _write(place, listed)
    return places


def _number(listed: x509.CertificateRevocationList) -> int:
    try:
        return listed.extensions.get_extension_for_class(x509.CRLNumber).value.crl_number
    except x509.ExtensionNotFound:  # signed before lists had numbers
        return 0


def list_parties(folder: str | Path) -> list[Party]:
    """List everybody who ever got keys, one entry per certificate."""
    folder = Path(folder)
    _load_authority(folder)
    revoked = {entry.serial_number for entry in _load_revoked(folder)}
    found = []
    for path in sorted((folder / FOLDER / ISSUED).glob("*.pem")):
        certificate = x509.load_pem_x509_certificate(path.read_bytes())
        purposes = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
        kind = "server" if ExtendedKeyUsageOID.SERVER_AUTH in purposes else "client"
        serial = certificate.serial_number
        name = str(certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value)
        found.append(Party(name, kind, serial, certificate.not_valid_after_utc, serial in revoked))
    return found


def _load_authority(folder: Path) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    home = folder / FOLDER
    try:
        key = load_pem_private_key((home / KEY).read_bytes(), password=None)
        certificate = x509.load_pem_x509_certificate((home / AUTHORITY).read_bytes())
    except (OSError, ValueError) as error:
        raise InputError(
            f"there is no usable authority ({error})", where=str(home), remedy=f"sphynx keys init {folder}"
        ) from None
    if not isinstance(key, ec.EllipticCurvePrivateKey) or certificate.public_key() != key.public_key():
        raise InputError(
            f"{KEY} and {AUTHORITY} do not match",
            where=str(home),
            remedy=f"Restore both, or run sphynx keys init with a folder other than {folder}.",
        )
    check_private(home / KEY, "make a new authority and issue all keys again")
    return certificate, key


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Lock the folder: of two revocations at the same time the later list would admit again whom the earlier one
    took out. Their lists reach every folder that is here."""
    descriptor = os.open(folder / FOLDER, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _whole(home: Path) -> Iterator[Path]:
    """A folder that is filled first and then gets its name: where that fails, there is none, and it can be tried again.
    Half an authority could neither be used nor made anew."""
    try:
        made = Path(tempfile.mkdtemp(prefix=f"{home.name}.", dir=home.parent))
    except OSError as error:
        raise _not_created(home, error) from None
    try:
        yield made
        made.rename(home)
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
        raise


def _load_revoked(folder: Path) -> x509.CertificateRevocationList:
    path = folder / FOLDER / REVOKED
    try:
        return x509.load_pem_x509_crl(path.read_bytes())
    except (OSError, ValueError) as error:
        # Starting from an empty list here would quietly admit everybody again.
        raise InputError(f"it cannot be read ({error})", where=str(path), remedy="Restore it from a backup.") from None


def _revocation_list(
    authority: x509.Certificate, key: ec.EllipticCurvePrivateKey, serials: Sequence[int], *, after: int
) -> x509.CertificateRevocationList:
    """Sign a list numbered by the time of signing, so that a restored or new authority goes on above its earlier
    lists. The number is higher than `after` in any case: two lists of one second are two lists."""
    now = _now()
    builder = (
        x509.CertificateRevocationListBuilder()
        .issuer_name(authority.subject)
        .last_update(now - _CLOCK_SKEW)
        .next_update(now + datetime.timedelta(days=LIST_DAYS))
        .add_extension(x509.CRLNumber(max(int(now.timestamp()), after + 1)), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()), critical=False)
    )
    for serial in serials:
        entry = x509.RevokedCertificateBuilder().serial_number(serial).revocation_date(now).build()
        builder = builder.add_revoked_certificate(entry)
    return builder.sign(key, SHA256())


def _builder(
    subject: x509.Name, issuer: x509.Name, public_key: ec.EllipticCurvePublicKey, start: datetime.datetime, days: int
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(start - _CLOCK_SKEW)
        .not_valid_after(start + datetime.timedelta(days=days))
    )


def _key_usage(
    *, digital_signature: bool = False, key_cert_sign: bool = False, crl_sign: bool = False
) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=digital_signature,
        key_cert_sign=key_cert_sign,
        crl_sign=crl_sign,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        pass
    if not _HOST.fullmatch(host):
        raise InputError(
            f"{host!r} is not a valid host name",
            where="`hosts`",
            remedy="Give a name or an address, without a port, as clients will write it.",
        )
    return x509.DNSName(host)


def _new_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def _private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC).replace(microsecond=0)


def _make_private_folder(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise _not_created(folder, error) from None


def _not_created(folder: Path, error: OSError) -> InputError:
    return InputError(f"cannot be created ({error.strerror})", where=str(folder), remedy="Choose another.")


def _write(path: Path, content: bytes) -> None:
    """Whole or not at all, and never readable by others, not even while it is written."""
    temporary = path.with_name(path.name + ".new")
    temporary.unlink(missing_ok=True)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
