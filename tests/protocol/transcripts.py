"""Transcripts of a whole private inference under fixed seeds: for each direction and section, in order, how many
messages and bytes, and a SHA-256 of them. Integers only: the same on every CPU, path and number of threads.

    python -m tests.protocol.transcripts      writes wire/<WIRE_VERSION>.json after a change that was meant
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
from tests.program.programs import gated_program, public_program, several_program, small_program
from tests.protocol.parties import run_parties

from sphynx.core import Prg, random_bytes
from sphynx.program.backends import Backend
from sphynx.program.convolve import Array
from sphynx.program.extensions import SILENT, SOFTSPOKEN
from sphynx.program.folder import inside_groups, ungrouped
from sphynx.program.ir import Program
from sphynx.program.revealing import revealing_label
from sphynx.protocol.channel import WIRE_VERSION, Channel
from sphynx.protocol.inference_client import InferenceClient
from sphynx.protocol.inference_server import InferenceServer
from sphynx.protocol.linear import ServerModel
from sphynx.protocol.verify.plan import CheckPlan

KEPT = Path(__file__).parent / "wire" / f"{WIRE_VERSION}.json"
IMAGES = 2
# Gates have the same messages beside either backend.
CASES: dict[str, tuple[Backend, Program]] = {
    "gc": ("gc", small_program(ring_bits=44)),
    "gmw": ("gmw", small_program(ring_bits=44)),
    "gates": ("gmw", gated_program()),
    "groups": ("gmw", small_program(ring_bits=44)),
    "malicious-client": ("gc", public_program()),
    "silent": ("gmw", small_program(ring_bits=44)),
    "silent, malicious-client": ("gc", public_program()),
    "several outputs": ("gmw", several_program()),
    "several outputs, malicious-client": ("gc", several_program()),
    "label, gc": ("gc", revealing_label(small_program(ring_bits=44))),
    "label, gmw": ("gmw", revealing_label(small_program(ring_bits=44), margin=1000.0)),
    "label, malicious-client": ("gc", revealing_label(public_program())),
}
CHECKED = ("malicious-client", "silent, malicious-client", "label, malicious-client")
CHECKS = dict.fromkeys(CHECKED, CheckPlan(44, 4))
CHECKS["several outputs, malicious-client"] = CheckPlan(44, 8)
MADE = dict.fromkeys(("silent", "silent, malicious-client"), SILENT)
TOGETHER = {"groups": 5}  # bundles; otherwise one at a time
Steps = dict[str, list[str]]  # direction -> "phase section: n messages, n bytes, hash"


class _Ear:
    """Listens to what one party sends."""

    def __init__(self) -> None:
        self._sent: dict[str, list[bytes]] = {}

    def listen(self, channel: Channel) -> None:
        send = channel.send

        def heard(*parts: Any) -> None:
            message = b"".join(bytes(part) for part in parts)
            section = channel._section
            self._sent.setdefault(f"{section.phase} {section.layer}", []).append(message)
            send(*parts)

        channel.send = heard

    def steps(self) -> list[str]:
        return [
            f"{name}: {len(messages)} messages, {sum(map(len, messages))} bytes, {_digest(messages)}"
            for name, messages in self._sent.items()
        ]


def _digest(messages: list[bytes]) -> str:
    digest = hashlib.sha256()
    for message in messages:
        digest.update(len(message).to_bytes(8, "little") + message)
    return digest.hexdigest()


def _weights(program: Program, prg: Prg) -> dict[str, Array]:
    """Not from numpy's generators, whose streams may change with its version."""

    def drawn(shape: tuple[int, ...]) -> Array:
        return np.frombuffer(random_bytes(prg, int(np.prod(shape))), np.int8).reshape(shape)

    made = {
        name: drawn(shape).astype(np.int64) if name.endswith("/bias") else np.maximum(drawn(shape), -127)
        for name, shape in program.weight_shapes.items()
    }
    for step in program.linears:
        for number, term in enumerate(step.terms):
            name = step.weight_name(number)
            made[name] = ungrouped(inside_groups(made[name], term.groups), term.groups)
    return made


def _pixels(program: Program, prg: Prg) -> Array:
    kind = np.dtype(program.input.dtype)
    drawn = np.frombuffer(random_bytes(prg, IMAGES * program.image.size * kind.itemsize), kind)
    return (drawn & kind.type(program.input.largest)).reshape(IMAGES, *program.image)


def transcript(case: str, threads: int) -> Steps:
    """Set-up, two bundles or groups, and the inference that spends the last one."""
    (backend, program), prg = CASES[case], Prg.fixed_seed_for_tests(b"weights, pixels.")
    check, made = CHECKS.get(case), MADE.get(case, SOFTSPOKEN)
    model = ServerModel(program, _weights(program, prg), threads=threads, check=check)
    pixels = _pixels(program, prg)
    served, asked, ids = _Ear(), _Ear(), [bytes(16)] * TOGETHER.get(case, 1)

    def server(channel: Channel) -> None:
        served.listen(channel)
        party = InferenceServer(model, channel, Prg.fixed_seed_for_tests(b"the server's one"))
        party.infer([party.prepare_group(ids, backend, IMAGES, made)[-1] for _ in range(2)][1])

    def client(channel: Channel) -> None:
        asked.listen(channel)
        seed = Prg.fixed_seed_for_tests(b"the client's one")
        party = InferenceClient(program, channel, seed, threads=threads, check=check)
        party.infer([party.prepare_group(ids, backend, IMAGES, made)[-1] for _ in range(2)][1], pixels)

    run_parties(server, client)
    return {"client -> server": asked.steps(), "server -> client": served.steps()}


if __name__ == "__main__":
    KEPT.write_text(json.dumps({case: transcript(case, 1) for case in CASES}, indent=1) + "\n")
