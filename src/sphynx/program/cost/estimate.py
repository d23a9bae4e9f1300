"""How long one private inference takes, offline and online: a program's public costs on a machine and a link. No torch.

Both parties share one machine, as in `sphynx bench private`; on two machines the offline phase is up to twice as fast.

    offline    the linear maps of all layers, then their ReLUs, then what else there is, each kind as a pipeline: what
               goes up, both parties' work on as many cores as they keep busy, what goes down. Requests run ahead of
               their answers, so these three go on at once, of different pieces: a layer, or what GMW prepares at once
    online     of each layer the server's linear map on all cores, with what the start of a convolution costs; then
               gc     both parties' work on all cores and all bytes through TLS, or the labels' transfer where that
                      takes longer: labels are evaluated while the next ones are on their way
               gmw    both parties' work and all bytes, one after the other

OTs are silent, in either direction, where that is faster offline over the link, once their set-up is paid.

A message costs the hosts' work, online also half a round trip. Round trips offline: one per hop of a chain, one for the
masks and two for OT. A link's times are added to those of this machine's own loopback, which are in the rates. Set-up
(TLS handshake, base OT, keys) is left out: it is paid once a session.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from sphynx.core import silent
from sphynx.program.backends import BACKENDS, Backend
from sphynx.program.cost.answer import AnswerCost, answer_cost
from sphynx.program.cost.cost import CUT_RELUS, LayerCost, activation_costs, layer_costs, packed_bytes
from sphynx.program.cost.link import Link
from sphynx.program.cost.ot_messages import BLOCK_BYTES, SEED_BLOCKS_DOWN, SEED_BLOCKS_UP, bytes_each
from sphynx.program.cost.pipeline import Step, pipelined
from sphynx.program.cost.rates import HeSeconds, PartSeconds, Rates
from sphynx.program.extensions import SOFTSPOKEN, Extension, Extensions, every_extension
from sphynx.program.ir import Program, PublicMap

OFFLINE_MESSAGES: dict[Backend, int] = {"gc": 2, "gmw": 4}  # of a layer of ReLUs
SMALL_DEGREE_BITS = 48  # rings up to here fit polynomials of degree 4096


@dataclass(frozen=True)
class LayerTime:
    """The time of a linear map and of the nonlinearity that reads it."""

    name: str
    offline_seconds: float
    online_seconds: float
    offline_bytes: float
    online_bytes: float


@dataclass(frozen=True)
class Estimate:
    """Time and traffic of one private inference, layer by layer and in all.

    >>> estimate: sphynx.Estimate = sphynx.Compiled.load("compiled/digits").estimate("lan")  # doctest: +SKIP
    >>> estimate.total.online_seconds  # doctest: +SKIP
    0.004
    """

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
        return {**asdict(self), "link": self.link.to_json(), "total": asdict(self.total)}


@dataclass(frozen=True)
class HeWork:
    """The homomorphic work of one linear map for one bundle: a share of what a group of them takes together."""

    products: float
    weights: float  # polynomials of them, those in a subring in part, that come from memory
    uploads: float
    replies: float
    used: float  # coefficients of replies
    upload_bytes: float
    reply_bytes: float
    messages: int  # of the group
    transforms: float = 0.0  # polynomials of weights that the server does not hold, those in a subring in part

    @classmethod
    def of(cls, cost: LayerCost) -> HeWork:
        """Take the map as planned by itself."""
        return cls(
            cost.he_products,
            cost.he_weights,
            cost.he_uploads,
            cost.he_replies,
            cost.he_used,
            cost.he_upload_bytes,
            cost.he_reply_bytes,
            cost.he_messages,
        )

    def seconds(self, he: HeSeconds) -> float:
        products = self.products * he.product + self.weights * he.weight + self.transforms * he.transform
        replies = self.replies * (he.reply + he.decrypt) + self.used * he.used
        return products + self.uploads * (he.encrypt + he.parse) + replies


def estimate(
    program: Program,
    rates: Rates,
    link: Link,
    backend: Backend | None = None,
    made: Extensions | None = None,
    *,
    planned: Mapping[str, HeWork] | None = None,
    bundles: int = 1,
) -> Estimate:
    """Estimate with the given backend, or the one that is faster online, and with OTs that are extended this way, or
    the one that is faster offline for whoever asks often.

    `planned` is each map's homomorphic work for one bundle of a group of `bundles`; without it, each map is planned
    alone."""
    backend = backend or faster_backend(program, rates, link)
    made = made or faster_extensions(program, rates, link, backend, ready=frozenset(("down", "up")))
    costs = dict(layer_costs(program))
    layers = layer_times(program, costs, rates, link, backend, bundles, made=made, planned=planned)
    steps = _offline_steps(program, costs, rates, backend, made, planned)
    offline = pipelined(steps, rates, link, bundles)
    timed = (
        replace(layer, offline_seconds=seconds + _hop_seconds(program, layer.name, link, bundles))
        for layer, seconds in zip(layers, offline, strict=True)
    )
    return Estimate(backend, link, (*timed, _ends(program, rates, link, made)))


def faster_backend(program: Program, rates: Rates, link: Link, batch: int = 1) -> Backend:
    """Online. Backends differ in nonlinear layers only: no linear map is planned here, which would take longest."""
    costs = [cost for _, cost in activation_costs(program, batch)]
    return min(BACKENDS, key=lambda backend: sum(_nonlinear_online(cost, rates, link, backend) for cost in costs))


def faster_extensions(
    program: Program,
    rates: Rates,
    link: Link,
    backend: Backend,
    *,
    images: int = 1,
    ready: frozenset[str] = frozenset(),
) -> Extensions:
    """Choose what is faster offline for this many images. Silent OT is set up already in the directions that are
    `ready`; no linear map is planned here."""
    costs = [cost for _, cost in activation_costs(program)]
    used_up = any(sum(ots.up for ots in _ot_counts(cost, backend)) for cost in costs)

    def seconds(made: Extensions) -> float:
        steps = (step for cost in costs for step in _nonlinear_steps(cost, rates, backend, made))
        new = made.silent - ready
        return images * sum(step.seconds(rates, link, 1, overlaps=True) for step in steps) + sum(
            _set_up_seconds(direction, rates, link) for direction in new
        )

    able = [made for made in every_extension() if used_up or made.up == "softspoken"]
    return min(able, key=lambda made: (seconds(made), len(made.silent)))


def _set_up_seconds(direction: str, rates: Rates, link: Link) -> float:
    seed_bytes = BLOCK_BYTES * (SEED_BLOCKS_DOWN if direction == "down" else SEED_BLOCKS_UP)
    work = silent.SHAPE.seeds * rates.gmw.offline / rates.offline_cores + seed_bytes * rates.byte_s
    return link.round_trip_s + link.transfer_s(seed_bytes) + work


def layer_times(
    program: Program,
    costs: Mapping[str, LayerCost],
    rates: Rates,
    link: Link,
    backend: Backend,
    bundles: int = 1,
    *,
    made: Extensions = SOFTSPOKEN,
    planned: Mapping[str, HeWork] | None = None,
) -> Iterator[LayerTime]:
    """Time those linear maps whose costs are given, each by itself: offline by the longest of sending up, of sending
    down and of work. Bundles that are prepared at once share their messages."""
    limbs = -(-program.ring_bits // 8)
    first = next(program.linears).name
    all_steps = _offline_steps(program, costs, rates, backend, made, planned)
    for (name, cost), steps in zip(costs.items(), all_steps, strict=True):
        offline = sum(step.seconds(rates, link, bundles, overlaps=name != first) for step in steps)
        offline += _hop_seconds(program, name, link, bundles)
        online = cost.ring_macs * limbs / rates.limb_macs_per_s / rates.cores + cost.convolutions * rates.step_s
        online += _nonlinear_online(cost, rates, link, backend)
        offline_bytes = sum(step.up_bytes + step.down_bytes for step in steps)
        yield LayerTime(name, offline, online, offline_bytes, _online_bytes(cost, backend))


def _hop_seconds(program: Program, name: str, link: Link, bundles: int) -> float:
    """The round trip of a map that others of its chain wait for."""
    return link.round_trip_s / bundles if name in program.links else 0.0


def _offline_steps(
    program: Program,
    costs: Mapping[str, LayerCost],
    rates: Rates,
    backend: Backend,
    made: Extensions,
    planned: Mapping[str, HeWork] | None,
) -> Iterator[tuple[Step, ...]]:
    """List for each linear map its own step, that of the ReLUs behind it, and those of other nonlinearities."""
    he = rates.he_small if program.ring_bits <= SMALL_DEGREE_BITS else rates.he_large
    for name, cost in costs.items():
        work = HeWork.of(cost) if planned is None else planned[name]
        sizes = work.messages, work.upload_bytes, work.reply_bytes
        he_step = Step(work.seconds(he), *sizes, asked_work=work.uploads * he.encrypt)
        yield (he_step, *_nonlinear_steps(cost, rates, backend, made))


@dataclass(frozen=True)
class _OtCount:
    """OTs of one kind of nonlinearity in a layer: in `down` with given and with random choices, and in `up`."""

    given: float = 0
    random: float = 0
    up: float = 0

    def seconds(self, rates: Rates, made: Extensions) -> float:
        """The work that silent OTs take more."""
        down = (self.given + self.random) * (made.down == "silent")
        return (down + self.up * (made.up == "silent")) * rates.silent_ot

    def bytes(self, rates: Rates, made: Extensions) -> tuple[float, float]:
        """(up, down): what the client sends and the server; trees go against the stream of choices."""
        wanted = ((made.down, False, self.given), (made.down, True, self.random))
        down = sum(count * _ot_bytes(rates, kind, random_choices=random) for kind, random, count in wanted)
        return down, self.up * _ot_bytes(rates, made.up, random_choices=True)


def _ot_bytes(rates: Rates, kind: Extension, *, random_choices: bool) -> float:
    return rates.ot_bytes if kind == "softspoken" else bytes_each(kind, random_choices=random_choices)


def _relu_ots(cost: LayerCost, backend: Backend) -> _OtCount:
    if backend == "gc":
        return _OtCount(cost.gc_ots)
    return _OtCount(cost.gmw_ots - 2 * cost.gmw_down_ots, cost.gmw_down_ots, cost.gmw_down_ots)


def _truncation_ots(cost: LayerCost) -> _OtCount:
    nodes = cost.truncation_down_ots
    return _OtCount(cost.truncation_ots - 2 * nodes, nodes, nodes)


def _ot_counts(cost: LayerCost, backend: Backend) -> tuple[_OtCount, ...]:
    """Count the OTs of ReLUs, truncations, squares and gates."""
    gates = _OtCount(cost.gate_ots / 2, up=cost.gate_ots / 2)
    return _relu_ots(cost, backend), _truncation_ots(cost), _OtCount(cost.square_ots), gates


def _nonlinear_steps(cost: LayerCost, rates: Rates, backend: Backend, made: Extensions) -> Iterator[Step]:
    """The steps of ReLUs by the backend, and of signed truncations, squares and gates beside either."""
    relu = rates.relu(backend)
    relu_work = relu_units(cost, backend) * relu.offline + cost.relu_layers * relu.offline_layer
    ring_bytes = (cost.gmw_offline_ring_bytes - cost.gmw_correction_bytes, cost.gmw_correction_bytes)
    relu_bytes = (0, cost.gc_table_bytes) if backend == "gc" else ring_bytes
    gate_work = _part_work(rates.gate, cost.gate_ots, cost.gate_layers)
    gate_work += 2 * cost.gate_correction_bytes * rates.gate_byte_s
    cuts = -(-(cost.relus + cost.comparisons) // CUT_RELUS) if backend == "gmw" else 1
    parts = (
        (relu_work, OFFLINE_MESSAGES[backend] * cost.relu_layers, *relu_bytes),
        (
            _part_work(rates.truncation, cost.truncation_ots, cost.truncation_layers),
            2 * cost.truncation_layers,
            0,
            cost.truncation_correction_bytes,
        ),
        (
            _part_work(rates.square, cost.square_ots, cost.square_layers),
            2 * cost.square_layers,
            0,
            cost.square_correction_bytes,
        ),
        (gate_work, 3 * cost.gate_layers, cost.gate_correction_bytes, cost.gate_correction_bytes),
    )
    pieces = (max(cuts, 1), 1, 1, 1)
    for ots, part, count in zip(_ot_counts(cost, backend), parts, pieces, strict=True):
        work, messages, up_bytes, down_bytes = part
        up_ots, down_ots = ots.bytes(rates, made)
        yield Step(work + ots.seconds(rates, made), messages, up_bytes + up_ots, down_bytes + down_ots, count)


def _part_work(rate: PartSeconds, ots: float, layers: int) -> float:
    return ots * rate.each + layers * rate.layer


def _ends(program: Program, rates: Rates, link: Link, made: Extensions) -> LayerTime:
    """The masked input up, shares of outputs or the circuit of a label down, public maps; offline the round trips that
    no layer has to itself."""
    names = () if program.reveals_label else program.output_names
    sizes = [program.image.size, *(program.shapes[name].size for name in names)]
    answer = answer_cost(program) if program.reveals_label else AnswerCost()
    online_bytes = sum(packed_bytes(size, program.ring_bits) for size in sizes) + answer.online_bytes
    offline_trips = 1 + 2 * (any(program.activations) or program.reveals_label)
    host = (len(sizes) + answer.messages) * rates.message_over(link)
    host += sum(isinstance(step, PublicMap) for step in program.steps) * rates.step_s
    work, step = answer.ands / rates.cores, _answer_step(answer, rates, made)
    return LayerTime(
        "input and outputs",
        offline_trips * link.round_trip_s + (step.seconds(rates, link, 1, overlaps=True) if answer.ands else 0.0),
        link.round_trip_s + link.transfer_s(online_bytes) + host + online_bytes * rates.byte_s + work * rates.gc.online,
        step.up_bytes + step.down_bytes,
        online_bytes,
    )


def _answer_step(answer: AnswerCost, rates: Rates, made: Extensions) -> Step:
    ots = _OtCount(answer.ots)
    up_bytes, down_bytes = ots.bytes(rates, made)
    work = answer.ands * rates.gc.offline + ots.seconds(rates, made)
    return Step(work, OFFLINE_MESSAGES["gc"], up_bytes, down_bytes + answer.table_bytes)


def relu_units(cost: LayerCost, backend: Backend) -> int:
    return cost.gc_ands if backend == "gc" else cost.gmw_ots


def _online_bytes(cost: LayerCost, backend: Backend) -> int:
    others = cost.square_online_bytes + cost.truncation_online_bytes + cost.gate_online_bytes
    return others + (cost.gc_online_bytes if backend == "gc" else cost.gmw_online_bytes)


def _nonlinear_online(cost: LayerCost, rates: Rates, link: Link, backend: Backend) -> float:
    online_bytes = _online_bytes(cost, backend)
    sealed, transfer = online_bytes * rates.byte_s, link.transfer_s(online_bytes)
    seconds = _messages(cost, backend) * (rates.message_over(link) + link.round_trip_s / 2)
    seconds += cost.truncation_layers * rates.gmw.online_layer + cost.truncation_ots * rates.gmw.online
    if not cost.relu_layers:
        return seconds + sealed + transfer
    relu = rates.relu(backend)
    seconds += cost.relu_layers * relu.online_layer
    work = relu_units(cost, backend) * relu.online
    if backend == "gc":
        return seconds + max(work / rates.cores + sealed, transfer)
    return seconds + work + sealed + transfer


def _messages(cost: LayerCost, backend: Backend) -> int:
    others = cost.square_messages + cost.truncation_messages + cost.gate_messages
    return others + (cost.gc_messages if backend == "gc" else cost.gmw_messages)
