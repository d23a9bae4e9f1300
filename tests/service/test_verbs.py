"""The verbs as users type them: keys, serve's and infer's faults, tables."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from sphynx.cli.main import app
from sphynx.cli.options import parse_bytes
from sphynx.errors import InputError
from sphynx.service import keys
from sphynx.service.prediction import ranked
from sphynx.service.replicas import parse_address, parse_servers
from tests.service.authority import LONG_AGO
from tests.service.processes import ROOT, environment, infer
from tests.service.scene import Scene
from tests.service.tiny import save_tiny


def run(*arguments: str | Path) -> str:
    result = CliRunner().invoke(app, list(map(str, arguments)), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_keys_from_init_to_revoke(tmp_path: Path) -> None:
    folder = tmp_path / "keys"
    assert run("keys", "init", folder).strip() == str(folder / "authority")
    run("keys", "issue", "server", "--server", "inference.example", "--server", "::1", "--keys", folder)
    run("keys", "issue", "alice", "--client", "--days", "30", "--keys", folder)
    assert str(folder / "server" / "revoked.pem") in run("keys", "revoke", "alice", "--keys", folder)
    listed = json.loads(run("keys", "ls", "--keys", folder, "--json"))
    assert [(row["name"], row["kind"], row["revoked"]) for row in listed] == [
        ("alice", "client", True),
        ("server", "server", False),
    ]
    assert "alice" in run("keys", "ls", "--keys", folder)
    keys.issue(folder, "old", days=30, start=LONG_AGO)
    assert [row["expired"] for row in json.loads(run("keys", "ls", "--keys", folder, "--json"))] == [False, True, False]
    table = run("keys", "ls", "--keys", folder).splitlines()
    for name, state in (("alice", "revoked"), ("old", "expired"), ("server", "valid")):
        assert any(name in line and state in line for line in table)
    for flags in ((), ("--client", "--server", "x")):
        with pytest.raises(InputError, match=r"--server (and|nor) --client"):
            run("keys", "issue", "bob", *flags, "--keys", folder)


def test_keys_are_requested_signed_installed_and_renewed(tmp_path: Path) -> None:
    home, own = tmp_path / "home", tmp_path / "own"
    run("keys", "init", home)
    request = run("keys", "request", "alice", "--keys", own).strip()
    answer = run("keys", "sign", "alice", request, "--client", "--days", "30", "--keys", home).strip()
    assert answer == str(own / "alice" / "alice.signed.pem")
    assert keys.authority_fingerprint(home) in run("keys", "install", "alice", answer, "--keys", own)
    request = run("keys", "renew", "alice", "--keys", own).strip()
    answer = run("keys", "sign", "alice", request, "--keys", home, "-o", tmp_path / "answer").strip()
    run("keys", "install", "alice", answer, "--keys", own)
    run("keys", "issue", "server", "--server", "localhost", "--keys", home)
    assert run("keys", "renew", "server", "--keys", home).strip() == str(home / "server")
    listed = json.loads(run("keys", "ls", "--keys", home, "--json"))
    assert [row["name"] for row in listed] == ["alice", "alice", "server", "server"]


def test_addresses_and_sizes() -> None:
    assert parse_address("127.0.0.1:7443") == ("127.0.0.1", 7443)
    assert parse_address("[::1]:0") == ("::1", 0)
    assert [parse_bytes(text, "--quota") for text in ("500M", "16G", "1234")] == [500 << 20, 16 << 30, 1234]
    for wrong in ("7443", "host:", "host:x", "host:70000", 7443):
        with pytest.raises(InputError, match="HOST:PORT"):
            parse_address(wrong)  # type: ignore[arg-type]
        with pytest.raises(InputError, match="HOST:PORT"):
            parse_servers(wrong)  # type: ignore[arg-type]
    for wrong in ("", "G", "-1G", "many"):
        with pytest.raises(InputError, match="not a valid size"):
            parse_bytes(wrong, "--quota")


def test_an_inference_prints_its_labels_and_what_it_took(scene: Scene) -> None:
    scene.server.start()
    where = ("--server", f"127.0.0.1:{scene.server.port}", "--keys", scene.authority / "alice")
    text = run("infer", scene.picture, *where, "--state", scene.client_state, "--backend", "gmw", "--top", "2")
    assert scene.expected[0] in text and scene.expected[1] in text and scene.expected[2] not in text
    assert "gmw" in text and "rounds" in text
    assert scene.server.stop() == 0


def test_an_inference_goes_on_past_a_bad_picture(scene: Scene, tmp_path: Path) -> None:
    photos = tmp_path / "photos"
    (photos / "holiday").mkdir(parents=True)
    good = photos / "holiday" / "good.png"
    good.write_bytes(scene.picture.read_bytes())
    (photos / "bad.png").write_bytes(b"not a picture")
    (photos / "new.heic").write_bytes(b"x")
    (tmp_path / "empty").mkdir()
    scene.server.start()
    done = scene.infer(photos, tmp_path / "absent.png", tmp_path / "empty", scene.picture)
    assert done.returncode == 1
    answers = json.loads(done.stdout)
    assert [row["image"] for row in answers["predictions"]] == [str(good), str(scene.picture)]
    assert all(row["labels"][0] == scene.expected[0] for row in answers["predictions"])
    failed = {Path(row["image"]).name: row["error"] for row in answers["failed"]}
    assert set(failed) == {"bad.png", "absent.png", "empty"} and "cannot be read" in failed["bad.png"]
    assert "3 of 5 could not be asked about" in done.stderr
    assert "1 of 1 could not be asked about" in scene.infer(tmp_path / "empty").stderr
    assert "skipped 1 .heic" in done.stderr and "absent.png: there is no such file" in done.stderr
    assert scene.server.stop() == 0


def test_an_inference_of_nothing_says_what_to_give(authority: Path) -> None:
    with pytest.raises(InputError, match="no image to ask about") as refused:
        run("infer", "--keys", authority / "alice")
    assert "--prepare N" in refused.value.remedy


def test_a_server_that_cannot_start_says_why(scene: Scene, authority: Path) -> None:
    with pytest.raises(InputError, match=r"there is no key\.pem"):
        run("serve", scene.compiled, "--keys", authority, "--state", scene.client_state, "--metrics", "127.0.0.1:0")
    with pytest.raises(InputError, match="alice: no client would accept these keys"):
        run("serve", scene.compiled, "--keys", authority / "alice", "--state", scene.client_state)
    with pytest.raises(InputError, match=r"cannot listen there \(Cannot assign requested address\)"):
        run(
            "serve",
            scene.compiled,
            "--keys",
            authority / "server",
            "--listen",
            "192.0.2.1:1",
            "--metrics",
            "127.0.0.1:0",
        )


@pytest.mark.parametrize(("name", "logged"), [("tiny", "tiny"), ("", "compiled")])
def test_a_program_without_a_name_is_called_as_it_was_asked_for(scene: Scene, name: str, logged: str) -> None:
    """Programs of models by name have no name of their own."""
    save_tiny(scene.compiled, name=name)
    scene.server.start()
    (line,) = (line for line in scene.server.log if line["event"] == "serving")
    assert line["name"] == logged
    assert scene.server.stop() == 0


def test_keys_that_are_not_there_yet_can_be_issued_afterwards(tmp_path: Path) -> None:
    run("keys", "init", tmp_path / "keys")
    with pytest.raises(InputError, match=r"bob: there is no key\.pem"):
        run("infer", "--prepare", "1", "--keys", tmp_path / "keys" / "bob")
    run("keys", "issue", "bob", "--client", "--keys", tmp_path / "keys")


def test_more_images_than_a_server_keeps_bundles_for(scene: Scene) -> None:
    scene.server.flags = ("--pool", "8")
    scene.server.start()
    done = scene.infer(*[scene.picture] * 11, "--backend", "gmw", "--prepare", "2")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [seen["labels"][0] for seen in found["predictions"]] == [scene.expected[0]] * 11
    assert found["bundles_ready"] == 2
    assert scene.server.stop() == 0


def test_no_server_is_one_line_and_a_remedy(scene: Scene, authority: Path) -> None:
    scene.server.port = 1  # nobody listens there
    done = infer(scene.server, authority / "alice", scene.picture, "--state", scene.client_state)
    assert done.returncode == 1 and done.stdout == ""
    waiting, error, remedy = done.stderr.splitlines()
    assert waiting == "warning: 127.0.0.1:1 refuses connections: waiting up to 10 s for the server to start"
    assert error == "error: 127.0.0.1:1: no connection (Connection refused)"
    assert remedy == "  remedy: Check the address, and that the server runs."


def test_the_documented_commands_exist_with_their_flags() -> None:
    lines = (ROOT / "docs" / "serving.md").read_text().splitlines()
    commands = [line.split()[1:] for line in lines if line.startswith("    sphynx ")]
    usual = [
        *3 * ["keys"],
        "serve",
        "infer",
        *6 * ["keys"],
        *5 * ["serve"],
        *2 * ["infer"],
        *2 * ["serve"],
        *2 * ["keys"],
    ]
    assert [words[0] for words in commands] == usual
    for words in commands:
        verb = words[: 2 if words[0] == "keys" else 1]
        text = run(*verb, "--help")
        assert all(flag in text for flag in words if flag.startswith("--")), words
    table = [line.split("|")[1] for line in lines if line.startswith("| `--")]
    text = run("serve", "--help")
    assert table and all(flag.strip("` ,") in text for row in table for flag in row.split(","))


def run_without(modules: str, *arguments: str | Path, audit: Path) -> subprocess.CompletedProcess[str]:
    """The command on a machine where these packages are not installed."""
    code = f"import sys; sys.modules.update({modules}); from sphynx.cli.main import main; main()"
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, env=environment(audit), capture_output=True, text=True, check=False)


def test_making_keys_without_cryptography_says_what_to_install(tmp_path: Path) -> None:
    done = run_without("cryptography=None", "keys", "init", tmp_path / "keys", audit=tmp_path / "audit")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "  remedy: pip install cryptography"


def test_serving_without_cryptography_says_what_to_install(scene: Scene, authority: Path, tmp_path: Path) -> None:
    flags = ("--keys", authority / "server", "--state", tmp_path / "state", "--listen", "127.0.0.1:0")
    done = run_without("cryptography=None", "serve", scene.compiled, *flags, audit=tmp_path / "audit")
    assert done.returncode == 1 and "serving needs the package cryptography" in done.stderr
    assert done.stderr.splitlines()[-1] == "  remedy: pip install cryptography"


def test_the_client_runs_with_what_its_extra_installs(scene: Scene, authority: Path) -> None:
    """Every package of the other extras is missing, torch before all."""
    scene.server.start()
    flags = ("--server", f"127.0.0.1:{scene.server.port}", "--keys", authority / "alice", "--state", scene.client_state)
    missing = "torch=None, cryptography=None, sklearn=None, matplotlib=None, jinja2=None, pooch=None, onnx=None"
    done = run_without(missing, "infer", scene.picture, *flags, "--json", audit=scene.server.audit)
    assert done.returncode == 0, done.stderr
    (prediction,) = json.loads(done.stdout)["predictions"]
    assert prediction["labels"] == scene.expected
    assert np.allclose(prediction["probabilities"], ranked(scene.program, scene.logits)[1])
    assert scene.server.stop() == 0
