"""`sphynx serve --check`: every fault of a deployment at once, and nothing changed."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from sphynx.cli.main import app
from sphynx.program.folder import WEIGHTS
from sphynx.service import keys
from tests.service.authority import LONG_AGO
from tests.service.scene import Scene


def check(*arguments: str | Path) -> tuple[int, dict[str, Any]]:
    done = CliRunner().invoke(app, ["serve", "--check", "--json", *map(str, arguments)], catch_exceptions=False)
    return done.exit_code, {row["part"]: row for row in json.loads(done.stdout)}


def files(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_what_starts_is_well_and_nothing_is_changed(scene: Scene, tmp_path: Path) -> None:
    usual = ("--keys", scene.server.keys, "--state", scene.server.state, "--metrics", "127.0.0.1:0")
    for _ in range(2):
        before = files(tmp_path)
        code, found = check(scene.compiled, *usual, "--listen", "127.0.0.1:0")
        assert code == 0 and all(row["is_well"] for row in found.values()), found
        assert files(tmp_path) == before and found.keys() == {
            *("program", "keys", "bundles", "strikes", "address", "metrics")
        }
        if scene.server.process is None:
            scene.server.start()  # then it is asked beside a server that runs
            code, found = check(scene.compiled, *usual, "--listen", f"127.0.0.1:{scene.server.port}")
            assert code == 0 and "another process is using now" in found["address"]["what"]
            with scene.client() as alice:
                alice.prepare(1, backend="gmw")
            assert scene.server.stop() == 0
    assert scene.states(scene.server.state) == ["ready"]


def test_all_faults_are_told_at_once(scene: Scene, tmp_path: Path) -> None:
    keys.init(tmp_path / "keys")
    expired = keys.issue(tmp_path / "keys", "old", hosts=["127.0.0.1"], days=30, start=LONG_AGO)
    broken = Path(shutil.copytree(scene.compiled, tmp_path / "broken"))
    (broken / WEIGHTS).write_bytes(b"x")
    (tmp_path / "token").write_text("short")
    code, found = check(
        *(broken, "--keys", expired, "--state", tmp_path / "state", "--listen", "192.0.2.1:7443"),
        *("--metrics", "127.0.0.1:0", "--metrics-token", tmp_path / "token"),
    )
    assert code == 1
    wrong = {part for part, row in found.items() if not row["is_well"]}
    assert wrong == {"program", "keys", "address", "metrics"}
    assert "expired" in found["keys"]["what"] and all(found[part]["remedy"] for part in wrong)
    assert not (tmp_path / "state").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_may_not_be_written(scene: Scene, tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0o500)
    code, found = check(scene.compiled, "--keys", scene.server.keys, "--state", tmp_path / "closed" / "state")
    assert code == 1 and "may not write" in found["bundles"]["what"]
