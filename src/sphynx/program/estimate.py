"""How long one private inference takes, offline and online: a program's public costs on a machine and a link. No torch.

Both parties have the same machine and work one after the other; messages wait for the link; nothing overlaps. Work is
divided by the cores. Round trips: offline one per hop of a chain and two for OT, online half of one per message of the
ReLU protocols and one for the input and the logits. Set-up (TLS, base OT, keys) is left out: it is paid once a session.

`REFERENCE` serves where no machine was measured: to compare two forms of one map, never to promise a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from sphynx.program.cost import LayerCost, layer_costs, packed_bytes
from sphynx.program.ir import Program, Relu
from sphynx.program.link import Link

Backend = Literal["gc", "gmw"]
BACKENDS: tuple[Backend, ...] = ("gc", "gmw")
GC_MESSAGES = 2  # labels down, colour bits up
SMALL_DEGREE_BITS = 48  # rings up to here fit polynomials of degree 4096


@dataclass(frozen=True)
class HeSeconds:
    """Per polynomial, on one core. `reply` is without its products."""

    product: float
    encrypt: float
    parse: float
    reply: float
    decrypt: float


@dataclass(frozen=True)
class Rates:
    """One core's speed, and how many cores there are."""

    machine: str
    cores: int
    garble_ands_per_s: float
    evaluate_ands_per_s: float
    ots_per_s: float
    ot_bytes: float  # each
    gmw_relus_per_s: float  # the local work of one party
    limb_macs_per_s: float  # ring convolution: a multiplication of a weight with one byte of an element
    he_small: HeSeconds  # degree 4096
    he_large: HeSeconds  # degree 8192

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Rates:
        """Raises TypeError or KeyError where this is not what `to_json` wrote."""
        parts = {key: HeSeconds(**data[key]) for key in ("he_small", "he_large")}
        return cls(**{**data, **parts})


# Measured: one core of a 2-core Neoverse-N1 at 2.5 GHz, CPU time, the best of three runs of
# `sphynx estimate sphynx-cifar100-25k --recalibrate --json`; other work was on the machine (load 6).
REFERENCE = Rates(
    "one core of a Neoverse-N1",
    1,
    garble_ands_per_s=34.8e6,
    evaluate_ands_per_s=73.5e6,
    ots_per_s=21.8e6,
    ot_bytes=3.875,
    gmw_relus_per_s=14.4e6,
    limb_macs_per_s=48.8e9,
    he_small=HeSeconds(14.3e-6, 264e-6, 103e-6, 600e-6, 323e-6),
    he_large=HeSeconds(35.2e-6, 659e-6, 258e-6, 1580e-6, 900e-6),
)


@dataclass(frozen=True)
class LayerTime:
    """Of a linear map and the nonlinearity that reads it."""

    name: str
    offline_seconds: float
    online_seconds: float
    offline_bytes: float
    online_bytes: float


@dataclass(frozen=True)
class Estimate:
    backend: Backend
    link: Link
    layers: tuple[LayerTime, ...]

    @property
    def total(self) -> LayerTime:
        return LayerTime(
            "all",
            sum(layer.offline_seconds for layer in self.layers),
            sum(layer.online_seconds for layer in self.layers),
            sum(layer.offline_bytes for layer in self.layers),
            sum(layer.online_bytes for layer in self.layers),
        )

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "total": asdict(self.total)}


def estimate(program: Program, rates: Rates, link: Link, backend: Backend | None = None) -> Estimate:
    """With the backend that is faster online where none is given."""
    if backend is None:
        both = (estimate(program, rates, link, backend) for backend in BACKENDS)
        return min(both, key=lambda found: found.total.online_seconds)
    layers = tuple(layer_times(program, dict(layer_costs(program)), rates, link, backend))
    return Estimate(backend, link, (*layers, _ends(program, link)))


def layer_times(
    program: Program, costs: Mapping[str, LayerCost], rates: Rates, link: Link, backend: Backend
) -> Iterator[LayerTime]:
    """Of those linear maps whose costs are given."""
    limbs = -(-program.ring_bits // 8)
    links = {step.name for step in program.linears if not step.range_bits}
    for name, cost in costs.items():
        he = _he_seconds(cost, rates.he_small if program.ring_bits <= SMALL_DEGREE_BITS else rates.he_large)
        he_bytes = cost.he_upload_bytes + cost.he_reply_bytes
        offline = he / rates.cores + link.transfer_s(he_bytes)
        offline += link.round_trip_s if name in links else 0.0
        online = cost.macs * limbs / rates.limb_macs_per_s / rates.cores
        material_bytes, online_bytes = _nonlinear_bytes(cost, rates, backend)
        if cost.relus:
            offline += _relu_offline(cost, rates, backend)
            online += _relu_online(cost, rates, backend)
        offline += link.transfer_s(material_bytes)
        online += link.transfer_s(online_bytes) + _messages(cost, backend) * link.round_trip_s / 2
        yield LayerTime(name, offline, online, he_bytes + material_bytes, online_bytes)


def _ends(program: Program, link: Link) -> LayerTime:
    """The masked image up, the logits' share down; offline the round trips that no layer has to itself."""
    online_bytes = sum(
        packed_bytes(size, program.ring_bits) for size in (program.image.size, program.logits.shape.size)
    )
    has_relus = any(isinstance(step, Relu) for step in program.steps)
    offline_trips = 1 + 2 * has_relus
    return LayerTime(
        "input and logits",
        offline_trips * link.round_trip_s,
        link.round_trip_s + link.transfer_s(online_bytes),
        0.0,
        online_bytes,
    )


def _he_seconds(cost: LayerCost, he: HeSeconds) -> float:
    return (
        cost.he_products * he.product
        + cost.he_uploads * (he.encrypt + he.parse)
        + cost.he_replies * (he.reply + he.decrypt)
    )


def _nonlinear_bytes(cost: LayerCost, rates: Rates, backend: Backend) -> tuple[float, float]:
    """(offline, online)."""
    if backend == "gc":
        return cost.gc_table_bytes + cost.gc_ots * rates.ot_bytes, cost.gc_online_bytes + cost.square_online_bytes
    offline_bytes = cost.gmw_ots * rates.ot_bytes + cost.gmw_offline_ring_bytes
    return offline_bytes, cost.gmw_online_bytes + cost.square_online_bytes


def _relu_offline(cost: LayerCost, rates: Rates, backend: Backend) -> float:
    if backend == "gc":
        work = cost.gc_ands / rates.garble_ands_per_s + cost.gc_ots / rates.ots_per_s
    else:
        work = cost.gmw_ots / rates.ots_per_s
    return work / rates.cores


def _relu_online(cost: LayerCost, rates: Rates, backend: Backend) -> float:
    if backend == "gc":
        return cost.gc_ands / rates.evaluate_ands_per_s / rates.cores
    return 2 * cost.relus / rates.gmw_relus_per_s / rates.cores  # one party waits for the other


def _messages(cost: LayerCost, backend: Backend) -> int:
    relu_messages = 0 if not cost.relus else GC_MESSAGES if backend == "gc" else cost.gmw_messages
    return relu_messages + cost.square_messages
