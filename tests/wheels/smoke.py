"""Checks after `pip install` of a wheel alone. Run with that environment's Python; imports nothing from tests.

python smoke.py plan                                 plan a network; the compiled core runs; no torch is loaded
python smoke.py keys FOLDER                          an authority, keys for a server and a client
python smoke.py derive NAME COMPILED                 a compiled folder of a model with its weights; needs torch
python smoke.py serve COMPILED KEYS PORT_FILE        serve until the standard input ends
python smoke.py ask KEYS PORT_FILE COMPILED          ask over TLS; the answer must equal the integer program's
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import time
from pathlib import Path

SERVER_STARTS_S = 120.0


def sphynx(*words: str) -> str:
    program = str(Path(sys.executable).parent / "sphynx")
    return subprocess.run([program, *words], check=True, capture_output=True, text=True).stdout


def plan() -> None:
    import sphynx as package
    from sphynx.core import cpu_features

    assert "Chosen" in sphynx("plan", "--relu-budget", "50k")
    assert sphynx("--version").split()[1] == package.__version__
    assert package.plan(relu_budget="50k").chosen.relus > 0
    assert cpu_features().aes_path and "torch" not in sys.modules


def keys(folder: str) -> None:
    sphynx("keys", "init", folder)
    sphynx("keys", "issue", "server", "--server", "127.0.0.1", "--keys", folder)
    sphynx("keys", "issue", "alice", "--client", "--keys", folder)


def derive(name: str, compiled: str) -> None:
    import sphynx as package

    package.Compiled.load(name).save(compiled)


def serve(compiled: str, keys_folder: str, port_file: str) -> None:
    import sphynx as package

    with package.Server(compiled, keys=keys_folder, listen="127.0.0.1:0") as server:
        Path(port_file + ".part").write_text(str(server.port))
        Path(port_file + ".part").rename(port_file)
        sys.stdin.read()


def ask(keys_folder: str, port_file: str, compiled: str) -> None:
    import numpy as np

    import sphynx as package

    end_s = time.monotonic() + SERVER_STARTS_S
    while not Path(port_file).exists() and time.monotonic() < end_s:
        time.sleep(0.1)
    address = f"127.0.0.1:{Path(port_file).read_text()}"
    with package.Client(address, keys=keys_folder) as client:
        image = np.random.default_rng(1).integers(0, 256, client.image_shape, dtype=np.uint8)
        for backend in ("gmw", "gc"):
            found = client.infer(image, backend=backend)
            print(f"{backend}: {found.label}, {1000 * found.online_seconds:.0f} ms online")
            assert np.array_equal(found.logits, package.Compiled.load(compiled).infer(image[None])[0])
    has_torch = importlib.util.find_spec("torch") is not None
    print(f"equal to the integer program; torch {'is' if has_torch else 'is not'} installed")


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
