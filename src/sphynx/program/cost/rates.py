"""How fast a machine is at each kind of work of a private inference: what estimates multiply costs with.

`REFERENCE` serves where no machine was measured: to compare two forms of one map or two backends, never to promise a
time.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from sphynx.program.backends import BACKENDS, Backend
from sphynx.program.cost.link import Link

PARTS = ("truncation", "square", "gate")


@dataclass(frozen=True)
class HeSeconds:
    """Per polynomial, on one core. `reply` is without its products. The last three are 0 where they were not told from
    the others."""

    product: float  # with weights from a cache
    encrypt: float
    parse: float
    reply: float
    decrypt: float
    weight: float = 0.0  # more, where a polynomial of weights comes from memory
    used: float = 0.0  # both parties', for each coefficient of a reply that is used
    transform: float = 0.0  # of a polynomial of weights that is not held


@dataclass(frozen=True)
class ReluSeconds:
    """CPU seconds of both parties' work: for each unit (gc: AND gate, gmw: OT), and for each layer."""

    offline: float
    online: float
    online_layer: float
    offline_layer: float = 0.0


@dataclass(frozen=True)
class PartSeconds:
    """CPU seconds of both parties' work on one kind of layer: for each OT or AND gate, and for each layer."""

    each: float
    layer: float


@dataclass(frozen=True)
class Rates:
    """One core's speed, and how many cores there are."""

    machine: str
    cores: int
    gc: ReluSeconds
    gmw: ReluSeconds
    truncation: PartSeconds
    square: PartSeconds
    gate: PartSeconds
    ot_bytes: float  # each, by SoftSpoken
    silent_ot: float  # CPU seconds of both parties that one takes more if it is silent
    limb_macs_per_s: float  # ring convolution: a multiplication of a weight with one byte of an element
    step_s: float  # a convolution's or a pool's cost at any size: the host's call, threads that start
    message_s: float  # one way over TLS on this machine, with what is done around it, without bytes
    byte_s: float  # through TLS, both parties' work
    he_small: HeSeconds  # degree 4096
    he_large: HeSeconds  # degree 8192
    busy_cores: float = 0.0  # that two parties keep busy offline; 0 where it was not measured: all of them
    gate_byte_s: float = 0.0  # both parties' work on long messages of gates, for each byte of corrections
    link_message_s: float = 0.0  # that a message takes more over a link: cores are at rest when it comes

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Rates:
        """Raises TypeError or KeyError where this is not what `to_json` wrote. Parts that were not measured, in kept
        results, have the OTs of GMW."""
        parts: dict[str, Any] = {key: HeSeconds(**data[key]) for key in ("he_small", "he_large")}
        parts |= {key: ReluSeconds(**data[key]) for key in BACKENDS}
        unmeasured = {"each": parts["gmw"].offline, "layer": 0.0}
        parts |= {key: PartSeconds(**data.get(key, unmeasured)) for key in PARTS}
        return cls(**{**data, **parts})

    @property
    def offline_cores(self) -> float:
        """At least one: a smaller figure means that other work took the cores."""
        return max(1.0, min(self.busy_cores or float(self.cores), float(self.cores)))

    def message_over(self, link: Link) -> float:
        """Seconds of a message beside half a round trip and its bytes."""
        return self.message_s + (self.link_message_s if link.round_trip_s else 0.0)

    def relu(self, backend: Backend) -> ReluSeconds:
        return self.gc if backend == "gc" else self.gmw


# Measured: a 2-core Neoverse-N1 at 2.5 GHz with nothing else to do, medians of five runs of
# `bench.calibrate`, measuring afresh; spreads are below 8 %, of gc's offline work 15 %. Messages
# were timed while the other party sent one as well. GMW's were measured when it had 14 messages a layer
# and 1.85 times as many OTs, times 1.12 offline and 1.5 online for each OT: what digits of four bits made of the
# protocol just before them, on two x86-64 cores, by the medians of three such runs of both. Silent OT's excess was
# measured on x86-64: 38 ns with VAES, 45 without, of whole bundles in groups (docs/growth.md). The other parts were not
# measured: their OTs are those of GMW.
REFERENCE = Rates(
    "one core of a Neoverse-N1",
    1,
    gc=ReluSeconds(97.7e-9, 19.0e-9, 0.0),
    gmw=ReluSeconds(118e-9, 1.43e-9, 295e-6),
    truncation=PartSeconds(118e-9, 0.0),
    square=PartSeconds(118e-9, 0.0),
    gate=PartSeconds(118e-9, 0.0),
    ot_bytes=3.875,
    silent_ot=40e-9,
    limb_macs_per_s=51.0e9,
    step_s=26.3e-6,
    message_s=240e-6,
    byte_s=2.27e-9,
    he_small=HeSeconds(13.5e-6, 251e-6, 98e-6, 589e-6, 322e-6),
    he_large=HeSeconds(33.9e-6, 636e-6, 246e-6, 1540e-6, 888e-6),
)
