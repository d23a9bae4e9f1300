"""A small certificate authority in a folder: signs requests for keys, and revokes keys.

    KEYS/authority/key.pem     the authority's private key (P-256): whoever has it can admit clients
    KEYS/authority/ca.pem      its certificate
    KEYS/authority/revoked.pem the signed list of revoked certificates (RFC 5280)
    KEYS/authority/issued/     a copy of every certificate, so that one can be revoked wherever its key is

A request (RFC 2986) is believed in one thing alone: that whoever wrote it holds the key. The name, the part that its
holder may play, the hosts and the time are said by whoever signs. A name that has valid keys gets no others: bundles,
limits and strikes are kept by name. So a request is signed for new keys, or, with nothing said, for those that the name
has: a renewal, which may be left to a timer. A server's certificate serves no client and the other way round.
"""

from __future__ import annotations

import contextlib
import datetime
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sphynx import system
from sphynx.errors import InputError, MissingPartError
from sphynx.service.credentials import AUTHORITY, KEY, REVOKED, check_private
from sphynx.service.key_files import make_private_folder, whole_folder, write_private

try:
    from cryptography import x509
except ModuleNotFoundError:
    raise MissingPartError("making keys needs the package cryptography", remedy="pip install cryptography") from None

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from sphynx.service.revocation import number_of
from sphynx.service.signing import host_name, key_usage, new_certificate, new_key, new_list, now, private_pem

FOLDER, ISSUED = "authority", "issued"
AUTHORITY_DAYS = 3650
PARTY_DAYS = 90
MAX_REQUEST_BYTES = 1 << 16
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


@dataclass(frozen=True)
class Party:
    """Somebody who got a certificate."""

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
            remedy="Sign requests with it (sphynx keys sign), or choose another folder.",
        )
    key = new_key()
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"sphynx authority {os.urandom(4).hex()}")])
    usage = key_usage(key_cert_sign=True, crl_sign=True)
    certificate = (
        new_certificate(name, name, key.public_key(), now(), days)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, SHA256())
    )
    make_private_folder(folder)
    with whole_folder(home) as made:
        make_private_folder(made / ISSUED)
        write_private(made / KEY, private_pem(key))
        write_private(made / AUTHORITY, certificate.public_bytes(Encoding.PEM))
        write_private(made / REVOKED, new_list(certificate, key, [], after=0).public_bytes(Encoding.PEM))
    return home


def sign(
    folder: str | Path,
    name: str,
    request: str | Path,
    *,
    client: bool = False,
    hosts: Sequence[str] = (),
    days: int = PARTY_DAYS,
    start: datetime.datetime | None = None,
    out: str | Path | None = None,
) -> Path:
    """Sign a request: for a server if it has `hosts`, names or addresses that clients connect to, or for a `client`.

    Without either it renews the keys that the name has, as what they are. Return the file to send back, which holds no
    secret: the certificate, the authority's own, and the list of revoked keys. It is `out`, or lies beside the request.
    """
    folder, request = Path(folder), Path(request)
    check_name(name)
    with alone(folder):
        answer = sign_alone(
            folder, name, read_request(request, name), client=client, hosts=hosts, days=days, start=start
        )
    out = request.with_name(f"{name}.signed.pem") if out is None else Path(out)
    write_private(out, answer)
    return out


