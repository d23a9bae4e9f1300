"""Models that ship are served by name where torch is not installed, with the integers that torch's networks give."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from sphynx.compiler import derive
from sphynx.compiler.derive import derive_weights
from sphynx.program.folder import content_hash, load_program, load_weights
from sphynx.program.interpret import interpret
from sphynx.zoo.shipped import SHIPPED
from tests.service.authority import make_authority

ASKS = """
import sys
sys.modules["torch"] = None
import numpy, sphynx
name, keys, state = sys.argv[1:]
with sphynx.Server(name, keys=keys + "/server", listen="127.0.0.1:0", state=state) as server:
    with sphynx.Client(server.address, keys=keys + "/alice", state=state + "/client") as client:
        image = numpy.random.default_rng(0).integers(0, 256, client.image_shape, numpy.uint8)
        print(*client.infer(image).logits)
"""


def test_a_server_and_a_client_without_torch_answer_as_torch_derives_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "stream-cifar100-12k"
    keys = make_authority(tmp_path / "keys")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    ran = subprocess.run(
        [sys.executable, "-c", ASKS, name, str(keys), str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    program = load_program(SHIPPED / name / "program")
    monkeypatch.setattr(derive, "can_be_walked", lambda _: False)  # so that torch reads it
    derived = derive_weights(SHIPPED / name, SHIPPED / name / "program", program)
    image = np.random.default_rng(0).integers(0, 256, (1, *program.image), np.uint8)
    expected = program.real_numbers(interpret(program, derived, image))[0]
    assert [float(word) for word in ran.stdout.split()] == expected.tolist()
    (kept,) = (tmp_path / "cache" / "sphynx" / "programs").iterdir()
    assert content_hash(load_weights(kept, program)) == content_hash(derived)
