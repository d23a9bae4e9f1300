"""Private inference with both parties in this process: two threads, a pair of sockets, neither TLS nor keys.

For trying a program out. The protocol is the one that a server and its clients run, so that bytes, rounds and answers
are theirs; times are those of two parties that share this machine.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sphynx.errors import ConnectionLostError
from sphynx.program.backends import Backend
from sphynx.program.interpret import require_images
from sphynx.program.ir import Program
from sphynx.program.security import Security
from sphynx.protocol.bundle import ID_BYTES
from sphynx.protocol.channel import Channel, local_pair
from sphynx.protocol.inference_client import InferenceClient
from sphynx.protocol.inference_server import InferenceServer
from sphynx.protocol.linear import ServerModel
from sphynx.protocol.verify.plan import plan_security
from sphynx.service.prediction import Prediction

TIMEOUT_S = 600.0  # a large layer on a slow machine


def ask_privately(
    program: Program,
    weights: Mapping[str, NDArray[Any]],
    images: NDArray[np.uint8],
    backend: Backend,
    weight_memory_bytes: int | None = None,
    security: Security = "semi-honest",
) -> list[Prediction]:
    """uint8 [n, channels, height, width], one inference for each."""
    require_images(program, images)
    server_end, client_end = local_pair(timeout_s=TIMEOUT_S)
    identifiers = [os.urandom(ID_BYTES) for _ in images]
    with ThreadPoolExecutor(1, "sphynx-server") as pool:
        check = plan_security(security, program, weights)
        model = ServerModel(program, dict(weights), memory_bytes=weight_memory_bytes, check=check)
        served = pool.submit(_serve, model, server_end, identifiers, backend)
        try:
            party = InferenceClient(program, client_end, check=check)
            found = list(_ask(party, client_end, images, identifiers, backend))
        except ConnectionLostError:
            served.result()  # what the server failed by says more than that it is gone
            raise
        finally:
            client_end.close()
        served.result()
    return found


def _serve(model: ServerModel, channel: Channel, identifiers: list[bytes], backend: Backend) -> None:
    try:
        party = InferenceServer(model, channel)
        for identifier in identifiers:
            party.infer(party.prepare(identifier, backend))
    finally:
        channel.close()


def _ask(
    party: InferenceClient, channel: Channel, images: NDArray[np.uint8], identifiers: list[bytes], backend: Backend
) -> Iterator[Prediction]:
    program = party.program
    for identifier, pixels in zip(identifiers, images, strict=True):
        channel.take_record()
        start_s = time.monotonic()
        bundle = party.prepare(identifier, backend)
        prepared_s, offline = time.monotonic(), channel.take_record().total()
        integers = party.infer(bundle, pixels[None])[0]
        online = channel.take_record().total()
        yield Prediction(
            program,
            integers,
            backend=backend,
            batch=1,
            offline_seconds=prepared_s - start_s,
            offline_bytes=offline.bytes,
            online_seconds=time.monotonic() - prepared_s,
            online_bytes=online.bytes,
            online_rounds=online.rounds,
        )
