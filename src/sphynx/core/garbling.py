"""Half-gates garbling (eprint 2014/756) of many instances of one circuit.

The garbler keeps `delta` and the zero labels, sends tables and one label per input; the evaluator returns
colour bits, which the garbler xors with its own. Labels are blocks of shape (wires, instances, 2), uint64.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sphynx.core import Prg, _native
from sphynx.core.bits import plane_words

Words = NDArray[np.uint64]
Circuit = _native.Circuit


def relu_circuit(w: int, k: int, f: int) -> Circuit:
    """(max(x_s + x_c, 0) >> f) - r mod 2^k for inputs x_s, x_c (w bits) and r (k bits)."""
    return Circuit.relu(w, k, f)


def floor_circuit(w: int, k: int, f: int) -> Circuit:
    """((x_s + x_c) >> f) - r mod 2^k for the same inputs, the sum read as signed."""
    return Circuit.floor(w, k, f)


def label_circuit(classes: int, w: int, margin: int) -> Circuit:
    """The number of the largest of `classes` sums of shares, the lowest where several are, for inputs of w bits each:
    all of the garbler's, all of the evaluator's. With a margin also whether it leads by that much or more."""
    return Circuit.label(classes, w, margin)


def random_delta(prg: Prg) -> Words:
    """A garbling offset: random but for its lowest bit, which is 1."""
    delta = np.empty((1, 2), np.uint64)
    prg.fill_words(delta)
    delta[0, 0] |= np.uint64(1)
    return delta


def random_labels(prg: Prg, wires: int, instances: int) -> Words:
    labels = np.empty((wires, instances, 2), np.uint64)
    prg.fill_words(labels)
    return labels


@dataclass(frozen=True, repr=False)
class Garbled:
    """The result of garbling: `tables` go to the evaluator; `colours` (output planes) stay with the garbler, and so
    do `halves` of the outputs' zero labels, (wires, instances), where they were asked for."""

    tables: Words
    colours: Words
    halves: Words | None = None


def garble(
    circuit: Circuit,
    late_tweak: bytes,
    delta: Words,
    input_zeros: Words,
    *,
    first_instance: int = 0,
    with_halves: bool = False,
    threads: int = 0,
) -> Garbled:
    """`late_tweak` is public, drawn for each (bundle, layer) once the evaluator's labels are fixed
    (core/crypto/hash.h); `first_instance` continues a layer over batches."""
    instances = input_zeros.shape[1]
    tables = np.empty((2 * circuit.and_count * instances, 2), np.uint64)
    colours, halves = _outputs(circuit, instances, with_halves=with_halves)
    circuit.garble(late_tweak, delta, first_instance, instances, input_zeros, tables, colours, halves, threads)
    return Garbled(tables, colours, halves)


@dataclass(frozen=True, repr=False)
class Evaluated:
    """`colours` of the output labels: xor them with the garbler's to get the values. `halves` of these labels, (wires,
    instances), where they were asked for: who knows them has evaluated."""

    colours: Words
    halves: Words | None


def evaluate(
    circuit: Circuit,
    late_tweak: bytes,
    input_labels: Words,
    tables: Words,
    *,
    first_instance: int = 0,
    with_halves: bool = False,
    threads: int = 0,
) -> Evaluated:
    instances = input_labels.shape[1]
    colours, halves = _outputs(circuit, instances, with_halves=with_halves)
    circuit.evaluate(late_tweak, first_instance, instances, input_labels, tables, colours, halves, threads)
    return Evaluated(colours, halves)


def _outputs(circuit: Circuit, instances: int, *, with_halves: bool) -> tuple[Words, Words | None]:
    wires = sum(circuit.output_widths)
    halves = np.empty((wires, instances), np.uint64) if with_halves else None
    return np.empty((wires, plane_words(instances)), np.uint64), halves


def encode(delta: Words, zeros: Words, planes: Words, *, threads: int = 0) -> Words:
    """The labels for the bits in `planes` (wires, words): zero label xor bit * delta."""
    labels = np.empty_like(zeros)
    _native.encode_labels(delta, zeros, planes, zeros.shape[1], labels, threads)
    return labels


def evaluate_in_clear(circuit: Circuit, planes: Words) -> Words:
    outputs = np.empty((sum(circuit.output_widths), planes.shape[1]), np.uint64)
    circuit.evaluate_in_clear(planes, outputs)
    return outputs
