"""An upgrade while clients ask: two builds of the package beside each other, which speak different versions."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import sphynx
from sphynx.core import _native
from sphynx.errors import PeerGaveUpError
from sphynx.protocol.channel import WIRE_VERSION
from sphynx.service import keys
from tests.service.processes import WAIT_S, ServerProcess, environment
from tests.service.scene import Scene

OTHER = "0.0.9"


@pytest.fixture(scope="session")
def other_build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package that is another version, and speaks another on the wire."""
    folder = tmp_path_factory.mktemp("build")
    source = Path(sphynx.__file__).parent
    shutil.copytree(source, folder / "sphynx", ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    shutil.copy(_native.__file__, folder / "sphynx" / "core")
    for file, before, after in (
        ("protocol/channel.py", f"WIRE_VERSION = {WIRE_VERSION}\n", f"WIRE_VERSION = {WIRE_VERSION - 1}\n"),
        ("version.py", f'__version__ = "{sphynx.__version__}"', f'__version__ = "{OTHER}"'),
    ):
        text = (folder / "sphynx" / file).read_text()
        assert before in text
        (folder / "sphynx" / file).write_text(text.replace(before, after))
    return folder


def command(build: Path | None, *arguments: str | Path) -> list[str]:
    """The verb as that build runs it; None: this one."""
    if build is None:
        return [sys.executable, "-P", "-m", "sphynx", *map(str, arguments)]
    code = (
        "import sys; sys.meta_path[:] = [one for one in sys.meta_path if 'editable' not in type(one).__module__];"
        f"sys.path.insert(0, {str(build)!r}); from sphynx.cli.main import main; main()"
    )
    return [sys.executable, "-P", "-c", code, *map(str, arguments)]


class OtherServer(ServerProcess):
    build: Path

    def command(self, *arguments: str | Path) -> list[str]:
        return command(self.build, *arguments)


@pytest.fixture
def replica(scene: Scene, other_build: Path, tmp_path: Path) -> Iterator[OtherServer]:
    """A server of the other build under another name, with the authority that both share."""
    shutil.copytree(scene.authority, tmp_path / "keys")
    scene.authority = tmp_path / "keys"
    folder = keys.issue(scene.authority, "replica", hosts=["127.0.0.1"])
    made = OtherServer(scene.compiled, folder, tmp_path / "replica", tmp_path / "audit")
    made.build = other_build
    yield made
    made.stop(signal.SIGKILL)


def ask(build: Path | None, scene: Scene, state: Path, *ports: int) -> subprocess.CompletedProcess[str]:
    where = ",".join(f"127.0.0.1:{port}" for port in ports)
    flags = ("--server", where, "--keys", scene.authority / "alice", "--state", state, "--backend", "gmw", "--json")
    return subprocess.run(
        command(build, "infer", scene.picture, *flags, "--prepare", "2"),
        env=environment(scene.server.audit),
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )


def test_clients_find_a_server_of_their_version_and_old_ones_are_told_what_to_install(
    scene: Scene, replica: OtherServer, other_build: Path, tmp_path: Path
) -> None:
    scene.server.start()
    replica.start()
    ports = (replica.port, scene.server.port)
    refused = ask(other_build, scene, tmp_path / "state", scene.server.port)
    assert refused.returncode != 0
    assert f"this server runs sphynx {sphynx.__version__} (wire {WIRE_VERSION}" in refused.stderr
    assert f"Install sphynx {sphynx.__version__}, or ask a server of your version" in refused.stderr
    assert f"speaks version {WIRE_VERSION - 1}" in scene.server.wait_for("refused")["why"]
    for build, used in ((other_build, replica), (None, scene.server)):
        done = ask(build, scene, tmp_path / f"state-{build is None}", *ports)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["predictions"][0]["labels"][0] == scene.expected[0]
        used.wait_for("inferred")
    assert replica.stop() == scene.server.stop() == 0


def test_bundles_of_the_version_before_are_dropped_audibly(scene: Scene, replica: OtherServer, tmp_path: Path) -> None:
    replica.start()
    done = ask(replica.build, scene, scene.client_state, replica.port)
    assert done.returncode == 0 and json.loads(done.stdout)["bundles_ready"] == 2
    assert replica.stop() == 0
    upgraded = ServerProcess(scene.compiled, replica.keys, replica.state, tmp_path / "audit")
    upgraded.start()
    why = "2 bundles were discarded: they were made with another version of sphynx"
    assert [line["why"] for line in upgraded.log if line["event"] == "discarded"] == [why]
    done = ask(None, scene, scene.client_state, upgraded.port)
    assert done.returncode == 0 and why in done.stderr
    assert scene.states(replica.state).count("discarded") == 2
    assert upgraded.stop() == 0


def test_a_server_that_is_drained_serves_what_is_ready_and_prepares_nothing(scene: Scene) -> None:
    scene.server.start()
    with scene.client() as alice:
        alice.prepare(1, backend="gmw")
    scene.server.stop()
    scene.server.flags = ("--drain",)
    scene.server.start()
    with scene.client() as alice:
        assert np.array_equal(alice.infer(scene.pixels).integer_logits, scene.logits)
        with pytest.raises(PeerGaveUpError, match="is being drained"):
            alice.prepare(1, backend="gmw")
    assert scene.server.stop() == 0
