"""`sphynx app` as users start it: two processes of its own, bundles made ahead, and nothing left behind."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from typer.testing import CliRunner

from sphynx.cli.main import app
from sphynx.errors import InputError
from tests.service.processes import WAIT_S


def test_the_server_is_elsewhere_or_here(tmp_path: Path) -> None:
    for flags in (["--server", "h:1"], ["--keys", str(tmp_path)], ["--server", "h:1", "--keys", "k", "--local", "m"]):
        with pytest.raises(InputError, match="either a server, with keys, or a network"):
            CliRunner().invoke(app, ["app", *flags], catch_exceptions=False)


def test_a_server_that_does_not_listen_yet_is_one_line_of_warning(authority: Path, tmp_path: Path) -> None:
    with socket.socket() as bound:  # and never listening, so that the port refuses
        bound.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{bound.getsockname()[1]}"
        flags = ["--server", address, "--keys", str(authority / "alice"), "--state", str(tmp_path)]
        command = [sys.executable, "-m", "sphynx.cli.main", "app", *flags]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as started:
            assert started.stderr is not None
            line = started.stderr.readline()
            started.terminate()
    assert line == f"warning: {address} refuses connections: waiting up to 10 s for the server to start\n"


def test_killed_it_leaves_no_server(compiled_folder: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "sphynx.cli.main", "app", "--local", str(compiled_folder), "--ready", "0"]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as started:
        assert started.stdout is not None
        assert started.stdout.readline().startswith("http://")
        started.kill()
        rest, _ = started.communicate(
            timeout=WAIT_S
        )  # its server has the same output, which ends with the last of both
    assert rest == ""


def test_it_prepares_ahead_and_leaves_nothing_behind(
    compiled_folder: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    browser = tmp_path_factory.mktemp("browser") / "browser"
    browser.write_text('#!/bin/sh\necho "$1" > "$0.opened"\n')
    browser.chmod(0o700)
    command = [
        sys.executable,
        "-m",
        "sphynx.cli.main",
        "app",
        "--local",
        str(compiled_folder),
        "--backend",
        "gc",
        "--open",
    ]
    environment = {**os.environ, "TMPDIR": str(tmp_path), "BROWSER": f"{browser} %s"}
    with subprocess.Popen([*command, "--ready", "1"], stdout=subprocess.PIPE, text=True, env=environment) as started:
        assert started.stdout is not None
        url = started.stdout.readline().strip()
        try:
            with urllib.request.urlopen(url + "events", timeout=60) as stream:
                told = (json.loads(line[6:]) for line in stream if line.startswith(b"data: "))
                assert next(said for said in told if said.get("ready", {}).get("gc"))["ready"] == {"gc": 1, "gmw": 0}
            with urllib.request.urlopen(url + "samples/sunset", timeout=60) as sample:
                picture = sample.read()
            with urllib.request.urlopen(url + "ask?backend=gc", data=picture, timeout=60) as reply:
                found = json.loads(reply.read())
            assert not found["prepared_now"] and found["labels"][0] in ("cat", "dog", "bird")
            assert list(tmp_path.iterdir())
            address = browser.with_name("browser.opened").read_text().strip()
            assert urlsplit(url).path not in address  # every user of the machine may see it
            shown = Path(urlsplit(address).path)
            assert shown.stat().st_mode & 0o077 == shown.parent.stat().st_mode & 0o077 == 0
            assert f'content="0; url={url}"' in shown.read_text()
        finally:
            started.send_signal(signal.SIGTERM)
        assert started.wait(60) == 0
    assert not list(tmp_path.iterdir())
