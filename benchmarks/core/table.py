"""The core's measurements as rows for people: each rate, its bound or peer, their ratio, and the goal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

GARBLE_GOAL = 0.65  # of the fixed-key AES bound
SPEEDUP_GOALS = {"product": 10, "plaintext_ntt": 2, "encrypt": 2, "decrypt": 2}  # times SEAL's speed
RING_GOALS = {(32, 8): 1.5, (64, 8): 2.5}  # by bits of ring and weights: at most, times torch's fp32 time

# name, key of the rate, key of its ratio to the AES bound, goal
SYMMETRIC = (
    ("garbled ANDs", "garble_ands_per_s", "garble_bound_ratio", f">= {GARBLE_GOAL}"),
    ("evaluated ANDs", "evaluate_ands_per_s", "evaluate_bound_ratio", f">= {GARBLE_GOAL}"),
    ("random OTs", "ot_per_s", "ot_bound_ratio", ""),
    ("Boolean triples", "triples_per_s", "triples_bound_ratio", ""),
)


def rate_rows(results: dict[str, Any]) -> Iterator[list[str]]:
    """Rows of a table: what, measured, bound or peer, ratio, goal."""
    yield from symmetric_rows("1 core", results)
    if results["all_cores"] is not None:
        yield from symmetric_rows(f"{results['machine']['cores']} cores", results["all_cores"])
    for times in results["rlwe_by_ring_bits"]:
        yield from rlwe_rows(times)


def symmetric_rows(cores: str, rates: dict[str, Any]) -> Iterator[list[str]]:
    yield [f"AES blocks, {cores}", _millions(rates["aes_blocks_per_s"]), "", "", ""]
    for name, rate_key, ratio_key, goal in SYMMETRIC:
        rate, ratio = rates[rate_key], rates[ratio_key]
        yield [f"{name}, {cores}", _millions(rate), f"AES {_millions(rate / ratio)}", f"{ratio:.2f}", goal]


def rlwe_rows(times: dict[str, Any]) -> Iterator[list[str]]:
    for name, goal in SPEEDUP_GOALS.items():
        seal, speedup = times[f"seal_{name}_s"], times[f"{name}_speedup"]
        yield [
            f"RLWE {name.replace('_', ' ')}, k = {times['rlwe_ring_bits']}, n = {times['rlwe_degree']}",
            _microseconds(times[f"rlwe_{name}_s"]),
            f"SEAL {_microseconds(seal)}" if seal else "no TenSEAL",
            f"{speedup:.1f} x" if speedup else "",
            f">= {goal} x",
        ]


def ring_rows(results: dict[str, Any]) -> Iterator[list[str]]:
    """shape, GMAC/s at 32 bits, torch's time, then our time relative to it for each of WIDTHS."""
    by_shape: dict[str, list[dict[str, Any]]] = {}
    for entry in results["ring_convolutions"]:
        by_shape.setdefault(entry["shape"], []).append(entry)
    for shape, entries in by_shape.items():
        torch_s = entries[0]["torch_conv_s"]
        yield [
            shape,
            f"{entries[0]['ring_macs_per_s'] / 1e9:.1f}",
            _microseconds(torch_s) if torch_s else "no torch",
            *(f"{e['ratio_to_torch']:.2f}" if torch_s else _microseconds(e["ring_conv_s"]) for e in entries),
        ]


def _millions(rate: float) -> str:
    return f"{rate / 1e6:.1f} M/s"


def _microseconds(seconds: float) -> str:
    return f"{seconds * 1e6:,.1f} µs" if seconds < 1e-4 else f"{seconds * 1e6:,.0f} µs"
