"""How OTs are extended, between a real server and real clients: by what both sides set, by the link, in every mode, at
workers of one server, and with clients whose trees are wrong."""

from __future__ import annotations

import json
import signal
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import sphynx
from sphynx.core import ot, silent
from sphynx.errors import InputError, PeerGaveUpError, SphynxError
from sphynx.program.cost.link import LINKS, Link
from sphynx.program.cost.ot_messages import BLOCK_BYTES, SEED_BLOCKS_DOWN
from sphynx.program.extensions import EXTENSION_CHOICES, SILENT, SOFTSPOKEN, Extensions, combine
from sphynx.program.folder import load_program
from sphynx.program.interpret import interpret
from sphynx.program.security import MODES, SECURITIES, backends_of
from sphynx.service import session
from sphynx.service.link_measurement import choose_extensions
from sphynx.service.session import Prepare
from sphynx.service.settings import ClientSettings, ServerSettings
from sphynx.service.strikes import FILE
from sphynx.zoo.shipped import program_path
from tests.service.scene import Scene
from tests.service.tiny import save_tiny, tiny_program

STREAM = load_program(program_path("stream-cifar100-25k"))


def _chosen(link: Link, images: int, *, ready: frozenset[str] = frozenset()) -> Extensions:
    return choose_extensions(STREAM, lambda: link, "gmw", images=images, ready=ready)


def test_the_link_decides() -> None:
    assert _chosen(LINKS["loopback"], 1000) == SOFTSPOKEN
    assert _chosen(LINKS["loopback"], 1000, ready=SILENT.silent) == SOFTSPOKEN
    assert _chosen(Link(0.04, 20e6), 1).down == "silent"
    assert _chosen(Link(0.04, 20e6), 100) == SILENT


def test_few_ots_are_not_worth_a_measurement() -> None:
    def measure() -> Link:
        raise AssertionError("the link was measured")

    assert choose_extensions(tiny_program(), measure, "gmw", images=1, ready=frozenset()) == SOFTSPOKEN


@pytest.mark.parametrize("settings", [ClientSettings, ServerSettings])
def test_other_names_are_refused(settings: type[ClientSettings | ServerSettings]) -> None:
    with pytest.raises(InputError, match="is not an OT extension"):
        settings(keys="nowhere", ot="ferret")  # type: ignore[arg-type]


@pytest.mark.parametrize("security", SECURITIES)
def test_every_mode_runs_with_what_both_sides_set(security: str, tmp_path: Path, authority: Path) -> None:
    """Or is refused when they connect, where the settings contradict each other."""
    program, weights = save_tiny(tmp_path / "compiled")
    pixels = np.random.default_rng(7).integers(0, 256, (1, 4, 4), np.uint8)
    logits = interpret(program, weights, pixels[None])[0]
    where = {"keys": authority / "server", "listen": "127.0.0.1:0", "state": tmp_path / "server", "security": security}
    for served in EXTENSION_CHOICES:
        with sphynx.Server(tmp_path / "compiled", ot=served, **where) as server:  # type: ignore[arg-type]
            for wanted, backend in product(EXTENSION_CHOICES, backends_of(security)):  # type: ignore[arg-type]
                assert not MODES[security, backend]  # type: ignore[index]
                client = sphynx.Client(
                    server.address, keys=authority / "alice", state=tmp_path / "c", ot=wanted, backend=backend
                )
                made = combine(wanted, served)
                if made is None:
                    with pytest.raises(PeerGaveUpError, match=f"OTs are {served} at this server, not {wanted}"):
                        client.infer(pixels)
                    continue
                with client:
                    answer = client.infer(pixels)
                assert np.array_equal(answer.integer_logits, logits)
                assert (answer.offline_bytes > BLOCK_BYTES * SEED_BLOCKS_DOWN) == (made == "silent")
    assert (tmp_path / "server" / FILE).read_bytes() == b""


def test_a_server_of_several_processes_holds_clients_to_its_setting(scene: Scene) -> None:
    scene.server.flags = ("--processes", "2", "--ot", "silent")
    scene.server.start()
    scene.check_inference()
    with scene.client() as client:
        client.prepare(2, backend="gmw", batch=3)
        client.prepare(1, backend="gc")
    with scene.client() as client:
        session.send(client._channel, Prepare(1, "gmw", 1, session.new_nonce()))
        with pytest.raises(PeerGaveUpError, match="OTs are silent at this server"):
            session.receive(client._channel)
    assert scene.server.stop() == 0


def test_a_client_whose_trees_are_wrong_is_struck(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """It loses the connection and its bundles; the next connection begins with seeds of its own."""
    scene.server.flags = ("--ot", "silent")
    scene.server.start()
    with scene.client() as client:
        client.prepare(1, backend="gmw")
    refill = silent.SilentSender.refill

    def changed(sender: silent.SilentSender, *, threads: int = 0) -> ot.Words:
        trees = refill(sender, threads=threads)
        trees[0, 0] ^= np.uint64(1 << 40)
        return trees

    with monkeypatch.context() as patched, scene.client() as client:
        patched.setattr(silent.SilentSender, "refill", changed)
        with pytest.raises(SphynxError):
            client.prepare(1, backend="gmw")
    strikes = [json.loads(line) for line in (scene.server.state / FILE).read_text().splitlines()]
    assert len(strikes) == 1 and "refill" in strikes[0]["why"]
    with scene.client() as client:
        assert client.ready == []
        assert (client.infer(scene.pixels).integer_logits == scene.logits).all()
    assert scene.server.stop(signal.SIGTERM) == 0
