"""A program of 32 ReLUs with random weights, and small bundles that look like its halves."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from sphynx.program.convolve import Array
from sphynx.program.folder import save_program, save_weights
from sphynx.program.ir import INPUT, Linear, Output, Program, Relu, Term
from sphynx.protocol.bundle import ID_BYTES, Bundle
from sphynx.service.ledger import Entry
from sphynx.service.store import Store
from sphynx.space.tally import Shape
from tests.program.programs import random_weights

OWNER = "ab" * 32
CAT_DOG_BIRD = (Output("logits", "logits", class_names=("cat", "dog", "bird")),)


def tiny_program(name: str = "tiny") -> Program:
    steps = (
        Linear("first", (Term(INPUT, 3, 3, 1, 1, 1, 1),), Shape(2, 4, 4), 4, 20),
        Relu("relu", "first", 3),
        Linear("logits", (Term("relu", 4, 4),), Shape(3, 1, 1), 16, 28),
    )
    return Program(Shape(1, 4, 4), steps, 30, 8, name=name, outputs=CAT_DOG_BIRD)


def wide_program() -> Program:
    """16,384 ReLUs: their garbled tables are more than the sockets of both ends take."""
    steps = (
        Linear("first", (Term(INPUT, 3, 3, 1, 1, 1, 1),), Shape(4, 64, 64), 4, 20),
        Relu("relu", "first", 3),
        Linear("logits", (Term("relu", 4, 4),), Shape(3, 1, 1), 16, 28),
    )
    return Program(Shape(1, 64, 64), steps, 30, 8, name="wide", outputs=CAT_DOG_BIRD)


def save_tiny(folder: Path, seed: int = 0, name: str = "tiny") -> tuple[Program, dict[str, Array]]:
    program = tiny_program(name)
    weights = random_weights(program, seed)
    save_program(folder, program)
    save_weights(folder, program, weights)
    return program, weights


def some_entry(bundle_id: bytes | None = None, *, owner: str = OWNER, expires_at: float = 2e9) -> Entry:
    program = tiny_program().content_hash
    return Entry(bundle_id or os.urandom(ID_BYTES), owner, program, "gc", 1, expires_at)


def some_bundle(entry: Entry, size: int = 100) -> Bundle:
    arrays = {"share/first": np.arange(size, dtype=np.uint64)}
    return Bundle(entry.bundle_id, entry.program, "server", "gc", 1, arrays)


def put(store: Store, entry: Entry, size: int = 100) -> None:
    store.reserve(entry)
    store.put(some_bundle(entry, size), owner=entry.owner, offline_seconds=1.5, offline_bytes=7)
