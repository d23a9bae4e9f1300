"""All measurements of the compiled core, in one dict: the JSON of `python -m benchmarks.core`.

The keys at the top are one core's. `all_cores` has the symmetric ones again with every core of this process's affinity
mask at work, or None if that was not asked for. RLWE at the top is for 32-bit rings; `rlwe_by_ring_bits` has all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.core.ring import SHAPES, ring_times
from benchmarks.core.rlwe import RING_BITS, rlwe_times
from benchmarks.core.seal import seal_peer
from benchmarks.core.symmetric import RELUS, F, K, W, ot_by_parameter, symmetric_rates
from sphynx.bench.machine import describe_machine, installed_version
from sphynx.threads import available_cores


def measure_core(
    repeats: int, *, all_cores: bool = True, progress: Callable[[str], None] = lambda _: None
) -> dict[str, Any]:
    """`progress` is told what is measured next."""
    results: dict[str, Any] = {
        "machine": describe_machine().to_json(),
        "repeats": repeats,
        "circuit": f"ReLU w={W} k={K} f={F}, {RELUS} instances",
        "seal": seal_peer(),
        "torch": installed_version("torch") or "torch is not installed (pip install torch): no fp32 times",
    }
    progress("garbling and OT, one core")
    results |= symmetric_rates(1, repeats)
    results["all_cores"] = None
    if all_cores:
        progress("garbling and OT, all cores")
        results["all_cores"] = symmetric_rates(available_cores(), repeats)
    progress("OT by parameter")
    results["ot_by_parameter"] = ot_by_parameter(repeats)
    by_ring_bits = []
    for ring_bits in RING_BITS:
        progress(f"RLWE, {ring_bits}-bit ring")
        by_ring_bits.append(rlwe_times(ring_bits, repeats))
    results |= by_ring_bits[0]
    results["rlwe_by_ring_bits"] = by_ring_bits
    results["ring_convolutions"] = []
    for shape in SHAPES:
        progress(f"ring convolution {shape.in_channels} -> {shape.out_channels}")
        results["ring_convolutions"] += ring_times(shape, repeats)
    results["machine"]["load_average_after"] = list(describe_machine().load_average)
    return results
