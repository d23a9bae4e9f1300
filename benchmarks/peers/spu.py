#!/usr/bin/env python3
"""Time SPU (secretflow) with Cheetah on torchvision's ResNet18: an image and weights that are both private.

    python -m venv ../spu && ../spu/bin/pip install spu
    ../spu/bin/python -P benchmarks/peers/spu.py --size 64 --classes 10 --repeat 3

It runs in an environment of its own: SPU pins its versions of jax and numpy, and nothing of Sphynx is needed. Both
parties are processes on this machine, connected by SPU's own link over loopback, without TLS. `as written` has batch
norms as layers of their own, `folded` has them in the convolutions, as Sphynx compiles them. Weights are random, and
shared beforehand, which is not counted. Seconds are those of whole evaluations: nothing is prepared before there is an
image. Bytes are what both parties say that they sent. The answer is held against that in the clear.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import pickle
import re
import socket
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np
import spu
import spu.libspu as libspu
import spu.libspu.link as spu_link
import spu.libspu.logging as spu_logging
import spu.utils.frontend as frontend
from jax import lax

Weights = dict[str, Any]
WIDTHS = (64, 128, 256, 512)  # of the four stages, two blocks each
SENT = re.compile(r"Link details: total send bytes (\d+)")


def convolve(x: Any, kernel: Any, stride: int) -> Any:
    pad = kernel.shape[2] // 2
    layout = ("NCHW", "OIHW", "NCHW")
    return lax.conv_general_dilated(x, kernel, (stride, stride), [(pad, pad)] * 2, dimension_numbers=layout)


def normalised(x: Any, weights: Weights, name: str) -> Any:
    """A convolution's bias, or the batch norm behind it: a product and a sum for each channel."""
    scale = weights.get(f"{name}.scale")
    scaled = x if scale is None else x * scale[None, :, None, None]
    return scaled + weights[f"{name}.shift"][None, :, None, None]


def resnet18(weights: Weights, image: Any) -> Any:
    def layer(x: Any, name: str, stride: int) -> Any:
        return normalised(convolve(x, weights[f"{name}.kernel"], stride), weights, name)

    x = jax.nn.relu(layer(image, "stem", 2))
    x = lax.reduce_window(x, -100.0, lax.max, (1, 1, 3, 3), (1, 1, 2, 2), [(0, 0), (0, 0), (1, 1), (1, 1)])
    for stage in range(len(WIDTHS)):
        for block in range(2):
            name, stride = f"{stage}.{block}", 2 if stage and not block else 1
            y = layer(jax.nn.relu(layer(x, f"{name}.first", stride)), f"{name}.second", 1)
            x = jax.nn.relu(y + (layer(x, f"{name}.down", stride) if stride > 1 else x))
    return x.mean((2, 3)) @ weights["classes"]


def draw_weights(classes: int, folded: bool, seed: int) -> Weights:
    generator, weights = np.random.default_rng(seed), {}

    def add(name: str, out: int, into: int, size: int) -> None:
        spread = np.sqrt(2 / (into * size * size))
        weights[f"{name}.kernel"] = generator.normal(0, spread, (out, into, size, size)).astype(np.float32)
        weights[f"{name}.shift"] = generator.normal(0, 0.1, out).astype(np.float32)
        if not folded:
            weights[f"{name}.scale"] = generator.uniform(0.5, 1, out).astype(np.float32)

    add("stem", WIDTHS[0], 3, 7)
    into = WIDTHS[0]
    for stage, width in enumerate(WIDTHS):
        for block in range(2):
            add(f"{stage}.{block}.first", width, into, 3)
            add(f"{stage}.{block}.second", width, width, 3)
            if stage and not block:
                add(f"{stage}.{block}.down", width, into, 1)
            into = width
    weights["classes"] = generator.normal(0, 0.05, (into, classes)).astype(np.float32)
    return weights


