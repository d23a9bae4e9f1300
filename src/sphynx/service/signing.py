"""Certificates and lists of revoked ones (RFC 5280), as an authority signs them; no files."""

from __future__ import annotations

import datetime
import ipaddress
import re
from collections.abc import Sequence

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from sphynx.errors import InputError

LIST_DAYS = 90  # a list of revoked keys is due again after that
_CLOCK_SKEW = datetime.timedelta(minutes=5)
_HOST = re.compile(r"(\*\.)?[A-Za-z0-9_-]{1,63}(\.[A-Za-z0-9_-]{1,63})*")


def new_key() -> ec.EllipticCurvePrivateKey:
    """Make a private key, from the operating system's generator."""
    return ec.generate_private_key(ec.SECP256R1())


def private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """Write a private key in PEM (PKCS 8), for a file that only its owner reads."""
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def now() -> datetime.datetime:
    """Return the time in whole seconds, as certificates have it."""
    return datetime.datetime.now(datetime.UTC).replace(microsecond=0)


def new_certificate(
    subject: x509.Name, issuer: x509.Name, public_key: ec.EllipticCurvePublicKey, start: datetime.datetime, days: int
) -> x509.CertificateBuilder:
    """Begin a certificate that is valid for this many days; clocks may differ by minutes."""
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(start - _CLOCK_SKEW)
        .not_valid_after(start + datetime.timedelta(days=days))
    )


def key_usage(*, digital_signature: bool = False, key_cert_sign: bool = False, crl_sign: bool = False) -> x509.KeyUsage:
    """Write what a key may be used for: these, and nothing else."""
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


def host_name(host: str) -> x509.GeneralName:
    """Write a server's name or address, as clients will connect to it."""
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


def new_list(
    authority: x509.Certificate, key: ec.EllipticCurvePrivateKey, serials: Sequence[int], *, after: int
) -> x509.CertificateRevocationList:
    """Sign a list numbered by the time of signing, so that a restored or new authority goes on above its earlier
    lists. The number is higher than `after` in any case: two lists of one second are two lists."""
    at = now()
    builder = (
        x509.CertificateRevocationListBuilder()
        .issuer_name(authority.subject)
        .last_update(at - _CLOCK_SKEW)
        .next_update(at + datetime.timedelta(days=LIST_DAYS))
        .add_extension(x509.CRLNumber(max(int(at.timestamp()), after + 1)), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()), critical=False)
    )
    for serial in serials:
        entry = x509.RevokedCertificateBuilder().serial_number(serial).revocation_date(at).build()
        builder = builder.add_revoked_certificate(entry)
    return builder.sign(key, SHA256())
