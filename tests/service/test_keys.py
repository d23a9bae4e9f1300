"""The small authority: files that only their owner reads, names, dates, revocation that survives a lost folder."""

from __future__ import annotations

import datetime
import shutil
import stat
import subprocess
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from pathlib import Path

import pytest

from sphynx.errors import InputError
from sphynx.service import key_files, keys, own_keys
from tests.service.test_full_disk import full_disk


def test_all_files_are_private(authority: Path) -> None:
    for path in (authority, *authority.rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


def test_parties_are_listed_with_their_state(authority: Path) -> None:
    found = {party.name: party for party in keys.list_parties(authority)}
    assert {name for name, party in found.items() if party.revoked} == {"mallory"}
    assert {name for name, party in found.items() if party.kind == "server"} == {"server"}
    assert found["expired"].not_after < datetime.datetime.now(datetime.UTC) < found["alice"].not_after


def test_openssl_itself_accepts_and_refuses(authority: Path) -> None:
    """External truth: the command-line verifier, where there is one."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("no openssl on this machine")
    home = authority / "authority"
    command = [openssl, "verify", "-CAfile", str(home / "ca.pem"), "-CRLfile", str(home / "revoked.pem"), "-crl_check"]
    for name, accepted in (("alice", True), ("server", True), ("mallory", False), ("expired", False)):
        done = subprocess.run([*command, str(authority / name / "cert.pem")], capture_output=True, check=False)
        assert (done.returncode == 0) == accepted, done.stderr


def test_a_folder_that_is_gone_can_be_revoked(tmp_path: Path) -> None:
    keys.init(tmp_path)
    shutil.rmtree(keys.issue(tmp_path, "alice"))
    with pytest.raises(InputError, match="'alice' already has other valid keys") as refused:
        keys.issue(tmp_path, "alice")
    assert "sphynx keys revoke alice" in refused.value.remedy and not (tmp_path / "alice").exists()
    keys.revoke(tmp_path, "alice")
    again = keys.issue(tmp_path, "alice")
    places = keys.revoke(tmp_path, "alice")
    assert places == [tmp_path / "authority" / "revoked.pem", again / "revoked.pem"]
    assert [party.revoked for party in keys.list_parties(tmp_path)] == [True, True]


def test_what_cannot_be_done_says_why(authority: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="already has an authority"):
        keys.init(authority)
    with pytest.raises(InputError, match="already has keys"):
        keys.issue(authority, "alice")
    with pytest.raises(InputError, match="'authority' is the folder of the authority itself") as refused:
        keys.issue(authority, "authority")
    assert refused.value.remedy == "Choose another name."
    for host in ("", " ", "inference.example:7443", "https://inference.example", "a..b", "\u00e9.example"):
        with pytest.raises(InputError, match="not a valid host name"):
            keys.issue(authority, "another", hosts=[host])
    assert not (authority / "another").exists()
    with pytest.raises(InputError, match="no usable authority"):
        keys.issue(tmp_path, "alice")
    with pytest.raises(InputError, match="no keys were issued"):
        keys.revoke(authority, "nobody")
    for name in ("", "../up", "a b", "-x"):
        with pytest.raises(InputError, match="is not a valid name"):
            keys.issue(authority, name)
    (tmp_path / "copy").mkdir()
    copy = Path(shutil.copytree(authority, tmp_path / "copy", dirs_exist_ok=True))
    (copy / "authority" / "revoked.pem").write_bytes(b"")
    with pytest.raises(InputError, match="cannot be read"):
        keys.revoke(copy, "alice")


def test_an_authority_that_could_not_be_written_can_be_made_again(tmp_path: Path) -> None:
    """Half of one was left: `init` said that there is one, and `issue` that there is none."""
    with full_disk(), pytest.raises(OSError, match="too large"):
        keys.init(tmp_path / "keys")
    assert not list((tmp_path / "keys").iterdir())
    keys.init(tmp_path / "keys")
    assert keys.issue(tmp_path / "keys", "alice").is_dir()


def test_keys_issued_during_a_revocation_come_with_its_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that started with the older list would admit whom the newer one took out."""
    home, write = keys.init(tmp_path), key_files.write_private
    keys.issue(tmp_path, "alice")
    with ThreadPoolExecutor(1) as pool:
        revoking: list[Future[list[Path]]] = []

        def revoke_first(path: Path, content: bytes) -> None:
            if path.parent.name == "server" and path.name == "revoked.pem" and not revoking:
                revoking.append(pool.submit(keys.revoke, tmp_path, "alice"))
                wait(revoking, timeout=1)  # it has to wait for this one: they take turns
            write(path, content)

        monkeypatch.setattr(own_keys, "write_private", revoke_first)
        issued = keys.issue(tmp_path, "server", hosts=["127.0.0.1"])
        assert issued / "revoked.pem" in revoking[0].result()
    assert (issued / "revoked.pem").read_bytes() == (home / "revoked.pem").read_bytes()


def test_an_authority_whose_key_others_may_read_is_not_used(tmp_path: Path) -> None:
    home = keys.init(tmp_path / "keys")
    (home / "key.pem").chmod(0o640)
    with pytest.raises(InputError, match="other users of this machine may read") as refused:
        keys.issue(tmp_path / "keys", "alice")
    assert "new authority" in refused.value.remedy
    (home / "key.pem").chmod(0o600)
    keys.issue(tmp_path / "keys", "alice")


def test_revocations_at_the_same_time_all_count(tmp_path: Path) -> None:
    keys.init(tmp_path)
    names = [f"client{number}" for number in range(8)]
    for name in names:
        keys.issue(tmp_path, name)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(partial(keys.revoke, tmp_path), names))
    assert all(party.revoked for party in keys.list_parties(tmp_path))
