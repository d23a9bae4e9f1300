"""python -m tests.fuzz.by_atheris TARGET [libFuzzer's flags] CORPUS: one target under atheris, Sphynx instrumented."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["sphynx"]):
    from tests.fuzz.mutate import mutated
    from tests.fuzz.targets import TARGETS

target = TARGETS[sys.argv[1]]
for number, data in enumerate(target.seeds()):
    (Path(sys.argv[-1]) / f"seed-{number}").write_bytes(data)


def change(data: bytes, most: int, seed: int) -> bytes:
    """Half of the time a value of the input's own structure is changed, else libFuzzer changes bytes."""
    rng = random.Random(seed)
    made = mutated([data], rng) if rng.random() < 0.5 else atheris.Mutate(data, most)
    return bytes(made[:most])


atheris.Setup([sys.argv[0], *sys.argv[2:]], target.run, custom_mutator=change)
atheris.Fuzz()
