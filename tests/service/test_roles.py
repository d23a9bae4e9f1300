"""Certificates of an authority that is not `sphynx keys`: who may be a client, and who a server, by what it signed."""

from __future__ import annotations

import datetime
import io
import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID, ObjectIdentifier

from sphynx.errors import ConnectionLostError, HandshakeError, InputError
from sphynx.service.certificate import Role, why_not
from sphynx.service.client import Client
from sphynx.service.credentials import check_client_keys, check_server_keys, client_context, server_context
from sphynx.service.settings import Limits
from sphynx.service.tls import TlsStream
from tests.service.test_limits import serving

CLIENT, SERVER = ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH
ANY, CODE = ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE, ExtendedKeyUsageOID.CODE_SIGNING
NOW = datetime.datetime.now(datetime.UTC)
SKEW = datetime.timedelta(days=1)


class Issuer:
    """An authority: its own root, or one that another signed."""

    def __init__(self, name: str, above: Issuer | None = None) -> None:
        self.key, self.name = ec.generate_private_key(ec.SECP256R1()), name
        self.certificate = (above or self).signed(name, self.key, is_authority=True)

    def signed(
        self,
        name: str,
        key: ec.EllipticCurvePrivateKey,
        purposes: Sequence[ObjectIdentifier] = (),
        host: str = "",
        *,
        is_authority: bool = False,
    ) -> x509.Certificate:
        builder = (
            x509.CertificateBuilder(_named(self.name), _named(name), key.public_key(), x509.random_serial_number())
            .not_valid_before(NOW - SKEW)
            .not_valid_after(NOW + SKEW)
            .add_extension(x509.BasicConstraints(is_authority, None), critical=True)
        )
        if purposes:
            builder = builder.add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
        if host:
            builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        return builder.sign(self.key, SHA256())

    def revoking(self, *certificates: x509.Certificate) -> x509.CertificateRevocationList:
        builder = x509.CertificateRevocationListBuilder(_named(self.name), NOW - SKEW, NOW + SKEW)
        builder = builder.add_extension(x509.CRLNumber(1), critical=False)
        for one in certificates:
            entry = x509.RevokedCertificateBuilder(one.serial_number, NOW)
            builder = builder.add_revoked_certificate(entry.build())
        return builder.sign(self.key, SHA256())


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def key_folder(
    folder: Path,
    root: Issuer,
    name: str,
    purposes: Sequence[ObjectIdentifier],
    host: str = "",
    *,
    by: Issuer | None = None,
    lists: Sequence[x509.CertificateRevocationList] = (),
) -> Path:
    key, made = ec.generate_private_key(ec.SECP256R1()), folder / f"{name} {len(list(folder.iterdir()))}"
    made.mkdir()
    chain = [(by or root).signed(name, key, purposes, host), *([by.certificate] if by else [])]
    (made / "key.pem").touch(mode=0o600)
    (made / "key.pem").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    (made / "cert.pem").write_bytes(b"".join(one.public_bytes(Encoding.PEM) for one in chain))
    (made / "ca.pem").write_bytes(root.certificate.public_bytes(Encoding.PEM))
    (made / "revoked.pem").write_bytes(b"".join(one.public_bytes(Encoding.PEM) for one in lists or (root.revoking(),)))
    return made


def shake_hands(server: Path, client: Path) -> None:
    """Raises what either side refuses the other for."""
    left, right = socket.socketpair()
    with left, right, ThreadPoolExecutor(1) as pool:
        asking = pool.submit(TlsStream.connect, right, client_context(client), "localhost", handshake_s=20)
        try:
            TlsStream.accept(left, server_context(server), handshake_s=20)
        finally:
            left.shutdown(socket.SHUT_RDWR)
            refused = asking.exception()
            if isinstance(refused, HandshakeError) and "closed the connection" not in refused.what:
                raise refused


@pytest.fixture(scope="module")
def root() -> Issuer:
    return Issuer("an authority of somebody else")


def test_a_client_has_to_be_marked_as_one(root: Issuer, tmp_path: Path) -> None:
    server = key_folder(tmp_path, root, "server", [SERVER], "localhost")
    for purposes in ([CLIENT], [CLIENT, SERVER], [CODE, CLIENT]):
        shake_hands(server, key_folder(tmp_path, root, "alice", purposes))
    with pytest.raises(HandshakeError, match="is not marked as a client's"):
        shake_hands(server, key_folder(tmp_path, root, "alice", []))
    for purposes in ([SERVER], [ANY], [CODE]):
        with pytest.raises(HandshakeError, match="unsuitable certificate purpose"):
            shake_hands(server, key_folder(tmp_path, root, "alice", purposes))


