"""Every RLWE entry given wrong sizes, types, layouts and bytes: an exception, never a crash."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sphynx.core import Prg, _native

native = _native.rlwe
PARAMS = native.Params.for_ring(32)
N = PARAMS.n
PRG = Prg()
SECRET = native.SecretKey(PARAMS, PRG)
PUBLIC_WIRE = SECRET.public_key(PRG)
PUBLIC = native.PublicKey(PARAMS, PUBLIC_WIRE)
UPLOAD_WIRE = SECRET.encrypt(np.ones((2, N), np.uint64), PRG)
UPLOAD = native.Ciphertexts(PARAMS, UPLOAD_WIRE, 2)
WEIGHTS = native.Weights(PARAMS, 1, 2, PARAMS.n)
WEIGHTS.set_reply(0, np.ones((2, N), np.int32))
USED = np.arange(10, dtype=np.uint32)
REPLY_WIRE = native.reply(PUBLIC, WEIGHTS, [UPLOAD], 1, USED, [10], PRG, np.zeros(10, np.uint64))


@pytest.mark.parametrize(
    "messages",
    [
        np.ones((2, N), np.int64),
        np.ones((2, N), np.uint32),
        np.ones((2, N + 1), np.uint64),
        np.ones(N, np.uint64),
        np.ones((2, 2 * N), np.uint64)[:, ::2],
        np.ones((N, 2), np.uint64).T,
        [[1] * N],
        None,
    ],
)
def test_encrypt(messages: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        SECRET.encrypt(messages, PRG)  # type: ignore[arg-type]


@pytest.mark.parametrize("length", [0, 1, 16, len(UPLOAD_WIRE) - 1, len(UPLOAD_WIRE) + 1, 2 * len(UPLOAD_WIRE)])
def test_upload_length(length: int) -> None:
    with pytest.raises(ValueError):
        native.Ciphertexts(PARAMS, (2 * UPLOAD_WIRE)[:length], 2)
    with pytest.raises(ValueError):
        native.PublicKey(PARAMS, (2 * UPLOAD_WIRE)[:length])


@pytest.mark.parametrize("count", [0, 1, 3, 2**63, 2**64 - 1])
def test_upload_count(count: int) -> None:
    with pytest.raises(ValueError):
        native.Ciphertexts(PARAMS, UPLOAD_WIRE, count)


def test_residues_out_of_range() -> None:
    for wire in (UPLOAD_WIRE, PUBLIC_WIRE):
        broken = wire[:16] + b"\xff" * 7 + wire[23:]
        with pytest.raises(ValueError, match="below its prime"):
            native.Ciphertexts(PARAMS, broken, len(wire) // PARAMS.upload_bytes)


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_reply_bytes_flipped_or_cut(data: st.DataObject) -> None:
    wire = bytearray(REPLY_WIRE)
    for _ in range(data.draw(st.integers(0, 4))):
        wire[data.draw(st.integers(0, len(wire) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.sampled_from([0, 0, 1, 100, len(wire)]))
    out = np.zeros(10, np.uint64)
    try:
        SECRET.decrypt(bytes(wire[: len(wire) - cut]), USED, [10], 1, out)
    except ValueError:
        return
    assert cut == 0
    assert (out < 2**32).all()


@pytest.mark.parametrize(
    ("used", "counts", "tiles", "out"),
    [
        (USED, [11], 1, np.zeros(11, np.uint64)),
        (USED, [10, 10], 1, np.zeros(20, np.uint64)),
        (USED, [10], 0, np.zeros(0, np.uint64)),
        (USED, [10], 2, np.zeros(20, np.uint64)),
        (USED, [10], 2**63, np.zeros(10, np.uint64)),
        (USED, [-1], 1, np.zeros(10, np.uint64)),
        (USED, [2**64 - 1], 1, np.zeros(10, np.uint64)),
        (USED + N, [10], 1, np.zeros(10, np.uint64)),
        (USED.astype(np.int64), [10], 1, np.zeros(10, np.uint64)),
        (np.arange(20, dtype=np.uint32)[::2], [10], 1, np.zeros(10, np.uint64)),
        (USED, [10], 1, np.zeros(9, np.uint64)),
        (USED, [10], 1, np.zeros(10, np.int64)),
        (USED, [10], 1, np.zeros(20, np.uint64)[::2]),
        (USED, [float("nan")], 1, np.zeros(10, np.uint64)),
        (USED, [], 1, np.zeros(0, np.uint64)),
    ],
)
def test_decrypt_and_reply_arguments(used: np.ndarray, counts: list[int], tiles: int, out: np.ndarray) -> None:
    with pytest.raises((TypeError, ValueError)):
        SECRET.decrypt(REPLY_WIRE, used, counts, tiles, out)
    with pytest.raises((TypeError, ValueError)):
        native.reply(PUBLIC, WEIGHTS, [UPLOAD], tiles, used, counts, PRG, out)


def test_out_must_be_writable() -> None:
    out = np.zeros(10, np.uint64)
    out.setflags(write=False)
    with pytest.raises((TypeError, ValueError)):
        SECRET.decrypt(REPLY_WIRE, USED, [10], 1, out)


def test_reply_operands() -> None:
    share = np.zeros(10, np.uint64)
    other = native.Params.for_ring(32)
    foreign = native.Ciphertexts(other, UPLOAD_WIRE, 2)
    wrong: tuple[Any, ...] = ([], [UPLOAD, UPLOAD], [foreign], [None])
    for inputs in wrong:
        with pytest.raises((TypeError, ValueError)):
            native.reply(PUBLIC, WEIGHTS, inputs, 1, USED, [10], PRG, share)


def test_weights() -> None:
    for replies, inputs in ((0, 1), (1, 0), (2**40, 2**40), (2**21, 1)):
        with pytest.raises((ValueError, MemoryError)):
            native.Weights(PARAMS, replies, inputs, PARAMS.n)
    wrong: tuple[Any, ...] = (
        np.ones((1, N), np.int32),
        np.ones((2, N), np.int64),
        np.full((2, N), 1 << 20, np.int32),
        np.ones((4, N), np.int32)[::2],
    )
    for bad in wrong:
        with pytest.raises((TypeError, ValueError)):
            WEIGHTS.set_reply(0, bad)
    with pytest.raises(IndexError):
        WEIGHTS.set_reply(1, np.ones((2, N), np.int32))


def test_noise_and_transform_arguments() -> None:
    for l1, l2 in ((-1.0, 0.0), (0.0, -1.0), (float("nan"), 1.0)):
        with pytest.raises(ValueError):
            PARAMS.noise(l1, l2)
    for prime, values in (
        (4, np.zeros(N, np.int32)),
        (-1, np.zeros(N, np.int32)),
        (0, np.zeros(N - 1, np.int32)),
        (0, np.full(N, 2**31 - 1, np.int32)),
    ):
        with pytest.raises(ValueError):
            PARAMS.transform(prime, True, values)
