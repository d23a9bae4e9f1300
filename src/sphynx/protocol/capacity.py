"""Plan what a rate of inferences needs: cores, memory, traffic, and disk for bundles and the ledger. No torch.

    cores      rate x CPU seconds of one inference, offline and online: `estimate` for one core and no link. Bundles are
               made at the rate at which they are used, so both phases count. HE is each party's own part, the ring
               convolutions are the server's, of all else (OT, garbling, GMW, TLS) each party has half. Bundles are
               hashed, written and deleted by whoever keeps them.
    memory     of the server: prepared weights, once; every process; ciphertexts of as many preparations as cores
    traffic    rate x bytes, both directions
    disk       rate x how far ahead bundles are made x their size, for each party; the ledger's rows beside

Cores are busy all the time at this rate: who wants short queues plans for two thirds of it. Against measured rates:
tests/protocol/test_capacity.py and docs/growth.md.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Any

from sphynx.core import rlwe
from sphynx.errors import InputError
from sphynx.program.backends import Backend
from sphynx.program.cost.answer import answer_cost
from sphynx.program.cost.cost import total_cost
from sphynx.program.cost.estimate import SMALL_DEGREE_BITS, estimate, faster_backend
from sphynx.program.cost.link import Link
from sphynx.program.cost.rates import Rates
from sphynx.program.ir import Program
from sphynx.protocol.linear_plan import plan_program

PROCESS_BYTES = 55 << 20  # the interpreter and its libraries, measured: docs/growth.md
LEDGER_BYTES = 500  # of a bundle's row and its places in the indices
GMW_BYTES_PER_OT = {"server": 1.57, "client": 1.18}  # of what a bundle keeps, with 26 bits truncated by 13
NARROWED_BYTES = {"server": 4 * 7, "client": 4 * 6}  # less for each ReLU in 32 bits or less: 7 and 6 ring elements
KEPT_BYTE_S = 1.5e-9  # of a bundle: hashed and written, deleted; measured with garbled ones of 84 MB
LABEL_BYTES = 16
HERE = Link(0.0, math.inf, "loopback")
PERIODS_S = {"s": 1.0, "min": 60.0, "h": 3600.0, "day": 86_400.0}


@dataclass(frozen=True)
class Capacity:
    backend: Backend
    rate_per_s: float
    ahead_s: float  # of inferences whose bundles are kept ready
    server_cores: float
    client_cores: float  # of all clients together
    processes: int  # of the server, one for each core
    server_memory_bytes: float
    bits_per_s: float
    server_bundle_bytes: float  # each
    client_bundle_bytes: float
    server_disk_bytes: float
    client_disk_bytes: float
    ledger_bytes_per_day: float

    @property
    def cores(self) -> float:
        """Cores of both parties together."""
        return self.server_cores + self.client_cores

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "cores": self.cores}


def capacity(program: Program, rates: Rates, rate_per_s: float, *, backend: Backend | None, ahead_s: float) -> Capacity:
    """Plan for the given backend, or the one that is faster here. `rates` are those of a core of either party."""
    backend = backend or faster_backend(program, rates, HERE)
    server_s, client_s = party_seconds(program, rates, backend)
    total = estimate(program, replace(rates, cores=1), HERE, backend).total
    server_bundle, client_bundle = bundle_bytes(program, backend)
    server_cores = rate_per_s * server_s
    processes = max(1, math.ceil(server_cores))
    kept = rate_per_s * ahead_s
    return Capacity(
        backend,
        rate_per_s,
        ahead_s,
        server_cores,
        rate_per_s * client_s,
        processes,
        server_memory_bytes(program, processes),
        8 * rate_per_s * (total.offline_bytes + total.online_bytes),
        server_bundle,
        client_bundle,
        kept * server_bundle,
        kept * client_bundle,
        86_400 * rate_per_s * LEDGER_BYTES,
    )


def party_seconds(program: Program, rates: Rates, backend: Backend) -> tuple[float, float]:
    """CPU seconds of one inference, offline and online: the server's and the client's."""
    he = rates.he_small if program.ring_bits <= SMALL_DEGREE_BITS else rates.he_large
    cost = total_cost(program)
    products = cost.he_products * he.product + cost.he_weights * he.weight
    server_he = products + cost.he_uploads * he.parse + cost.he_replies * he.reply
    client_he = cost.he_uploads * he.encrypt + cost.he_replies * he.decrypt
    ring_s = cost.ring_macs * -(-program.ring_bits // 8) / rates.limb_macs_per_s
    total = estimate(program, replace(rates, cores=1), HERE, backend).total
    rest_s = total.offline_seconds + total.online_seconds - server_he - client_he - ring_s
    server_kept_s, client_kept_s = (KEPT_BYTE_S * size for size in bundle_bytes(program, backend))
    return server_he + ring_s + rest_s / 2 + server_kept_s, client_he + rest_s / 2 + client_kept_s


def server_memory_bytes(program: Program, processes: int) -> float:
    plan = plan_program(program)
    prepared_bytes = sum(rlwe.prepared_bytes(plan.params, conv) for conv in plan.convs.values())
    ciphertext_bytes = 2 * 4 * plan.params.n * len(plan.params.primes)
    owner = 1 if processes > 1 else 0
    uploads_bytes = processes * total_cost(program).he_uploads * ciphertext_bytes
    return prepared_bytes + uploads_bytes + (processes + owner) * PROCESS_BYTES


def bundle_bytes(program: Program, backend: Backend) -> tuple[float, float]:
    """The server's half and the client's, of one image. A client keeps its masks and shares as 64-bit words."""
    cost = total_cost(program)
    masked = program.image.size + sum(program.shapes[step.name].size for step in program.activations)
    shares = sum(program.shapes[step.name].size for step in program.linears)
    server = shares * (4 if program.ring_bits <= 32 else 8)
    client = 8 * (shares + masked)
    if program.reveals_label:
        answer = answer_cost(program)
        client += answer.table_bytes + LABEL_BYTES * answer.ots
    other_ots = cost.truncation_ots + cost.gate_ots
    ots = other_ots + (cost.gmw_ots if backend == "gmw" else 0)
    if backend == "gc":
        return (
            server + (cost.relus + cost.comparisons) * program.ring_bits / 8 + ots * GMW_BYTES_PER_OT["server"],
            client + cost.gc_table_bytes + LABEL_BYTES * cost.gc_ots + ots * GMW_BYTES_PER_OT["client"],
        )
    narrowed = cost.relus + cost.comparisons if program.ring_bits <= 32 else 0
    return (
        server + ots * GMW_BYTES_PER_OT["server"] - narrowed * NARROWED_BYTES["server"],
        client + ots * GMW_BYTES_PER_OT["client"] - narrowed * NARROWED_BYTES["client"],
    )


def parse_rate(text: str) -> float:
    """Inferences a second: `100/s`, `50/min`, `1000/h`, `5`."""
    number, _, period = text.replace(" ", "").partition("/")
    try:
        rate = float(number) / PERIODS_S[period or "s"]
    except (ValueError, KeyError):
        rate = math.nan
    if not 0 < rate < math.inf:
        raise InputError(f"{text!r} is not a valid rate", where="`rate`", remedy="Write it as 100/s, 50/min or 1000/h.")
    return rate
