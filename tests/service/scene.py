"""A compiled program, a picture and what it shows, both parties' bundles, and a server process to start."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from sphynx.program.interpret import interpret
from sphynx.service.client import Client
from sphynx.service.ledger import Ledger
from sphynx.service.prediction import ranked
from sphynx.service.store import LEDGER
from tests.service.processes import ServerProcess, infer
from tests.service.tiny import save_tiny
from tests.warm_process import Warm


class Scene:
    def __init__(self, folder: Path, authority: Path, warm: Warm | None = None) -> None:
        self.compiled = folder / "compiled"
        self.picture = folder / "picture.png"
        self.pixels = np.random.default_rng(5).integers(0, 256, (1, 4, 4), np.uint8)
        Image.fromarray(self.pixels[0]).save(self.picture)
        self.use_weights(seed=0)
        self.authority, self.client_state = authority, folder / "client"
        self.server = ServerProcess(self.compiled, authority / "server", folder / "server", folder / "audit", warm=warm)

    def use_weights(self, seed: int) -> None:
        """Before the server starts."""
        self.program, self.weights = save_tiny(self.compiled, seed)
        self.logits = interpret(self.program, self.weights, self.pixels[None])[0]
        self.expected = list(ranked(self.program, self.logits)[0])

    def infer(self, *arguments: str | Path, fault: str = "none") -> subprocess.CompletedProcess[str]:
        return infer(self.server, self.authority / "alice", *arguments, "--state", self.client_state, fault=fault)

    def client(
        self, name: str = "alice", *, keys: Path | None = None, program: str = "", timeout_s: float = 30.0, **more: Any
    ) -> Client:
        """In this process, with bundles of its own."""
        state = self.client_state if name == "alice" else self.client_state.with_name(name)
        where = {"keys": keys or self.authority / name, "state": state, "timeout_s": timeout_s, "program": program}
        return Client("127.0.0.1", self.server.port, **where, **more)  # type: ignore[arg-type]

    def check_inference(self) -> None:
        with self.client() as client:
            assert np.array_equal(client.infer(self.pixels).integer_logits, self.logits)

    def states(self, folder: Path) -> list[str]:
        ledger = Ledger(folder / LEDGER)
        found = [row[0] for row in ledger._file.select("SELECT state FROM bundles ORDER BY changed_at")]
        ledger.close()
        return found