def test_a_server_has_to_be_marked_as_one_and_to_name_its_host(root: Issuer, tmp_path: Path) -> None:
    """Otherwise a client whose name is that of a host could be taken for a server there."""
    client = key_folder(tmp_path, root, "alice", [CLIENT])
    with pytest.raises(HandshakeError, match="is not marked as a server's"):
        shake_hands(key_folder(tmp_path, root, "localhost", [], "localhost"), client)
    for purposes in ([CLIENT], [ANY]):
        with pytest.raises(HandshakeError, match="unsuitable certificate purpose"):
            shake_hands(key_folder(tmp_path, root, "localhost", purposes, "localhost"), client)
    with pytest.raises(HandshakeError, match="not valid for 'localhost'"):
        shake_hands(key_folder(tmp_path, root, "localhost", [SERVER]), client)


def test_a_client_of_a_revoked_intermediate_authority_is_refused(root: Issuer, tmp_path: Path) -> None:
    between = Issuer("between", root)
    for revoked in ((), (between.certificate,)):
        lists = (root.revoking(*revoked), between.revoking())
        server = key_folder(tmp_path, root, "server", [SERVER], "localhost", lists=lists)
        client = key_folder(tmp_path, root, "alice", [CLIENT], by=between, lists=lists)
        if not revoked:
            shake_hands(server, client)
    with pytest.raises(HandshakeError, match="certificate revoked"):
        shake_hands(server, client)


def test_keys_that_the_other_side_would_refuse_are_refused_at_once(root: Issuer, tmp_path: Path) -> None:
    unmarked = key_folder(tmp_path, root, "alice", [], "localhost")
    with pytest.raises(InputError, match=r"no server would accept these keys: .* not marked as a client's") as caught:
        check_client_keys(unmarked)
    assert "--client" in caught.value.remedy
    with pytest.raises(InputError, match=r"no client would accept these keys: .* not marked as a server's"):
        check_server_keys(unmarked)
    with pytest.raises(InputError, match="names no host"):
        check_server_keys(key_folder(tmp_path, root, "localhost", [SERVER]))
    check_client_keys(key_folder(tmp_path, root, "alice", [CLIENT]))
    check_server_keys(key_folder(tmp_path, root, "server", [SERVER], "localhost"))


def test_a_server_logs_the_refusal_and_serves_nobody_unmarked(
    root: Issuer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "keys").mkdir()
    unmarked = key_folder(tmp_path / "keys", root, "alice", [])
    served = key_folder(tmp_path / "keys", root, "server", [SERVER], "localhost").rename(tmp_path / "keys" / "server")
    unmarked.rename(tmp_path / "keys" / "alice")
    log = io.StringIO()
    monkeypatch.setattr("sphynx.service.credentials.check_client_keys", lambda _folder: None)  # a changed client
    assert served.is_dir()
    with serving(tmp_path, tmp_path / "keys", Limits(), log) as (asking, _):
        client = Client("localhost", asking._address.port, keys=tmp_path / "keys" / "alice", state=tmp_path / "client")
        with pytest.raises(ConnectionLostError), client:
            pass
    assert "is not marked as a client's" in log.getvalue() and '"connected"' not in log.getvalue()


def test_an_extended_key_usage_that_is_there_twice_counts_for_nothing(root: Issuer) -> None:
    """RFC 5280 forbids it; two readers could each take another one."""
    der = root.signed("alice", root.key, [CLIENT]).public_bytes(Encoding.DER)
    assert not why_not(der, Role.CLIENT) and "not marked" in why_not(der, Role.SERVER)
    assert "cannot be read" in why_not(der[:100], Role.CLIENT)
    usage = element(
        0x30, element(0x06, b"\x55\x1d\x25") + element(0x04, x509.ExtendedKeyUsage([CLIENT]).public_bytes())
    )
    for times, is_one in ((1, True), (2, False)):
        made = element(0x30, element(0x30, element(0xA3, element(0x30, times * usage))))
        assert (not why_not(made, Role.CLIENT)) == is_one


def element(tag: int, content: bytes) -> bytes:
    return bytes((tag, len(content))) + content
