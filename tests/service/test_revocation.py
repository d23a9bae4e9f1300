"""A client whose certificate no longer counts is cut off, also where it is connected already; nobody else is."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import io
import ssl
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from hypothesis import given, settings
from hypothesis import strategies as st

from sphynx.errors import ConnectionLostError, PeerGaveUpError
from sphynx.service import keys
from sphynx.service.revocation import read_revocations
from sphynx.service.settings import Limits
from sphynx.service.store import BUNDLES
from tests.service.scene import Scene
from tests.service.test_limits import serving

NOW = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
KEY = ec.generate_private_key(ec.SECP256R1())


@pytest.fixture
def served(scene: Scene, tmp_path: Path) -> Iterator[Scene]:
    """A server process of an authority that this test may change."""
    scene.authority = tmp_path / "own"
    keys.init(scene.authority)
    scene.server.keys = keys.issue(scene.authority, "server", hosts=["127.0.0.1"])
    for name in ("alice", "bob"):
        keys.issue(scene.authority, name)
    scene.server.start()
    yield scene
    assert scene.server.stop() == 0


def test_a_revoked_client_is_cut_off_at_its_next_request(served: Scene) -> None:
    with served.client("bob") as bob:
        with served.client() as alice:
            alice.prepare(1, backend="gmw")
            keys.revoke(served.authority, "alice")
            with pytest.raises(PeerGaveUpError, match="certificate was revoked"):
                alice.infer(served.pixels)
        assert "was revoked" in served.server.wait_for("refused", client="alice")["why"]
        with pytest.raises(ConnectionLostError, match="revoked"):
            served.client().__enter__()
        assert np.array_equal(bob.infer(served.pixels).integer_logits, served.logits)
    assert served.states(served.server.state) == ["ready", "burned"]  # hers was not touched


def test_a_long_preparation_ends_with_a_revocation(served: Scene) -> None:
    """The server may be at the second bundle by then, which it cannot finish before the first is reported here."""

    def revoke_after_the_first(number: int) -> None:
        if number == 1:
            keys.revoke(served.authority, "alice")

    with served.client() as alice, pytest.raises(PeerGaveUpError, match="certificate was revoked"):
        alice.prepare(3, backend="gmw", done=revoke_after_the_first)
    served.server.wait_for("refused", client="alice")
    assert len(served.states(served.server.state)) <= 2


def test_without_a_list_nobody_is_served(served: Scene) -> None:
    """Half a file may lack the very entry that counts."""
    listed = served.server.keys / "revoked.pem"
    whole = listed.read_bytes()
    for broken in (whole[: len(whole) // 2], b"", (served.server.keys / "ca.pem").read_bytes()):
        with served.client("bob") as bob:
            listed.write_bytes(broken)
            with pytest.raises(PeerGaveUpError, match="the server cannot read its keys"):
                bob.measure_link()
        assert "cannot be used" in served.server.wait_for("refused", client="bob")["why"]
        listed.write_bytes(whole)
    with served.client("bob") as bob:
        assert bob.measure_link().round_trip_s > 0


def test_a_server_under_a_new_name_serves_clients_that_kept_as_many_bundles_as_they_may(served: Scene) -> None:
    """Bundles are bound to its old name. They counted for a week, in which nothing could be prepared."""
    with served.client() as alice:
        alice.prepare(16, backend="gmw")
    for path in keys.issue(served.authority, "another", hosts=["127.0.0.1"]).iterdir():
        path.replace(served.server.keys / path.name)
    served.check_inference()
    assert sorted(served.states(served.client_state)) == ["burned"] + 16 * ["discarded"]
    assert sorted(served.states(served.server.state)) == ["burned"] + 16 * ["discarded"]
    assert not list((served.client_state / BUNDLES).iterdir())


def test_a_certificate_that_expires_meanwhile_counts_no_more(tmp_path: Path, authority: Path) -> None:
    with serving(tmp_path, authority, Limits(), io.StringIO()) as (client, server), client:
        (conversation,) = server._conversations
        visit = conversation._visit
        visit.peer = dataclasses.replace(visit.peer, expires_at=NOW.timestamp())
        with pytest.raises(PeerGaveUpError, match="certificate has expired"):
            client.measure_link()


def revocation_list(serials: set[int]) -> bytes:
    """As another implementation writes it."""
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "an authority")])
    builder = x509.CertificateRevocationListBuilder().issuer_name(name)
    builder = builder.last_update(NOW).next_update(NOW + datetime.timedelta(days=1))
    for serial in serials:
        entry = x509.RevokedCertificateBuilder().serial_number(serial).revocation_date(NOW)
        if serial % 2:
            entry = entry.add_extension(x509.CRLReason(x509.ReasonFlags.key_compromise), critical=False)
        builder = builder.add_revoked_certificate(entry.build())
    builder = builder.add_extension(x509.CRLNumber(7), critical=False)
    return builder.sign(KEY, SHA256()).public_bytes(Encoding.PEM)


@settings(max_examples=25)
@given(st.sets(st.integers(1, 2**159 - 1), max_size=40), st.sets(st.integers(1, 300), max_size=3))
def test_lists_are_read_as_they_were_written(serials: set[int], others: set[int]) -> None:
    first, second = revocation_list(serials), revocation_list(others)
    assert read_revocations(first).serials == serials
    assert read_revocations(b"for people to read\n" + first + second).serials == serials | others


@given(st.binary(max_size=60), st.integers(0, 400), st.integers(0, 255))
def test_what_is_no_list_is_refused_or_read_and_nothing_else(garbage: bytes, place: int, byte: int) -> None:
    good = bytearray(ssl.PEM_cert_to_DER_cert(revocation_list({5}).decode().replace("X509 CRL", "CERTIFICATE")))
    good[place % len(good)] = byte
    for der in (garbage, bytes(good), bytes(good[:place])):
        pem = ssl.DER_cert_to_PEM_cert(der).replace("CERTIFICATE", "X509 CRL")
        with contextlib.suppress(ValueError):
            assert isinstance(read_revocations(pem.encode()).serials, frozenset)


def test_a_list_of_thousands(authority: Path) -> None:
    assert read_revocations(revocation_list(set(range(1, 5000)))).serials == set(range(1, 5000))
    (mallory,) = (party for party in keys.list_parties(authority) if party.revoked)
    assert read_revocations((authority / "authority" / "revoked.pem").read_bytes()).serials == {mallory.serial}