def sign_alone(
    folder: Path,
    name: str,
    request: x509.CertificateSigningRequest,
    *,
    client: bool = False,
    hosts: Sequence[str] = (),
    days: int = PARTY_DAYS,
    start: datetime.datetime | None = None,
) -> bytes:
    """Sign as `sign` does, for whoever holds the folder's lock; return what to send back."""
    if client and hosts:
        raise InputError(
            "keys are either a client's or a server's", where="`client`, `hosts`", remedy="Request keys for each."
        )
    authority, key = _load_authority(folder)
    public_key = _public_key_of(request)
    current = [one for one in _certificates(folder, name) if _is_valid(folder, one)]
    renewed = [one for one in current if one.public_key() == public_key]
    if current and not renewed:
        raise InputError(
            f"{name!r} already has other valid keys",
            where="`name`",
            remedy=f"Renew those, or revoke them first: sphynx keys revoke {name}.",
        )
    if not (client or hosts):
        if not renewed:
            raise InputError(
                f"{name!r} has no valid keys that this request could renew",
                where="`client`, `hosts`",
                remedy="Say what the new keys are for: those of a client, or of a server and its hosts.",
            )
        purposes, names = _purposes(renewed[-1]), _hosts_of(renewed[-1])
    else:
        purposes = [ExtendedKeyUsageOID.SERVER_AUTH if hosts else ExtendedKeyUsageOID.CLIENT_AUTH]
        names = [host_name(host) for host in hosts]
        if renewed and _purposes(renewed[-1]) != purposes:
            raise InputError(
                f"{name!r} has keys of the other kind", where="`name`", remedy="Choose another name for these."
            )
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    builder = (
        new_certificate(subject, authority.subject, public_key, start or now(), days)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(key_usage(digital_signature=True), critical=True)
        .add_extension(x509.ExtendedKeyUsage(purposes), critical=True)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()), critical=False)
    )
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    certificate = builder.sign(key, SHA256())
    pem = certificate.public_bytes(Encoding.PEM)
    write_private(folder / FOLDER / ISSUED / f"{name}.{certificate.serial_number:x}.pem", pem)
    return pem + b"".join((folder / FOLDER / shared).read_bytes() for shared in (AUTHORITY, REVOKED))


def check_name(name: str) -> None:
    """Refuse what cannot be the name of a party and of its folder."""
    if not _NAME.fullmatch(name):
        raise InputError(
            f"{name!r} is not a valid name", where="`name`", remedy="Use letters, digits, '.', '_' and '-'."
        )
    if name == FOLDER:
        raise InputError(
            f"{name!r} is the folder of the authority itself", where="`name`", remedy="Choose another name."
        )


