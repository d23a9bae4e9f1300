"""Every combination of a server's security, what a client demands and its backend runs, or is refused at its start."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest

import sphynx
from sphynx.errors import InputError, PeerGaveUpError, SphynxError
from sphynx.program.backends import BACKEND_CHOICES, BACKENDS, BackendChoice
from sphynx.program.folder import save_program, save_weights
from sphynx.program.interpret import interpret
from sphynx.program.security import MODES, SECURITIES, Security, backends_of, offers
from sphynx.service.settings import ClientSettings, ServerSettings
from sphynx.service.strikes import FILE
from tests.protocol.random_programs import random_case, random_public_case
from tests.service.tiny import save_tiny


@pytest.mark.parametrize(("demanded", "backend"), [*product(SECURITIES, BACKEND_CHOICES)])
def test_what_a_client_may_ask_for(demanded: Security, backend: BackendChoice) -> None:
    """Refused before anything is opened: the folder of keys does not exist."""
    offered = [one for one in BACKENDS if backend in ("auto", one) and not MODES[demanded, one]]
    if offered:
        ClientSettings(keys="nowhere", security=demanded, backend=backend)
    else:
        with pytest.raises(InputError, match="needs garbled circuits"):
            ClientSettings(keys="nowhere", security=demanded, backend=backend)


@pytest.mark.parametrize("settings", [ClientSettings, ServerSettings])
def test_other_names_are_refused(settings: type[ClientSettings | ServerSettings]) -> None:
    with pytest.raises(InputError, match="is not a kind of security"):
        settings(keys="nowhere", security="covert")  # type: ignore[arg-type]


@pytest.mark.parametrize("served", SECURITIES)
def test_a_client_is_answered_as_the_server_offers(served: Security, tmp_path: Path, authority: Path) -> None:
    program, weights = save_tiny(tmp_path / "compiled")
    pixels = np.random.default_rng(7).integers(0, 256, (1, 4, 4), np.uint8)
    logits = interpret(program, weights, pixels[None])[0]
    where = {"keys": authority / "server", "listen": "127.0.0.1:0", "state": tmp_path / "server"}
    with sphynx.Server(tmp_path / "compiled", security=served, **where) as server:  # type: ignore[arg-type]
        for demanded, backend in product(SECURITIES, BACKEND_CHOICES):
            if demanded == "malicious-client" and backend == "gmw":
                continue  # no client asks for that, above
            client = sphynx.Client(
                server.address, keys=authority / "alice", state=tmp_path / "c", security=demanded, backend=backend
            )
            if not offers(served, demanded):
                with pytest.raises(PeerGaveUpError, match="less than malicious-client"):
                    client.infer(pixels)
            elif backend != "auto" and MODES[served, backend]:
                with client, pytest.raises(InputError, match="needs garbled circuits"):
                    client.infer(pixels)
            else:
                with client:
                    assert client.security == served
                    answer = client.infer(pixels)
                assert np.array_equal(answer.integer_logits, logits)
                assert backend in ("auto", answer.backend) and answer.backend in backends_of(served)
    assert (tmp_path / "server" / FILE).read_bytes() == b""


@pytest.mark.parametrize("kind", ["square", "gate"])
def test_networks_that_cannot_be_checked_are_refused_at_the_start(kind: str, tmp_path: Path, authority: Path) -> None:
    case = random_case(1, with_square=True) if kind == "square" else random_public_case(1)
    save_program(tmp_path / "compiled", case.program)
    save_weights(tmp_path / "compiled", case.program, case.weights)
    server = sphynx.Server(
        tmp_path / "compiled", keys=authority / "server", listen="127.0.0.1:0", security="malicious-client"
    )
    with pytest.raises(SphynxError, match="not protected against a client that cheats"):
        server.start()
    assert not (tmp_path / "compiled" / "bundles").exists()
