"""One party of `two_builds.py`, run by the interpreter of the build that is measured: so it uses only what builds of
different times have in common, and asks for the rest by name.

    python -P two_builds_party.py server NETWORK SERVER_KEYS CLIENT_KEYS 0

It tells its port first, then for every line that it reads what one preparation took.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from sphynx.core import limit_cores
from sphynx.protocol.channel import Channel
from sphynx.protocol.linear import ServerModel
from sphynx.service.local import LocalKeys
from sphynx.zoo.by_name import compiled_folder


def load(network: str) -> tuple[Any, Any]:
    """The program and its weights, by the function that this build has for it."""
    folder = compiled_folder(network, lambda said: print(said, file=sys.stderr))
    module = import_module("sphynx.program.folder")
    if hasattr(module, "load_compiled"):
        program, weights = module.load_compiled(folder)
    else:
        program = import_module("sphynx.program.files").load_program(folder)
        weights = import_module("sphynx.program.weights").load_weights(folder, program)
    return program, weights


def party_class(role: str) -> Any:
    """The class of a role: each has a module of its own, or one has both."""
    name = f"Inference{role.capitalize()}"
    try:
        return getattr(import_module(f"sphynx.protocol.inference_{role}"), name)
    except ModuleNotFoundError:
        return getattr(import_module("sphynx.protocol.inference"), name)


def agree_on_ids(channel: Channel, role: str, count: int) -> list[bytes]:
    """Draw identifiers at the client and tell the server; so that both begin together, too."""
    if role == "client":
        ids = [os.urandom(16) for _ in range(count)]
        channel.send(b"".join(ids))
        channel.receive(1)
        return ids
    told = bytes(channel.receive(16 * count))
    channel.send(b".")
    return [told[at : at + 16] for at in range(0, len(told), 16)]


def serve_orders(role: str, network: str, channel: Channel, program: Any, weights: Any) -> None:
    pixels = np.random.default_rng(1).integers(0, 256, (1, *program.image), np.uint8)
    if role == "server":
        party = party_class(role)(ServerModel(program, weights, threads=1), channel)
    else:
        party = party_class(role)(program, channel, threads=1)
    for line in sys.stdin:
        order = json.loads(line)
        ids = agree_on_ids(channel, role, order["group"])
        channel.take_record()
        start_s = time.process_time()
        if hasattr(party, "prepare_group"):
            extensions = import_module("sphynx.program.extensions").Extensions
            bundles = party.prepare_group(ids, "gmw", 1, extensions(*order["ots"]))
        else:
            bundles = [party.prepare(one, "gmw", 1) for one in ids]
        channel.wait_sent()
        cpu_s = time.process_time() - start_s
        offline = channel.take_record().total("offline")
        if order["answering"] and role == "server":
            party.infer(bundles[-1])
        elif order["answering"]:
            expected = import_module("sphynx.program.interpret").interpret(program, weights, pixels)
            if not np.array_equal(party.infer(bundles[-1], pixels), expected):
                sys.exit(f"{network}: a private answer differs from the oracle's")
        each = {"cpu_s": cpu_s / len(ids), "bytes": offline.bytes / len(ids)}
        print(json.dumps(each), flush=True)


def main() -> None:
    role, network, server_keys, client_keys, port = sys.argv[1:]
    limit_cores(1)
    keys, (program, weights) = LocalKeys(Path(server_keys), Path(client_keys)), load(network)
    if role == "server":
        with socket.create_server(("127.0.0.1", 0)) as listener:
            print(json.dumps({"port": listener.getsockname()[1]}), flush=True)
            sock = listener.accept()[0]
        channel = keys.open_channel(sock, "server", None)
    else:
        channel = keys.open_channel(socket.create_connection(("127.0.0.1", int(port))), "client", None)
    serve_orders(role, network, channel, program, weights)
    channel.close()


if __name__ == "__main__":
    main()