def read_request(path: Path, name: str) -> x509.CertificateSigningRequest:
    """Read a request, and refuse one of another name."""
    try:
        with path.open("rb") as file:
            request = x509.load_pem_x509_csr(file.read(MAX_REQUEST_BYTES))
        found = [str(one.value) for one in request.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    except (OSError, ValueError) as error:
        raise InputError(
            f"it cannot be read as a request ({error})", where=str(path), remedy="sphynx keys request makes one."
        ) from None
    if found != [name]:
        raise InputError(
            f"the request is for {found[0]!r}, not for {name!r}" if found else "the request has no name",
            where=str(path),
            remedy="Ask its sender for another: sphynx keys request NAME.",
        )
    return request


def _public_key_of(request: x509.CertificateSigningRequest) -> ec.EllipticCurvePublicKey:
    """Return the key that the request's writer has proved to hold."""
    try:
        key = request.public_key()
        is_signed = request.is_signature_valid
    except (ValueError, TypeError) as error:  # kinds of keys and signatures that the package does not know
        raise InputError(f"its key cannot be used ({error})", where="request", remedy="Use a key on P-256.") from None
    if not is_signed:
        raise InputError(
            "the request is not signed with its own key", where="request", remedy="Ask for it again: it was changed."
        )
    if not isinstance(key, ec.EllipticCurvePublicKey) or not isinstance(key.curve, ec.SECP256R1):
        raise InputError("its key is not one on P-256", where="request", remedy="sphynx keys request makes one.")
    return key


def _certificates(folder: Path, name: str | None = None) -> list[x509.Certificate]:
    """Read all certificates that were issued, or those of one name, in the order of their beginning."""
    found = [x509.load_pem_x509_certificate(path.read_bytes()) for path in (folder / FOLDER / ISSUED).glob("*.pem")]
    found.sort(key=lambda one: (_name_of(one), one.not_valid_before_utc, one.not_valid_after_utc))
    return [one for one in found if name in (None, _name_of(one))]


def _is_valid(folder: Path, certificate: x509.Certificate) -> bool:
    is_revoked = _load_revoked(folder).get_revoked_certificate_by_serial_number(certificate.serial_number)
    return certificate.not_valid_after_utc > now() and is_revoked is None


def _name_of(certificate: x509.Certificate) -> str:
    return str(certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value)


def _purposes(certificate: x509.Certificate) -> list[x509.ObjectIdentifier]:
    return list(certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value)


def _hosts_of(certificate: x509.Certificate) -> list[x509.GeneralName]:
    try:
        return list(certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value)
    except x509.ExtensionNotFound:
        return []


def revoke(folder: str | Path, name: str | None = None) -> list[Path]:
    """Sign the list of revoked keys, with all keys of this name added, and put it into every folder that is here.

    Without a name the entries stay as they are: before a list runs out, it must be signed again. Return the lists'
    places.
    """
    folder = Path(folder)
    authority, key = _load_authority(folder)
    with alone(folder):
        issued = list_parties(folder)
        serials = {party.serial for party in issued if party.name == name}
        if name is not None and not serials:
            known = ", ".join(dict.fromkeys(party.name for party in issued)) or "nobody"
            raise InputError(f"no keys were issued to {name!r}", where=str(folder), remedy=f"Issued so far: {known}.")
        return _publish(folder, authority, key, serials)


def _publish(folder: Path, authority: x509.Certificate, key: ec.EllipticCurvePrivateKey, more: set[int]) -> list[Path]:
    before = _load_revoked(folder)
    serials = sorted(more | {entry.serial_number for entry in before})
    listed = new_list(authority, key, serials, after=number_of(before)).public_bytes(Encoding.PEM)
    places = list(dict.fromkeys([folder / FOLDER / REVOKED, *sorted(folder.glob(f"*/{REVOKED}"))]))
    for place in places:
        write_private(place, listed)
    return places


def list_parties(folder: str | Path) -> list[Party]:
    """List everybody who ever got keys, one entry per certificate."""
    folder = Path(folder)
    _load_authority(folder)
    revoked = {entry.serial_number for entry in _load_revoked(folder)}
    found = []
    for one in _certificates(folder):
        kind = "server" if ExtendedKeyUsageOID.SERVER_AUTH in _purposes(one) else "client"
        serial = one.serial_number
        found.append(Party(_name_of(one), kind, serial, one.not_valid_after_utc, serial in revoked))
    return found


def authority_fingerprint(folder: str | Path) -> str:
    """Return the SHA-256 of the authority's certificate, which its parties compare when they install theirs."""
    return _load_authority(Path(folder))[0].fingerprint(SHA256()).hex()


def _load_authority(folder: Path) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    home = folder / FOLDER
    try:
        key = load_pem_private_key((home / KEY).read_bytes(), password=None)
        certificate = x509.load_pem_x509_certificate((home / AUTHORITY).read_bytes())
    except (OSError, ValueError) as error:
        raise _no_authority(folder, error) from None
    if not isinstance(key, ec.EllipticCurvePrivateKey) or certificate.public_key() != key.public_key():
        raise InputError(
            f"{KEY} and {AUTHORITY} do not match",
            where=str(home),
            remedy=f"Restore both, or run sphynx keys init with a folder other than {folder}.",
        )
    check_private(home / KEY, "make a new authority and sign all keys again")
    return certificate, key


def _no_authority(folder: Path, error: Exception) -> InputError:
    return InputError(
        f"there is no usable authority ({error})", where=str(folder / FOLDER), remedy=f"sphynx keys init {folder}"
    )


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Lock the folder: of two revocations at the same time the later list would admit again whom the earlier one
    took out. Their lists reach every folder that is here."""
    try:
        descriptor = os.open(folder / FOLDER, os.O_RDONLY)
    except OSError as error:
        raise _no_authority(folder, error) from None
    try:
        system.lock(descriptor)
        yield
    finally:
        os.close(descriptor)


def _load_revoked(folder: Path) -> x509.CertificateRevocationList:
    path = folder / FOLDER / REVOKED
    try:
        return x509.load_pem_x509_crl(path.read_bytes())
    except (OSError, ValueError) as error:
        # Starting from an empty list here would quietly admit everybody again.
        raise InputError(f"it cannot be read ({error})", where=str(path), remedy="Restore it from a backup.") from None
