"""One server of several programs: clients list them, ask by name or hash, and each has bundles of its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sphynx
from sphynx.errors import InputError, PeerGaveUpError
from sphynx.program.convolve import Array
from sphynx.program.interpret import interpret
from sphynx.service.strikes import FILE
from tests.service.scene import Scene
from tests.service.tiny import save_tiny


@pytest.fixture
def two(tmp_path: Path) -> tuple[list[Path], list[Array]]:
    """Two folders, and what their programs answer to a picture of zeros."""
    folders = [tmp_path / "first", tmp_path / "second"]
    answers: list[Array] = []
    for seed, folder in enumerate(folders):
        program, weights = save_tiny(folder, seed, folder.name)
        answers.append(interpret(program, weights, np.zeros((1, 1, 4, 4), np.uint8))[0])
    return folders, answers


def test_two_programs_are_served_by_name_and_by_hash(
    two: tuple[list[Path], list[Array]], authority: Path, tmp_path: Path
) -> None:
    folders, answers = two
    picture = np.zeros((1, 4, 4), np.uint8)
    where: dict[str, Any] = {"keys": authority / "alice", "state": tmp_path / "alice", "backend": "gmw"}
    with sphynx.Server(folders, keys=authority / "server", listen="127.0.0.1:0", state=tmp_path / "state") as server:
        listed = sphynx.Client(server.address, **where).list_programs()
        assert list(listed) == ["first", "second"] and len(set(listed.values())) == 2
        for (name, content_hash), expected in zip(listed.items(), answers, strict=True):
            for asked in (name, content_hash, content_hash[:16]):
                with sphynx.Client(server.address, program=asked, **where) as client:
                    client.prepare(1)
                    assert np.array_equal(client.infer(picture).integer_logits, expected)
                    assert client.program.content_hash == content_hash
        for wrong in ("", "third", "0" * 16):
            with pytest.raises(PeerGaveUpError, match="serves several programs: first") as refused:
                sphynx.Client(server.address, program=wrong, **where).prepare(1)
            assert "Say which" in refused.value.remedy
    assert (tmp_path / "state" / FILE).is_file()  # strikes are a client's, whichever program it asked
    assert {path.name for path in (tmp_path / "state").iterdir() if path.is_dir()} == {"first", "second"}


def test_bundles_of_one_program_do_not_serve_another(
    two: tuple[list[Path], list[Array]], authority: Path, tmp_path: Path
) -> None:
    folders, _ = two
    where: dict[str, Any] = {"keys": authority / "alice", "state": tmp_path / "alice", "backend": "gmw"}
    with sphynx.Server(folders, keys=authority / "server", listen="127.0.0.1:0", state=tmp_path / "state") as server:
        with sphynx.Client(server.address, program="first", **where) as client:
            client.prepare(2)
        with sphynx.Client(server.address, program="second", **where) as client:
            assert client.ready == 0
        with sphynx.Client(server.address, program="first", **where) as client:
            assert client.ready == 2


def test_what_cannot_be_served_together_is_refused(scene: Scene, tmp_path: Path) -> None:
    other = tmp_path / "elsewhere" / scene.compiled.name
    save_tiny(other, 1, "other")
    usual: dict[str, Any] = {"keys": scene.server.keys, "listen": "127.0.0.1:0"}
    with pytest.raises(InputError, match="two programs have the same name"):
        sphynx.Server([scene.compiled, other], state=tmp_path / "state", **usual).start()
    save_tiny(tmp_path / "same", 1)
    with pytest.raises(InputError, match="differ only in their weights"):
        sphynx.Server([scene.compiled, tmp_path / "same"], state=tmp_path / "state", **usual).start()
    save_tiny(tmp_path / "other", 1, "other")
    with pytest.raises(InputError, match="share one folder"):
        sphynx.Server([scene.compiled, tmp_path / "other"], **usual).start()
    with pytest.raises(InputError, match="several processes serve one program"):
        sphynx.Server([scene.compiled, tmp_path / "other"], state=tmp_path / "state", processes=2, **usual).start()


def test_the_verbs_serve_list_and_ask_two(scene: Scene, tmp_path: Path) -> None:
    other = tmp_path / "other"
    save_tiny(other, 1, "other")
    scene.server.flags = (str(other),)
    scene.server.start()
    listed = scene.infer("--list")
    assert listed.returncode == 0, listed.stderr
    assert list(json.loads(listed.stdout)) == [scene.compiled.name, "other"]
    done = scene.infer(scene.picture, "--program", scene.compiled.name)
    assert json.loads(done.stdout)["predictions"][0]["labels"][0] == scene.expected[0]
    refused = scene.infer(scene.picture)
    assert refused.returncode != 0 and "serves several programs" in refused.stderr and "--program" in refused.stderr
    assert scene.server.stop() == 0
