"""Keys that stay where they are made: requests, answers, renewal under running servers and clients."""

from __future__ import annotations

import datetime
import re
import shutil
import ssl
import subprocess
from pathlib import Path

import numpy as np
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.asymmetric.types import CertificateIssuerPrivateKeyTypes
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding

import sphynx
from sphynx.errors import InputError, PeerGaveUpError
from sphynx.service import keys
from sphynx.service.credentials import FILES
from sphynx.service.fresh_keys import FreshKeys
from sphynx.service.revocation import read_revocations
from tests.service.authority import LONG_AGO
from tests.service.scene import Scene


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """An authority on its own."""
    keys.init(tmp_path / "home")
    return tmp_path / "home"


def certificate(folder: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate((folder / "cert.pem").read_bytes())


def asked(name: str | None, key: CertificateIssuerPrivateKeyTypes, path: Path) -> Path:
    """A request as somebody else's program writes it."""
    parts = [] if name is None else [x509.NameAttribute(x509.NameOID.COMMON_NAME, name)]
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(parts))
    digest = None if isinstance(key, ed25519.Ed25519PrivateKey) else SHA256()
    path.write_bytes(builder.sign(key, digest).public_bytes(Encoding.PEM))
    return path


def test_a_key_never_leaves_the_folder_that_made_it(home: Path, tmp_path: Path) -> None:
    request = keys.request(tmp_path / "alices", "alice")
    private = (tmp_path / "alices" / "alice" / "key.pem").read_bytes()
    answer = keys.sign(home, "alice", request, client=True, out=tmp_path / "mail")
    assert keys.install(tmp_path / "alices", "alice", answer) == keys.authority_fingerprint(home)
    folder = tmp_path / "alices" / "alice"
    assert sorted(path.name for path in folder.iterdir()) == sorted(FILES)
    secret = private.split(b"\n")[1]
    assert not any(secret in path.read_bytes() for path in home.rglob("*") if path.is_file())
    assert b"PRIVATE" not in answer.read_bytes() and (folder / "key.pem").read_bytes() == private


