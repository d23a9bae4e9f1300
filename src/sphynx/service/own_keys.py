"""A party's own keys: made where they are used, and never sent.

    KEYS/NAME/key.pem       the private key (P-256), made by `request` and kept for as long as the name has it
    KEYS/NAME/request.pem   what the authority signs (RFC 2986): the public key and the name
    KEYS/NAME/...           the rest of the folder, as `credentials` describes it, out of the authority's answer

Neither a request nor an answer is secret. An answer must not be another's all the same: it says whom to trust. Compare
the authority's fingerprint the first time; afterwards the folder holds on to that authority.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key
from cryptography.x509.oid import NameOID

from sphynx.errors import InputError
from sphynx.service.authority import check_name
from sphynx.service.credentials import AUTHORITY, CERTIFICATE, KEY, REVOKED, check_private
from sphynx.service.key_files import make_private_folder, write_private
from sphynx.service.revocation import number_of
from sphynx.service.signing import new_key, private_pem

REQUEST = "request.pem"
_LIST_BEGINS = b"-----BEGIN X509 CRL-----"
_MAKE_ONE = "sphynx keys request NAME makes one."


def request(folder: str | Path, name: str) -> Path:
    """Make a private key for a name, unless its folder has one, and a request to sign. Return the request's file."""
    check_name(name)
    home = Path(folder) / name
    if not (home / KEY).exists():
        make_private_folder(home)
        write_private(home / KEY, private_pem(new_key()))
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    asked = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(_load_key(home), SHA256())
    write_private(home / REQUEST, asked.public_bytes(Encoding.PEM))
    return home / REQUEST


def install(folder: str | Path, name: str, answer: str | Path) -> str:
    """Put what the authority sent back into the name's folder, file by file, so that whoever uses it notices nothing.

    Return the authority's fingerprint: the SHA-256 of its certificate.
    """
    check_name(name)
    home = Path(folder) / name
    try:
        authority = install_signed(home, Path(answer).read_bytes())
    except OSError as error:
        raise InputError(
            f"it cannot be read ({error.strerror})",
            where=str(answer),
            remedy="Give the file that sphynx keys sign made.",
        ) from None
    except ValueError as error:
        raise InputError(
            f"it does not answer this request: {error}", where=str(answer), remedy="Ask the authority for it again."
        ) from None
    return authority


def install_signed(home: Path, answer: bytes) -> str:
    """Install as `install` does; a ValueError says what is wrong with the answer."""
    certificate, authority = _pair(x509.load_pem_x509_certificates(answer))
    listed = x509.load_pem_x509_crl(answer[answer.find(_LIST_BEGINS) :])
    if certificate.public_key() != _load_key(home).public_key():
        raise ValueError("the certificate is for another key")
    try:
        certificate.verify_directly_issued_by(authority)
    except (InvalidSignature, TypeError, ValueError):
        raise ValueError("the certificate is not signed by the authority beside it") from None
    key = authority.public_key()
    if not isinstance(key, ec.EllipticCurvePublicKey) or not listed.is_signature_valid(key):
        raise ValueError("the list of revoked keys is not signed by the authority beside it")
    pem = authority.public_bytes(Encoding.PEM)
    if (home / AUTHORITY).exists() and x509.load_pem_x509_certificate((home / AUTHORITY).read_bytes()) != authority:
        raise ValueError("it is of another authority than the keys that are there")
    write_private(home / AUTHORITY, pem)
    if not (home / REVOKED).exists() or number_of(listed) > number_of(
        x509.load_pem_x509_crl((home / REVOKED).read_bytes())
    ):
        write_private(home / REVOKED, listed.public_bytes(Encoding.PEM))
    write_private(home / CERTIFICATE, certificate.public_bytes(Encoding.PEM))
    (home / REQUEST).unlink(missing_ok=True)
    return authority.fingerprint(SHA256()).hex()


def _pair(found: Sequence[x509.Certificate]) -> tuple[x509.Certificate, x509.Certificate]:
    if len(found) != 2:
        raise ValueError(f"it holds {len(found)} certificates, not this party's and the authority's")
    return found[0], found[1]


def _load_key(home: Path) -> ec.EllipticCurvePrivateKey:
    try:
        key = load_pem_private_key((home / KEY).read_bytes(), password=None)
    except (OSError, ValueError, TypeError) as error:
        raise InputError(f"there is no usable key ({error})", where=str(home / KEY), remedy=_MAKE_ONE) from None
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise InputError("it is not a key on P-256", where=str(home / KEY), remedy=_MAKE_ONE)
    check_private(home / KEY, "revoke it and make a new one")
    return key
