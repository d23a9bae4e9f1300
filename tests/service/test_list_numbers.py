"""Lists of revoked keys have numbers and an end: an old one put back admits nobody, and an overdue one is noticed."""

from __future__ import annotations

import datetime
import socket
import subprocess
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key

from sphynx.errors import HandshakeError, InputError, PeerGaveUpError
from sphynx.service import keys, signing
from sphynx.service.credentials import ClientKeys, check_server_keys, server_context
from sphynx.service.fresh_keys import FreshKeys
from sphynx.service.revocation import SEEN, SeenNumbers, read_revocations
from sphynx.service.tls import Peer, TlsStream
from tests.service.processes import ROOT, WAIT_S, command, environment
from tests.service.scene import Scene
from tests.service.test_full_disk import full_disk

A_MINUTE_AGO = -1 / 1440  # days


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An authority with a server, alice and bob."""
    keys.init(tmp_path / "own")
    keys.issue(tmp_path / "own", "server", hosts=["127.0.0.1"])
    for name in ("alice", "bob"):
        keys.issue(tmp_path / "own", name)
    return tmp_path / "own"


def serial(folder: Path, name: str) -> int:
    return next(party.serial for party in keys.list_parties(folder) if party.name == name)


def signed_list(folder: Path, number: int | None, signer: Path | None = None) -> bytes:
    """A list in the authority's name; without a number as authorities signed them before there were numbers."""
    home, now = folder / "authority", datetime.datetime.now(datetime.UTC)
    authority = x509.load_pem_x509_certificate((home / "ca.pem").read_bytes())
    key = load_pem_private_key(((signer or home) / "key.pem").read_bytes(), None)
    builder = x509.CertificateRevocationListBuilder().issuer_name(authority.subject).last_update(now)
    builder = builder.next_update(now + datetime.timedelta(days=1))
    if number is not None:
        builder = builder.add_extension(x509.CRLNumber(number), critical=False)
    return builder.sign(key, SHA256()).public_bytes(Encoding.PEM)  # type: ignore[arg-type]


def test_numbers_and_ends_are_read_as_another_implementation_reads_them(folder: Path) -> None:
    numbers, listed = [], folder / "server" / "revoked.pem"
    for change in (lambda: None, lambda: keys.revoke(folder, "alice"), lambda: keys.revoke(folder)):
        change()
        ours, theirs = read_revocations(listed.read_bytes()), x509.load_pem_x509_crl(listed.read_bytes())
        assert ours.number == theirs.extensions.get_extension_for_class(x509.CRLNumber).value.crl_number
        assert theirs.next_update_utc is not None and ours.next_update_s == theirs.next_update_utc.timestamp()
        assert ours.serials == {entry.serial_number for entry in theirs}
        numbers.append(ours.number)
    assert numbers[0] < numbers[1] < numbers[2]  # also within one second
    assert ours.serials == {serial(folder, "alice")}
    assert read_revocations(signed_list(folder, None)).number == 0


@pytest.mark.parametrize("remembers", [False, True])
def test_an_old_list_put_back_admits_nobody(folder: Path, tmp_path: Path, remembers: bool) -> None:
    listed, warned = folder / "server" / "revoked.pem", list[str]()
    old = listed.read_bytes()
    seen = SeenNumbers(tmp_path / "state" / SEEN) if remembers else None
    fresh = FreshKeys(folder / "server", seen, warned.append)
    keys.revoke(folder, "alice")
    assert fresh.is_revoked(serial(folder, "alice")) and not warned
    newer = fresh.context()
    listed.write_bytes(old)
    assert fresh.is_revoked(serial(folder, "alice")) and fresh.context() is newer
    (why,) = warned  # once, not at every request
    assert "is older than one used before" in why
    keys.revoke(folder, "bob")
    assert fresh.is_revoked(serial(folder, "bob")) and fresh.context() is not newer