def test_openssl_s_own_requests_are_signed_and_its_verifier_agrees(home: Path, tmp_path: Path) -> None:
    """External truth: a party can do without Sphynx until it asks."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("no openssl on this machine")
    folder = tmp_path / "keys" / "alice"
    folder.mkdir(parents=True, mode=0o700)
    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", str(folder / "key.pem"))
    done = subprocess.run(
        [openssl, "req", "-new", *curve, "-subj", "/CN=alice", "-out", str(folder / "request.pem")],
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (folder / "key.pem").chmod(0o600)
    keys.install(tmp_path / "keys", "alice", keys.sign(home, "alice", folder / "request.pem", client=True))
    ours = keys.request(tmp_path, "bob")
    verified = subprocess.run([openssl, "req", "-verify", "-noout", "-in", str(ours)], capture_output=True, check=False)
    assert verified.returncode == 0
    command = [openssl, "verify", "-CAfile", str(folder / "ca.pem"), "-CRLfile", str(folder / "revoked.pem")]
    done = subprocess.run([*command, "-crl_check", str(folder / "cert.pem")], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


def test_whoever_signs_says_what_is_signed(home: Path, tmp_path: Path) -> None:
    request = keys.request(tmp_path, "alice")
    with pytest.raises(InputError, match="is for 'alice', not for 'bob'"):
        keys.sign(home, "bob", request, client=True)
    with pytest.raises(InputError, match="no valid keys that this request could renew"):
        keys.sign(home, "alice", request)
    with pytest.raises(InputError, match="a client's or a server's"):
        keys.sign(home, "alice", request, client=True, hosts=["inference.example"])
    keys.install(tmp_path, "alice", keys.sign(home, "alice", request, client=True))
    with pytest.raises(InputError, match="keys of the other kind"):
        keys.sign(home, "alice", keys.request(tmp_path, "alice"), hosts=["inference.example"])
    with pytest.raises(InputError, match="already has other valid keys"):  # who asks under her name gets none
        keys.sign(home, "alice", keys.request(tmp_path / "mallory", "alice"), client=True)
    assert [party.name for party in keys.list_parties(home)] == ["alice"]


def test_requests_that_prove_nothing_are_refused(home: Path, tmp_path: Path) -> None:
    good = asked("alice", ec.generate_private_key(ec.SECP256R1()), tmp_path / "good")
    der = bytearray(ssl.PEM_cert_to_DER_cert(good.read_text().replace("CERTIFICATE REQUEST", "CERTIFICATE")))
    der[-1] ^= 1  # its signature
    forged = tmp_path / "forged"
    forged.write_text(ssl.DER_cert_to_PEM_cert(bytes(der)).replace("CERTIFICATE", "CERTIFICATE REQUEST"))
    (tmp_path / "none").write_bytes(b"no request")
    for path, why in (
        (forged, "not signed with its own key"),
        (tmp_path / "none", "cannot be read as a request"),
        (tmp_path / "absent", "cannot be read as a request"),
        (asked(None, ec.generate_private_key(ec.SECP256R1()), tmp_path / "nameless"), "has no name"),
        (asked("alice", ec.generate_private_key(ec.SECP384R1()), tmp_path / "p384"), "not one on P-256"),
        (asked("alice", rsa.generate_private_key(65537, 2048), tmp_path / "rsa"), "not one on P-256"),
        (asked("alice", ed25519.Ed25519PrivateKey.generate(), tmp_path / "ed"), "not one on P-256"),
    ):
        with pytest.raises(InputError, match=why):
            keys.sign(home, "alice", path, client=True)
    assert not keys.list_parties(home)


def test_answers_of_others_are_not_installed(home: Path, tmp_path: Path) -> None:
    own = tmp_path / "own"
    good = keys.sign(home, "alice", keys.request(own, "alice"), client=True, out=tmp_path / "good")
    keys.init(tmp_path / "other")
    others = keys.sign(tmp_path / "other", "alice", own / "alice" / "request.pem", client=True, out=tmp_path / "others")
    bobs = keys.sign(home, "bob", keys.request(tmp_path / "bobs", "bob"), client=True)
    blocks = re.findall(rb"-----BEGIN [^-]+-----.+?-----END [^-]+-----\n", good.read_bytes(), re.DOTALL)
    strange = re.findall(rb"-----BEGIN [^-]+-----.+?-----END [^-]+-----\n", others.read_bytes(), re.DOTALL)
    mixed = {
        "another key": bobs.read_bytes(),
        "not signed by the authority beside it": blocks[0] + strange[1] + strange[2],
        "list of revoked keys is not signed": blocks[0] + blocks[1] + strange[2],
        "it holds 1 certificates": blocks[0] + blocks[2],
    }
    for why, answer in {**mixed, "it does not answer": b"", "does not answer": blocks[0] + blocks[1]}.items():
        (tmp_path / "answer").write_bytes(answer)
        with pytest.raises(InputError, match=why):
            keys.install(own, "alice", tmp_path / "answer")
    assert not (own / "alice" / "cert.pem").exists()
    keys.install(own, "alice", good)
    with pytest.raises(InputError, match="of another authority than the keys that are there"):
        keys.install(own, "alice", others)
    with pytest.raises(InputError, match="cannot be read"):
        keys.install(own, "alice", tmp_path / "absent")


def test_a_renewal_keeps_key_part_and_hosts_and_brings_the_newest_list(home: Path, tmp_path: Path) -> None:
    own = tmp_path / "own"
    hosts = ["inference.example", "10.0.0.7"]
    keys.install(own, "server", keys.sign(home, "server", keys.request(own, "server"), hosts=hosts))
    before, private = certificate(own / "server"), (own / "server" / "key.pem").read_bytes()
    keys.issue(home, "alice")
    keys.revoke(home, "alice")
    request = keys.renew(own, "server", days=7)
    assert request == own / "server" / "request.pem"
    keys.install(own, "server", keys.sign(home, "server", request, days=7))
    after = certificate(own / "server")
    assert (own / "server" / "key.pem").read_bytes() == private and after.serial_number != before.serial_number
    kinds: tuple[type[x509.ExtensionType], ...] = (x509.SubjectAlternativeName, x509.ExtendedKeyUsage)
    for kind in kinds:
        first, second = (one.extensions.get_extension_for_class(kind).value for one in (before, after))
        assert first == second
    assert after.not_valid_after_utc - after.not_valid_before_utc < datetime.timedelta(days=8)
    assert len(read_revocations((own / "server" / "revoked.pem").read_bytes()).serials) == 1
    old = (own / "server" / "revoked.pem").read_bytes()
    keys.revoke(home)
    shutil.copy(home / "authority" / "revoked.pem", own / "server" / "revoked.pem")
    newest = (own / "server" / "revoked.pem").read_bytes()
    late = keys.sign(home, "server", keys.renew(own, "server"))
    late.write_bytes(late.read_bytes().replace(newest, old))
    keys.install(own, "server", late)  # an answer that comes late brings no older list
    assert (own / "server" / "revoked.pem").read_bytes() == newest


def test_what_may_be_left_to_a_timer_renews_and_nothing_else(home: Path, tmp_path: Path) -> None:
    old = keys.issue(home, "old", days=30, start=LONG_AGO)
    with pytest.raises(InputError, match="no valid keys that this request could renew"):
        keys.renew(home, "old")
    assert old.is_dir()
    keys.issue(home, "alice")
    keys.revoke(home, "alice")
    with pytest.raises(InputError, match="no valid keys that this request could renew"):
        keys.renew(home, "alice")
    with pytest.raises(InputError, match="there are no keys to renew"):
        keys.renew(tmp_path, "nobody")
    assert keys.renew(home, keys.issue(home, "bob").name) == home / "bob"


def test_a_running_server_and_client_are_renewed_without_noticing(scene: Scene, tmp_path: Path) -> None:
    """Bundles, and the connection's answers, go on; the new certificates are those that each side then sees."""
    scene.authority = tmp_path / "own"
    keys.init(scene.authority)
    scene.server.keys = keys.issue(scene.authority, "server", hosts=["127.0.0.1"], days=2)
    keys.issue(scene.authority, "alice", days=2)
    scene.server.start()
    alice = scene.authority / "alice"
    address = f"127.0.0.1:{scene.server.port}"
    with sphynx.Client(address, keys=alice, state=scene.client_state, backend="gmw") as client:
        client.prepare(4)
        first = scene.server.wait_for("connected")["fingerprint"]
        for renewed in (("server",), ("alice",), ("server", "alice")):
            for name in renewed:
                keys.renew(scene.authority, name, days=2)
            assert np.array_equal(client.infer(scene.pixels).integer_logits, scene.logits)
        assert client.ready == 1
        second = scene.server.wait_for("connected")["fingerprint"]
    assert first != second
    assert sorted(scene.states(scene.server.state)) == ["burned"] * 3 + ["ready"]
    keys.revoke(scene.authority, "alice")  # all that she ever had
    with pytest.raises((PeerGaveUpError, sphynx.HandshakeError), match="revoked"):
        sphynx.Client(address, keys=alice, state=scene.client_state).prepare(1)
    assert scene.server.stop() == 0


def test_a_server_says_before_its_certificate_expires(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    warned: list[str] = []
    server = keys.issue(home, "server", hosts=["127.0.0.1"], days=30)
    fresh = FreshKeys(server, warn=warned.append)
    assert not warned and fresh.expires_at() == certificate(server).not_valid_after_utc.timestamp()
    later_s = fresh.expires_at() - 9 * 86_400
    monkeypatch.setattr("time.time", lambda: later_s)
    for _ in range(2):
        fresh.context()
    assert warned == ["this server's certificate expires soon: renew it with sphynx keys renew"]
    keys.renew(home, "server")
    fresh.context()
    assert len(warned) == 1
