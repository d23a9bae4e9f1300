"""Unmodified torchvision networks, compiled and asked privately: one JSON file for each below results/zoo.

    python -m benchmarks.zoo [NAME ...] [--out results/zoo] [--weight-memory 8G]       (or: make zoo)
    python -m benchmarks.zoo NAME ... --weights FOLDER --data CIFAR100        with what zoo_train.py left in FOLDER

Each runs in a process of its own, so that its peak memory is known: both parties, weights and compiler together.
`python docs/make_zoo.py > docs/results/zoo.md` makes the table.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import nn

from benchmarks.zoo_networks import LARGE, ZOO, Entry, answers, as_data, cifar100, network, trained
from benchmarks.zoo_torchvision import MEAN, STD
from sphynx.api.both_parties import ask_privately
from sphynx.api.compiled import Compiled
from sphynx.api.compiling import compile_network
from sphynx.cli.options import parse_memory
from sphynx.compiler.settings import DEFAULT_KNEES
from sphynx.data.images import Data
from sphynx.errors import SphynxError
from sphynx.program.backends import Backend
from sphynx.program.cost.cost import total_cost
from sphynx.program.cost.deployment import Deployment
from sphynx.program.interpret import interpret
from sphynx.protocol.channel import WIRE_VERSION
from sphynx.record import Record

RESULTS = Path(__file__).parents[1] / "results/zoo"


def kept_file(name: str, *, is_trained: bool, folder: Path = RESULTS) -> Path:
    """Name the file of a row: trained weights have one of their own, since they are rarely at hand to measure again."""
    return folder / f"{name}{'-trained' if is_trained else ''}.json"


@dataclass(frozen=True)
class Row(Record):
    """The results of one network. Seconds and bytes are of one private inference, both parties on this machine."""

    network: str
    size: int
    parameters: int
    relus: int
    comparisons: int
    truncations: int
    he_products: int
    ring_bits: int
    weight_bits: int
    logit_error: float
    images: int
    same_class: int  # of the integer program as of the float network
    backend: str
    exact: bool  # private logits equal to the integer oracle's, bit for bit
    offline_seconds: float
    online_seconds: float
    offline_bytes: int
    online_bytes: int
    compile_seconds: float
    peak_bytes: int
    weight_memory_bytes: int | None
    machine: str
    note: str = ""  # where a row was made in another way than this file makes it
    approximation_error: float = 0.0  # of the logits, by smooth functions alone
    knees: int = 0
    trained_on: str = ""  # data; random weights otherwise
    trained_accuracy: float | None = None  # of the float network, on all test images
    float_accuracy: float | None = None  # on the images asked about
    integer_accuracy: float | None = None  # the same of the program, so of private answers
    wire: int = 0  # the version that the parties spoke; 0: one before files named it
    load: float | None = None  # of the machine when the row was begun: other work's


def measure(entry: Entry, backend: Backend, memory_bytes: int | None, weights: Path | None, folder: str) -> Row:
    load = round(os.getloadavg()[0], 1)
    known = trained(entry, weights) if weights else None
    data = cifar100(folder, entry.size) if known else as_data(entry.size)
    module = known.module if known else network(entry, data)
    labels, real = data.test.labels, answers(module, data.test.images).argmax(1)
    started = time.perf_counter()
    compiled = compiled_entry(entry, module, data, Deployment(backend, memory_bytes=memory_bytes))
    compile_seconds = time.perf_counter() - started
    images = data.test.images.numpy()
    (answer,) = ask_privately(compiled.program, compiled.weights, images[:1], backend, memory_bytes)
    oracle = interpret(compiled.program, compiled.weights, images)
    found = torch.from_numpy(oracle).argmax(1)
    cost = total_cost(compiled.program)
    row = Row(
        entry.network,
        entry.size,
        sum(parameter.numel() for parameter in module.parameters()),
        cost.relus,
        cost.comparisons,
        cost.truncations,
        cost.he_products,
        compiled.program.ring_bits,
        compiled.program.weight_bits,
        compiled.logit_error or 0.0,
        len(images),
        int((found == real).sum()),
        backend,
        bool(np.array_equal(answer.integer_logits, oracle[0])),
        answer.offline_seconds,
        answer.online_seconds,
        answer.offline_bytes,
        answer.online_bytes,
        compile_seconds,
        1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
        memory_bytes,
        f"{os.cpu_count()} cores, {platform.machine()}",
        approximation_error=compiled.approximation_error,
        knees=max((found.knees for found in compiled.approximations), default=0),
        wire=WIRE_VERSION,
        load=load,
    )
    if known is None:
        return row
    return replace(
        row,
        trained_on=known.data,
        trained_accuracy=known.accuracy,
        float_accuracy=float((real == labels).float().mean()),
        integer_accuracy=float((found == labels).float().mean()),
    )


def compiled_entry(entry: Entry, module: nn.Module, data: Data, deployment: Deployment) -> Compiled:
    return compile_network(
        module,
        calibrate=data,
        mean=MEAN,
        std=STD,
        approximate=entry.knees > 0,
        knees=entry.knees or DEFAULT_KNEES,
        deployment=deployment,
    )


def main() -> None:
    known = {entry.name: entry for entry in (*ZOO, *LARGE)}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[*known, []], help="all but the large ones unless given")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--backend", choices=("gc", "gmw"), default="gmw")
    parser.add_argument("--weight-memory", default="", help="for prepared weights, such as 8G")
    parser.add_argument("--weights", type=Path, help="a folder of zoo_train.py: its networks instead of random ones")
    parser.add_argument("--data", default="", help="CIFAR-100, for --weights")
    parser.add_argument("--here", action="store_true", help="in this process, not in one for each")
    options = parser.parse_args()
    if options.weights and not options.data:
        parser.error("--weights needs --data")
    options.out.mkdir(parents=True, exist_ok=True)
    failed = False
    for name in options.names or [entry.name for entry in ZOO]:
        if not options.here:
            print(name, file=sys.stderr, flush=True)
            words = [
                sys.executable,
                "-m",
                "benchmarks.zoo",
                name,
                "--here",
                "--out",
                str(options.out),
                "--backend",
                options.backend,
            ]
            words += ["--weight-memory", options.weight_memory, "--data", options.data]
            words += ["--weights", str(options.weights)] if options.weights else []
            failed |= subprocess.run(words, check=False).returncode != 0
            continue
        try:
            memory_bytes = parse_memory(options.weight_memory, "--weight-memory")
            row = measure(known[name], options.backend, memory_bytes, options.weights, options.data)
        except SphynxError as error:
            sys.exit(str(error))
        file = kept_file(name, is_trained=bool(row.trained_on), folder=options.out)
        file.write_text(json.dumps(row.to_json(), indent=1) + "\n")
    sys.exit(failed)


if __name__ == "__main__":
    main()