def test_a_server_does_not_start_by_an_older_list(folder: Path, tmp_path: Path) -> None:
    listed, seen = folder / "server" / "revoked.pem", SeenNumbers(tmp_path / "state" / SEEN)
    listed.write_bytes(signed_list(folder, None))
    FreshKeys(folder / "server", seen)
    keys.revoke(folder)
    FreshKeys(folder / "server", seen)
    listed.write_bytes(signed_list(folder, None))
    with pytest.raises(InputError, match=r"number 0\) is older than one used before") as refusal:
        FreshKeys(folder / "server", seen)
    assert "sphynx keys revoke" in refusal.value.remedy
    keys.revoke(folder)
    FreshKeys(folder / "server", seen)
    seen.path.write_text("half a num")
    with pytest.raises(InputError, match="does not hold the number"):
        FreshKeys(folder / "server", seen)


def test_a_forged_list_neither_counts_nor_leaves_its_number(folder: Path, tmp_path: Path) -> None:
    """Its number would make every honest list look old."""
    listed, warned = folder / "server" / "revoked.pem", list[str]()
    honest = listed.read_bytes()
    number = read_revocations(honest).number
    forged = signed_list(folder, 10 * number, signer=folder / "alice")  # the authority's name, another key
    seen = SeenNumbers(tmp_path / "state" / SEEN)
    fresh = FreshKeys(folder / "server", seen, warned.append)
    before = fresh.context()
    for wrong in (forged, forged + honest, honest + forged):
        listed.write_bytes(wrong)
        assert fresh.context() is before or wrong != forged
        assert seen.raise_to(0) == number
    assert "cannot be verified (CRL signature failure)" in warned[0]
    listed.write_bytes(forged)
    with pytest.raises(InputError, match="cannot be verified"):
        FreshKeys(folder / "server", seen)
    keys.revoke(folder, "alice")
    assert fresh.is_revoked(serial(folder, "alice")) and seen.raise_to(0) > number
    keys.revoke(folder, "server")  # a list that names the server itself is signed as well as others
    FreshKeys(folder / "server", seen)


def test_a_client_uses_no_list_that_was_not_verified(scene: Scene, folder: Path) -> None:
    scene.authority, scene.server.keys = folder, folder / "server"
    scene.server.start()
    listed = folder / "alice" / "revoked.pem"
    honest = listed.read_bytes()
    listed.write_bytes(signed_list(folder, 10 * read_revocations(honest).number, signer=folder / "bob"))
    with pytest.raises(HandshakeError, match="CRL signature failure"):
        scene.client().__enter__()
    listed.write_bytes(honest)
    with scene.client() as alice:
        assert np.array_equal(alice.infer(scene.pixels).integer_logits, scene.logits)


def test_the_highest_number_stays(tmp_path: Path) -> None:
    seen = SeenNumbers(tmp_path / "new" / SEEN)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(seen.raise_to, [7, 3, 12, 9, 5, 11] * 5))
    assert seen.raise_to(0) == 12
    assert seen.path.stat().st_mode & 0o777 == 0o600


