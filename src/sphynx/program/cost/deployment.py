"""The deployment that a program is compiled for: the protocol for ReLUs, the link, bundles at once, memory. That sets
its price.

The price is the estimated time of one inference on one core of the reference machine, and a share of preparing the
weights, which also stands for the memory that they take. Somebody waits for the online phase, while bundles are made
ahead: its seconds count ONLINE_WEIGHT times. Weights for which the memory is too small are transformed again for every
preparation of bundles (protocol/linear.py).
"""

from __future__ import annotations

from dataclasses import dataclass

from sphynx.config import setting
from sphynx.errors import InputError
from sphynx.program.backends import Backend, BackendChoice
from sphynx.program.cost.link import LINK_WORDS, LINKS, Link, parse_link

WEIGHT_MEMORY = (
    "Memory for prepared weights, such as 8G; the rest are prepared when they are needed. [default: no limit]"
)
RESIDUE_BYTES = 4
TRANSFORM_SECONDS = 100e-6  # of one weight polynomial
ONLINE_WEIGHT = 4
INFERENCES = 10  # that share a weight which is prepared once, at least


@dataclass(frozen=True)
class Deployment:
    """The conditions that a program is made for: backend, link, bundles at once, memory for weights.

    >>> sphynx.Deployment(backend="gc", bundles=8).link.name
    'lan'
    """

    backend: Backend | None = setting(
        None, "Cut the network for this ReLU protocol; auto: the cheaper one.", written_as=BackendChoice, written="auto"
    )
    link: Link = setting(LINKS["lan"], LINK_WORDS, written_as=str, written="lan", parse=parse_link)
    bundles: int = setting(1, "How many bundles will be prepared at once: they share messages.", least=1)
    memory_bytes: int | None = setting(None, WEIGHT_MEMORY, flag="weight-memory")

    def __post_init__(self) -> None:
        if self.bundles < 1:
            raise InputError(f"{self.bundles} is not a valid number of bundles", remedy="Prepare at least one.")

    def held_weights(self, ring_bits: int) -> float:
        """The number of polynomials that the memory holds."""
        if self.memory_bytes is None:
            return float("inf")
        from sphynx.core import rlwe  # here: flags are made without it

        params = rlwe.Params.for_ring(ring_bits)
        return self.memory_bytes / (RESIDUE_BYTES * params.n * len(params.primes))

    def weight_seconds(self, *, held: bool) -> float:
        """Seconds to transform one polynomial, for one inference."""
        return TRANSFORM_SECONDS / (INFERENCES if held else self.bundles)