def config() -> Any:
    chosen = libspu.RuntimeConfig(libspu.ProtocolKind.CHEETAH, libspu.FieldType.FM64)
    chosen.experimental_enable_colocated_optimization = True  # an input may be one party's whole
    chosen.enable_hal_profile = chosen.enable_pphlo_profile = True  # they make it say what was sent
    return chosen


def free_ports() -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def run_party(
    rank: int, ports: list[int], executable: Any, shares: list[tuple[str, Any]], repeats: int, log: Path
) -> None:
    """Evaluate, and write what SPU says to `log`, with a line of the seconds of each evaluation."""
    with log.open("w") as out:
        os.dup2(out.fileno(), 1)
        os.dup2(out.fileno(), 2)
    options = spu_logging.LogOptions()
    options.enable_console_logger = True
    options.system_log_path = str(log.with_suffix(".spu"))  # not in the folder that one happens to be in
    spu_logging.setup_logging(options)
    desc = spu_link.Desc()
    for number, port in enumerate(ports):
        desc.add_party(f"party-{number}", f"127.0.0.1:{port}")
    runtime = spu.Runtime(spu_link.create_brpc(desc, rank), config())
    for name, share in shares:
        runtime.set_var(name, share)
    for _ in range(repeats):
        start_s = time.monotonic()
        runtime.run(executable)
        print(f"seconds {time.monotonic() - start_s}", flush=True)
    log.with_suffix(".share").write_bytes(pickle.dumps(runtime.get_var("out")))


def measure(form: str, told: argparse.Namespace) -> dict[str, Any]:
    weights = draw_weights(told.classes, form == "folded", seed=1)
    image = np.random.default_rng(2).normal(0, 1, (1, 3, told.size, told.size)).astype(np.float32)
    flat, _ = jax.tree_util.tree_flatten((weights, image))
    names = [f"in{number}" for number in range(len(flat))]
    secret = libspu.Visibility.VIS_SECRET
    executable, _ = frontend.compile(
        frontend.Kind.JAX, resnet18, (weights, image), {}, names, [secret] * len(flat), lambda _outputs: ["out"]
    )
    io = spu.Io(2, config())
    # Weights are wholly the server's, which spares SPU half of each product; the image is the client's.
    owners = [0] * (len(flat) - 1) + [1]
    shares = {
        name: io.make_shares(value, secret, owner) for name, value, owner in zip(names, flat, owners, strict=True)
    }
    ports, fresh = free_ports(), multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory(prefix="spu-") as folder:
        logs = [Path(folder) / f"{rank}.log" for rank in range(2)]
        parties = [
            fresh.Process(
                target=run_party,
                args=(rank, ports, executable, [(n, s[rank]) for n, s in shares.items()], told.repeat, log),
            )
            for rank, log in enumerate(logs)
        ]
        for party in parties:
            party.start()
        for party in parties:
            party.join()
        texts = [log.read_text() for log in logs]
        if any(party.exitcode for party in parties):
            sys.exit("\n".join(texts))
        answer = io.reconstruct([pickle.loads(log.with_suffix(".share").read_bytes()) for log in logs])
    error = float(np.abs(answer - np.asarray(resnet18(weights, image))).max())
    seconds = [float(line.split()[1]) for line in texts[0].splitlines() if line.startswith("seconds ")]
    sent = [sum(map(int, SENT.findall(text))) / told.repeat for text in texts]
    return {"form": form, "size": told.size, "seconds": seconds, "bytes": sum(sent), "largest_error": error}


def main() -> None:
    parse = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parse.add_argument("--size", type=int, default=64, help="Rows and columns of the image.")
    parse.add_argument("--classes", type=int, default=10)
    parse.add_argument("--repeat", type=int, default=3, help="Evaluations of each form.")
    parse.add_argument("--form", choices=("as written", "folded"), help="One form alone.")
    told = parse.parse_args()
    for form in [told.form] if told.form else ["as written", "folded"]:
        print(json.dumps(measure(form, told)), flush=True)


if __name__ == "__main__":
    main()