def test_two_weeks_before_its_end_a_list_is_warned_of(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    warned: list[str] = []
    fresh = FreshKeys(folder / "server", warn=warned.append)
    assert not fresh.list_ends_soon() and not warned
    monkeypatch.setattr(signing, "LIST_DAYS", 13)
    keys.revoke(folder)
    fresh.context()
    assert fresh.list_ends_soon() and "sphynx keys revoke" in warned[0]
    monkeypatch.undo()
    keys.revoke(folder)
    fresh.context()
    assert not fresh.list_ends_soon() and len(warned) == 1
    later_s = time.time() + 80 * 86_400
    monkeypatch.setattr(time, "time", lambda: later_s)  # nothing was copied meanwhile
    for _ in range(2):
        fresh.context()
    assert len(warned) == 3 and "certificate expires soon" in warned[2]


def test_a_list_that_could_not_be_judged_is_judged_again(folder: Path, tmp_path: Path) -> None:
    """Its number could not be kept. The request failed that noticed it, and the next ones were granted by the old list,
    for as long as the file did not change."""
    fresh = FreshKeys(folder / "server", SeenNumbers(tmp_path / "state" / SEEN))
    keys.revoke(folder, "alice")
    for _ in range(2):
        with full_disk(), pytest.raises(InputError, match="does not hold the number"):
            fresh.is_revoked(serial(folder, "alice"))
    assert fresh.is_revoked(serial(folder, "alice"))


def test_by_a_list_that_becomes_overdue_nobody_is_served_any_more(
    scene: Scene, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever is connected could have gone on asking, on a server that no new list reaches."""
    scene.authority, scene.server.keys = folder, folder / "server"
    scene.server.start()
    with scene.client() as alice:
        monkeypatch.setattr(signing, "LIST_DAYS", A_MINUTE_AGO)
        keys.revoke(folder)
        with pytest.raises(PeerGaveUpError, match="list of revoked keys is overdue"):
            alice.measure_link()
    with pytest.warns(UserWarning, match="is overdue"), pytest.raises(HandshakeError):
        scene.client().__enter__()
    monkeypatch.undo()
    keys.revoke(folder)
    scene.check_inference()
    assert scene.server.stop() == 0


def connect(folder: Path, client: ClientKeys) -> Peer:
    """A handshake of the folder's server with a client; the server's list is not overdue."""
    left, right = socket.socketpair()
    with left, right, ThreadPoolExecutor(1) as pool:
        serving = pool.submit(TlsStream.accept, left, server_context(folder / "server"), handshake_s=20)
        peer = TlsStream.connect(right, client.context, "127.0.0.1", handshake_s=20).peer
        serving.result()
    return peer


def test_by_an_overdue_list_a_server_does_not_start_and_a_client_is_warned(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = (folder / "server" / "revoked.pem").read_bytes()
    monkeypatch.setattr(signing, "LIST_DAYS", A_MINUTE_AGO)
    keys.revoke(folder)
    with pytest.raises(InputError, match="is overdue: no client would be admitted"):
        check_server_keys(folder / "server")
    (folder / "server" / "revoked.pem").write_bytes(good)
    warned: list[str] = []
    alice = ClientKeys(folder / "alice", warned.append)
    alice.check(connect(folder, alice).expires_at, "a server")
    assert len(warned) == 1 and "is overdue" in warned[0]
    with pytest.raises(HandshakeError, match="has expired"):
        alice.check(time.time() - 1, "a server")  # OpenSSL does not look at the clock then
    keys.revoke(folder, "server")
    (folder / "server" / "revoked.pem").write_bytes(good)
    alice = ClientKeys(folder / "alice", warned.append)
    with pytest.raises(HandshakeError, match="certificate revoked"):
        connect(folder, alice)
    (folder / "alice" / "revoked.pem").write_bytes(good)
    assert len(warned) == 2
    ClientKeys(folder / "alice", warned.append)
    assert len(warned) == 2


def test_a_server_process_keeps_to_its_newest_list(scene: Scene, folder: Path) -> None:
    """Running it logs and goes on; started anew it says what to do."""
    scene.authority, scene.server.keys = folder, folder / "server"
    listed = scene.server.keys / "revoked.pem"
    scene.server.start()
    old = listed.read_bytes()
    keys.revoke(folder, "alice")
    for _ in range(2):
        with pytest.raises(HandshakeError, match="revoked"):
            scene.client().__enter__()
        listed.write_bytes(old)
    assert "is older than one used before" in scene.server.wait_for("revocation_list")["why"]
    with scene.client("bob") as bob:
        assert np.array_equal(bob.infer(scene.pixels).integer_logits, scene.logits)
    url = f"http://127.0.0.1:{scene.server.metrics_port}/metrics"
    assert "sphynx_revocation_list_ends_soon 0" in urllib.request.urlopen(url, timeout=20).read().decode()
    assert scene.server.stop() == 0
    where = ("--keys", scene.server.keys, "--state", scene.server.state, "--listen", "127.0.0.1:0")
    again = subprocess.run(
        command("none", "serve", scene.compiled, *where, "--metrics", "127.0.0.1:0"),
        cwd=ROOT,
        env=environment(scene.server.audit),
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )
    assert again.returncode == 2 and "is older than one used before" in again.stderr
    assert "newest revoked.pem" in again.stderr
