"""One of several processes with the same keys: `python -m tests.service.asking_process PORT KEYS SEED COUNT`.

Asks about COUNT random images of the seed and prints the logits, one JSON list per line; $SPHYNX_TEST_AUDIT as in
`fault_process`.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sphynx.service.client import Client
from tests.service.fault_process import audit


def images(seed: int, count: int) -> Iterator[NDArray[np.uint8]]:
    rng = np.random.default_rng(seed)
    for _ in range(count):
        yield rng.integers(0, 256, (1, 4, 4), np.uint8)


if __name__ == "__main__":
    port, keys, seed, count = sys.argv[1:]
    audit(os.environ["SPHYNX_TEST_AUDIT"])
    with Client("127.0.0.1", int(port), keys=Path(keys)) as client:
        for number, pixels in enumerate(images(int(seed), int(count))):
            if number % 3 == 0:
                client.warm()
            print(json.dumps(client.infer(pixels).integer_logits.tolist()))
