"""Every binding given wrong types, layouts, sizes, counts and bytes: an exception, never a crash or a hang.

One argument of a good call is replaced at a time. What must raise and does not, fails; what may succeed (`free` in the
table) must only come back. A crash ends the test run, so that it cannot be missed.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sphynx.core import _native
from tests.core.hostile_table import COUNT, KEY, Binding, Objects, bindings, delta

REFUSED = (TypeError, ValueError, IndexError, MemoryError)
NO_ARGUMENTS = {
    "cpu_features",
    "aes_path",
    "available_cores",
    "Prg",
    "Circuit.aes128",
    "Circuit.write_bristol",
    "GmwServer.first",
    "rlwe.path",
}
NOT_CONSTRUCTIBLE = {"Circuit", "GmwServer", "GmwClient", "rlwe.Params"}  # made by other objects or static methods

Bad = tuple[str, Any]


def callables(holder: Any, prefix: str = "") -> Iterator[str]:
    for name, value in vars(holder).items():
        if inspect.isclass(value):
            yield prefix + name
            yield from callables(value, f"{prefix}{name}.")
        elif inspect.ismodule(value):
            yield from callables(value, f"{prefix}{name}.")
        elif not name.startswith("_") and callable(getattr(holder, name)) and not isinstance(value, type):
            yield prefix + name


OFFERED = sorted(set(callables(_native)) - NO_ARGUMENTS - NOT_CONSTRUCTIBLE)


@pytest.fixture(scope="module")
def table() -> Iterator[dict[str, Binding]]:
    yield bindings()


def wrong_arrays(good: np.ndarray, written: bool) -> Iterator[Bad]:
    for dtype in (np.float64, np.int64, np.uint16, np.complex128, object, good.dtype.newbyteorder(">")):
        if good.dtype.itemsize > 1 or dtype != good.dtype:
            yield f"dtype {np.dtype(dtype)}", good.astype(dtype)
    yield "every second element", np.repeat(good, 2, axis=-1)[..., ::2]
    yield "reversed", good[..., ::-1]
    yield "one element for all", np.broadcast_to(good.ravel()[:1].reshape((1,) * good.ndim), good.shape)
    if good.ndim > 1 and min(good.shape) > 1:
        yield "columns first", np.asfortranarray(good)
    if good.itemsize > 1:
        raw = np.zeros(good.nbytes + 1, np.uint8)
        yield "unaligned", raw[1:].view(good.dtype).reshape(good.shape)
    if written:
        frozen = good.copy()
        frozen.setflags(write=False)
        yield "read-only", frozen
    yield from ((repr(type(value)), value) for value in (None, 7, "array", b"\0" * 64, good.tolist(), object()))


def wrong_sizes(good: np.ndarray) -> Iterator[Bad]:
    yield "one row less", good[:-1].copy()
    yield "one row more", np.concatenate([good, good[:1]])
    yield "empty", good[:0].copy()
    yield "twice the size", np.concatenate([good, good])
    yield "no axis", np.zeros((), good.dtype)


def wrong_integers(signed: bool) -> Iterator[Bad]:
    values = [2**64, -(2**63), 2**200, float("nan"), float("inf"), 1.5, np.float64("nan"), "3", None, [3], 3j]
    yield from ((repr(value), value) for value in (values if signed else [-1, *values]))


def extreme_integers() -> Iterator[Bad]:
    yield from ((str(value), value) for value in (0, 2**31 - 1, 2**31, 2**32 - 2, 2**32 - 1, 2**62, 2**63, 2**64 - 1))


def wrong_lists(good: list[Any]) -> Iterator[Bad]:
    yield from (("empty", []), ("twice", good + good), ("None inside", [None]), ("NaN inside", [float("nan")]))
    yield from (("huge", [2**64 - 1]), ("negative", [-1]), ("not a list", 5), ("text", "1"), ("None", None))


def must_raise(binding: Binding) -> Iterator[tuple[str, str, Any]]:
    for name, good in binding.good().items():
        cases: list[Bad] = []
        if isinstance(good, np.ndarray):
            cases = list(wrong_arrays(good, name in binding.writes))
            cases += [] if name in binding.free else wrong_sizes(good)
        elif isinstance(good, bool):
            cases = [(repr(value), value) for value in (None, 2, "yes", float("nan"))]
        elif isinstance(good, int):
            cases = list(wrong_integers(signed=name in ("pad_top", "pad_left", "n")))
            cases += [] if name in binding.free else extreme_integers()
        elif isinstance(good, float):
            cases = [(repr(value), value) for value in (-1.0, float("nan"), "1", None, float("-inf"))]
        elif isinstance(good, bytes):
            cases = [(str(type(value)), value) for value in (bytearray(good), good.hex(), None)]
            cases += [] if name in binding.free else wrong_lengths(good)
        elif isinstance(good, str):
            cases = [(repr(value)[:20], value) for value in ("", good[:-5], good + good, None, 5, "\0", "9 9", b"1 1")]
        elif isinstance(good, list):
            cases = list(wrong_lists(good))
        else:  # an object of the core
            kind: Any = type(good)
            uninitialised = kind.__new__(kind)
            cases = [("None", None), ("another type", object()), ("bytes", KEY), ("not made", uninitialised)]
        yield from ((name, what, bad) for what, bad in cases if bad is not None or name not in binding.optional)


def wrong_lengths(good: bytes) -> list[Bad]:
    return [(f"{len(value)} bytes", value) for value in (b"", good[:-1], good + b"\0", good + good)]


def may_succeed(binding: Binding) -> Iterator[tuple[str, Any]]:
    for name, good in binding.good().items():
        if name in binding.free:
            if isinstance(good, bytes):
                cases = wrong_lengths(good)
            else:
                cases = list(wrong_sizes(good) if isinstance(good, np.ndarray) else extreme_integers())
            yield from ((name, bad) for _, bad in cases)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # nanobind's, for objects that were not made
@pytest.mark.parametrize("name", OFFERED)
def test_bad_arguments(name: str, table: dict[str, Binding]) -> None:
    """A binding that the table lacks is a KeyError here."""
    binding = table[name]
    binding.call(**binding.good())
    accepted = []
    for argument, what, bad in must_raise(binding):
        with suppress(*REFUSED):
            binding.call(**{**binding.good(), argument: bad})
            accepted.append(f"{argument}: {what}")
    assert accepted == []
    for argument, bad in may_succeed(binding):
        with suppress(*REFUSED):
            binding.call(**{**binding.good(), argument: bad})
    for argument in binding.good():
        with pytest.raises(TypeError):
            binding.call(**{**binding.good(), argument + "_": 1})
    binding.call(**binding.good())  # and nothing was broken by all this


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_objects_that_were_not_made() -> None:
    for kind in (_native.Prg, _native.CarryTree, _native.OtSender, _native.rlwe.SecretKey, _native.ring.Conv):
        made = kind.__new__(kind)
        for name in ("fill", "opened_rows", "hash", "public_key", "path"):
            with pytest.raises((TypeError, AttributeError)):
                getattr(made, name)(1)
    abstract: tuple[Any, ...] = (_native.Circuit, _native.GmwServer, _native.GmwClient, _native.rlwe.Params)
    for made_by in abstract:
        with pytest.raises(TypeError):
            made_by()


# --- bytes and texts that come from a peer or a file ---


def mutated(data: st.DataObject, wire: bytes) -> bytes:
    """Some bytes changed, then perhaps cut, extended or shifted."""
    changed = bytearray(wire)
    for _ in range(data.draw(st.integers(0, 6))):
        changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.sampled_from([0, 0, 0, 1, 8, len(wire)]))
    return bytes(changed[: len(changed) - cut]) + data.draw(st.binary(max_size=2))


@pytest.fixture(scope="module")
def made() -> Iterator[Objects]:
    yield Objects()


@settings(max_examples=150)
@given(data=st.data())
def test_uploads_and_public_keys(made: Objects, data: st.DataObject) -> None:
    params, wire = made.params, mutated(data, made.upload_wire)
    for parse in (
        lambda: _native.rlwe.Ciphertexts(params, wire, 2),
        lambda: _native.rlwe.PublicKey(params, wire[: params.public_key_bytes]),
    ):
        with suppress(ValueError):
            parse()


@settings(max_examples=150)
@given(st.data())
def test_circuits(data: st.DataObject) -> None:
    text = list(_native.Circuit.adder(2).write_bristol())
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(text) - 1))
        text[at] = data.draw(st.sampled_from([*"0123456789 \n-", "", "4294967295", "EQ", "MAND", "INV", "\0", "é"]))
    try:
        circuit = _native.Circuit.read_bristol("".join(text))
    except ValueError:
        return
    inputs, outputs = sum(circuit.input_widths), sum(circuit.output_widths)
    if inputs:
        circuit.evaluate_in_clear(np.zeros((inputs, 1), np.uint64), np.zeros((outputs, 1), np.uint64))
    zeros, tables = np.zeros((inputs, 1, 2), np.uint64), np.zeros((2 * circuit.and_count, 2), np.uint64)
    circuit.garble(KEY, delta(), 0, 1, zeros, tables, np.zeros((outputs, 1), np.uint64), None, 1)


@settings(max_examples=100)
@given(st.integers(1, 8), st.integers(0, 400), st.booleans(), st.booleans(), st.binary(min_size=16, max_size=16))
def test_ot_messages_of_any_content(k: int, count: int, random_choices: bool, checked: bool, noise: bytes) -> None:
    """Without a check the right length is all that a message can be held to; any content must do no harm."""
    setup = np.resize(np.frombuffer(noise, np.uint64), (_native.ot_setup_blocks(k, checked), 2))
    sender = _native.OtSender(k, checked, delta(), np.zeros((128, 2), np.uint64), np.ascontiguousarray(setup))
    assert sender.has_refused() == checked
    blocks = _native.ot_message_blocks(k, count, random_choices, checked)
    message = np.ascontiguousarray(np.resize(np.frombuffer(noise, np.uint64), (blocks, 2)))
    q = np.empty((count, 2), np.uint64)
    assert sender.extend(count, random_choices, message, q, 1) != checked
    for wrong in (blocks - 1, blocks + 1, 2 * blocks + 3):
        if wrong >= 0:
            with pytest.raises(ValueError):
                sender.extend(
                    count, random_choices, np.zeros((wrong, 2), np.uint64), np.empty((count, 2), np.uint64), 1
                )


@settings(max_examples=100)
@given(st.integers(1, 64), st.integers(0, COUNT), st.binary(max_size=64))
def test_packed_bytes_of_any_length(width: int, count: int, wire: bytes) -> None:
    values = np.zeros(count, np.uint64)
    try:
        _native.unpack_ring(np.frombuffer(wire, np.uint8), width, values)
    except ValueError:
        assert len(wire) != (count * width + 7) // 8
        return
    assert len(wire) == (count * width + 7) // 8
    assert width == 64 or (values < 2**width).all()


@settings(max_examples=60)
@given(st.data())
def test_convolution_shapes(data: st.DataObject) -> None:
    """Any small shape, paddings that miss the image included, is refused or stays inside its buffers."""
    extent = st.integers(1, 9)
    names = (
        "in_channels",
        "height",
        "width",
        "out_channels",
        "kernel_height",
        "kernel_width",
        "out_height",
        "out_width",
    )
    shape = {name: data.draw(extent) for name in names} | {"stride": data.draw(extent), "dilation": data.draw(extent)}
    pads = st.sampled_from([-65536, -9, -1, 0, 1, 9, 65536])
    shape |= {"pad_top": data.draw(pads), "pad_left": data.draw(pads)}
    weights = np.ones(
        [shape[name] for name in ("out_channels", "in_channels", "kernel_height", "kernel_width")], np.int32
    )
    conv = _native.ring.Conv(**shape, ring_bits=data.draw(st.integers(1, 64)), weights=weights)
    guard = np.full(shape["out_channels"] * shape["out_height"] * shape["out_width"] + 16, 77, np.uint64)
    conv.apply(np.zeros([shape[name] for name in names[:3]], np.uint64), guard[8:-8], 1)
    assert (guard[8:-8] == 0).all()
    assert (guard[:8] == 77).all() and (guard[-8:] == 77).all()


def test_threads_on_one_party() -> None:
    """One of them is answered, as if it were alone; a party without a lock wrote past its answers."""
    count, threads = 20_000, 8
    digits, gadget = _native.Digits(32, 8, 31, 3), _native.GmwGadget(True, 32, 32, 8, count)
    plane, shared = -(-count // 64), np.random.default_rng(1).integers(0, 2**64, (6, count), np.uint64)
    rows = {
        "leaf_products": 2 * len(digits.widths) + 1,
        "pair_masks": 5 * digits.tree.pair_count,
        "three_masks": 13 * digits.tree.three_count,
        "bits": 3,
    }
    planes = {name: np.ones((height, plane), np.uint64) for name, height in rows.items()}

    def client() -> _native.GmwClient:
        return gadget.client(x=shared[0], arithmetic=shared, new_mask=shared[1], **planes)

    received = np.resize(np.frombuffer(KEY, np.uint8), client().received_bytes)
    expected = client().answer(received)
    for _ in range(20):
        party, start = client(), threading.Barrier(threads)
        answers: list[bytes] = []

        def ask(
            party: _native.GmwClient = party, start: threading.Barrier = start, answers: list[bytes] = answers
        ) -> None:
            start.wait()
            with suppress(ValueError):
                answers.append(party.answer(received))

        asking = [threading.Thread(target=ask) for _ in range(threads)]
        for thread in asking:
            thread.start()
        for thread in asking:
            thread.join()
        assert [answer == expected for answer in answers] == [True]


def test_counts_that_would_loop_or_wrap(made: Objects) -> None:
    """Found by hand: widths near 2^32 wrapped, and a huge tile count over no ciphertexts never ended."""
    for f in (2**32 - 1, 2**32 - 2):
        with pytest.raises(ValueError):
            _native.Circuit.relu(8, 8, f)
        with pytest.raises(ValueError):
            _native.CarryTree(8, f, 3)
    none = _native.rlwe.Ciphertexts(made.params, b"", 0)
    for inputs in ([], [none]):
        with pytest.raises(ValueError):
            _native.rlwe.reply(
                made.public, made.weights, inputs, 2**62, np.zeros(0, np.uint32), [0], made.prg, np.zeros(0, np.uint64)
            )
