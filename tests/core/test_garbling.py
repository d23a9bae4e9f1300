"""Garbled ReLU against integers over the whole ring, garbled AES-128 against FIPS 197, Bristol Fashion."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sphynx.core import Prg, garbling, ot
from sphynx.core.bits import bit_values, plane_words, slice_bits, unslice_bits
from sphynx.program.cost.answer import count_ands
from tests.core.aes_vectors import FIPS_197_128

KEY = bytes(range(16))


def run_garbled(circuit: garbling.Circuit, planes: np.ndarray, instances: int, threads: int = 1) -> np.ndarray:
    prg = Prg()
    delta = garbling.random_delta(prg)
    zeros = garbling.random_labels(prg, planes.shape[0], instances)
    garbled = garbling.garble(circuit, KEY, delta, zeros, threads=threads)
    labels = garbling.encode(delta, zeros, planes, threads=threads)
    return garbling.evaluate(circuit, KEY, labels, garbled.tables, threads=threads).colours ^ garbled.colours


def corner_values(width: int) -> st.SearchStrategy[int]:
    half = 1 << (width - 1)
    corners = [0, 1, 2, 2 * half - 1, 2 * half - 2, half, half - 1, half + 1]
    return st.sampled_from(corners) | st.integers(0, 2 * half - 1)


@st.composite
def relu_cases(draw: st.DrawFn) -> tuple[int, int, int, list[tuple[int, int, int]]]:
    k = draw(st.integers(2, 64))
    w = draw(st.integers(2, k))
    f = draw(st.integers(0, w - 2))
    rows = st.tuples(corner_values(w), corner_values(w), corner_values(k))
    return w, k, f, draw(st.lists(rows, min_size=1, max_size=130))


@settings(max_examples=60, deadline=None)
@given(relu_cases())
def test_relu_over_the_whole_ring(case: tuple[int, int, int, list[tuple[int, int, int]]]) -> None:
    w, k, f, rows = case
    x = [value for value, _, _ in rows]
    share = np.array([value for _, value, _ in rows], np.uint64)
    mask = np.array([value for _, _, value in rows], np.uint64)
    x_server = np.array([(a - int(b)) % 2**w for a, b in zip(x, share, strict=True)], np.uint64)
    circuit = garbling.relu_circuit(w, k, f)
    assert circuit.and_count == (w - 1) + (w - 1 - f) + (k - 1)
    planes = np.concatenate([slice_bits(x_server, w), slice_bits(share, w), slice_bits(mask, k)])
    y = unslice_bits(run_garbled(circuit, planes, len(rows)), len(rows))
    expected = [a >> f if a < 2 ** (w - 1) else 0 for a in x]
    assert [(int(a) + int(b)) % 2**k for a, b in zip(y, mask, strict=True)] == expected


@pytest.mark.parametrize(("w", "k", "f"), [(2, 2, 1), (8, 8, 0), (17, 33, 5), (20, 41, 19), (64, 64, 16)])
def test_signed_truncation(w: int, k: int, f: int) -> None:
    circuit, random = garbling.floor_circuit(w, k, f), np.random.default_rng(w)
    assert circuit.and_count == (w - 1) + (k - 1)
    x = [-(2 ** (w - 1)), -1, 0, 2 ** (w - 1) - 1] * 20
    share, mask = (random.integers(0, 2**64, len(x), np.uint64) for _ in range(2))
    x_server = np.array([(a - int(b)) % 2**64 for a, b in zip(x, share, strict=True)], np.uint64)
    planes = np.concatenate([slice_bits(x_server, w), slice_bits(share, w), slice_bits(mask, k)])
    y = unslice_bits(run_garbled(circuit, planes, len(x)), len(x))
    assert [(int(a) + int(b)) % 2**k for a, b in zip(y, mask, strict=True)] == [(a >> f) % 2**k for a in x]


@st.composite
def score_cases(draw: st.DrawFn) -> tuple[int, int, list[list[int]]]:
    """Classes, bits and rows of scores; small ones are often equal."""
    classes, w = draw(st.integers(2, 9)), draw(st.integers(2, 63))
    half = 1 << (w - 1)
    score = st.integers(-half, half - 1) | st.integers(max(-half, -2), min(half - 1, 1))
    rows = st.lists(score, min_size=classes, max_size=classes)
    return classes, w, draw(st.lists(rows, min_size=1, max_size=70))


@settings(max_examples=60, deadline=None)
@given(score_cases(), st.integers(0, 2**63 - 1))
def test_labels_of_scores(case: tuple[int, int, list[list[int]]], drawn: int) -> None:
    classes, w, rows = case
    margin = drawn % 4 if drawn % 3 else drawn % (1 << w)
    circuit = garbling.label_circuit(classes, w, margin := min(margin, (1 << w) - 1))
    assert circuit.and_count == count_ands(classes, w, margin)
    scores = np.array(rows, np.int64)
    client = np.random.default_rng(classes).integers(0, 2**64, scores.shape, np.uint64)
    server = scores.astype(np.uint64) - client
    columns = [share[:, number].copy() for share in (server, client) for number in range(classes)]
    planes = np.concatenate([slice_bits(column, w) for column in columns])
    label_bits = (classes - 1).bit_length()
    found = bit_values(run_garbled(circuit, planes, len(rows)))[:, : len(rows)]
    labels = (found[:label_bits] << np.arange(label_bits, dtype=np.uint64)[:, None]).sum(axis=0)
    assert labels.tolist() == [row.index(max(row)) for row in rows]
    if margin:
        leads = [sorted(row)[-1] - sorted(row)[-2] >= margin for row in rows]
        assert found[label_bits].tolist() == leads


def test_halves_of_output_labels_go_with_their_colours() -> None:
    circuit, prg, count = garbling.relu_circuit(16, 20, 4), Prg(), 100
    delta, zeros = garbling.random_delta(prg), garbling.random_labels(prg, 52, count)
    planes = np.random.default_rng(1).integers(0, 2**64, (52, plane_words(count)), np.uint64)
    garbled = garbling.garble(circuit, KEY, delta, zeros, with_halves=True)
    labels = garbling.encode(delta, zeros, planes)
    evaluated = garbling.evaluate(circuit, KEY, labels, garbled.tables, with_halves=True)
    assert evaluated.halves is not None and garbled.halves is not None
    values = bit_values(evaluated.colours ^ garbled.colours)[:, :count].astype(bool)
    assert 0 < values.mean() < 1
    assert np.array_equal(evaluated.halves, garbled.halves ^ np.where(values, delta[0, 1], np.uint64(0)))


@pytest.mark.usefixtures("path")
def test_garbled_aes_gives_the_fips_197_ciphertexts() -> None:
    circuit = garbling.Circuit.read_bristol(garbling.Circuit.aes128().write_bristol())
    assert circuit.input_widths == [128, 128]
    for key, plain, cipher in FIPS_197_128:
        inputs = np.frombuffer(bytes.fromhex(key + plain), np.uint8)
        planes = np.unpackbits(inputs, bitorder="little").astype(np.uint64).reshape(-1, 1)
        bits = (run_garbled(circuit, planes, 1) & np.uint64(1)).astype(np.uint8).reshape(-1)
        assert np.packbits(bits, bitorder="little").tobytes().hex() == cipher


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(corner_values(64), corner_values(64)), min_size=1, max_size=70))
def test_garbled_64_bit_adder(rows: list[tuple[int, int]]) -> None:
    circuit = garbling.Circuit.read_bristol(garbling.Circuit.adder(64).write_bristol())
    assert circuit.and_count == 63
    a, b = (np.array(column, np.uint64) for column in zip(*rows, strict=True))
    planes = np.concatenate([slice_bits(a, 64), slice_bits(b, 64)])
    assert (unslice_bits(run_garbled(circuit, planes, len(rows), threads=2), len(rows)) == a + b).all()


def test_batches_continue_a_layer() -> None:
    circuit, prg = garbling.relu_circuit(16, 16, 4), Prg()
    delta = garbling.random_delta(prg)
    zeros = garbling.random_labels(prg, 48, 192)
    whole = garbling.garble(circuit, KEY, delta, zeros)
    second = garbling.garble(circuit, KEY, delta, np.ascontiguousarray(zeros[:, 64:]), first_instance=64)
    assert (whole.tables[2 * circuit.and_count * 64 :] == second.tables).all()
    other_key = garbling.garble(circuit, bytes(16), delta, zeros)
    assert not (whole.tables == other_key.tables).any(axis=1).any()


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="0123456789 \nANDXORINVEQW-", max_size=80))
def test_hostile_bristol_text_raises_or_reads(text: str) -> None:
    try:
        circuit = garbling.Circuit.read_bristol(text)
    except ValueError:
        return
    assert circuit.gate_count >= 0


def test_the_older_bristol_format_is_named() -> None:
    with pytest.raises(ValueError, match=r"line 4: .*older Bristol format.*'2 a b'"):
        garbling.Circuit.read_bristol("1 3\n1 1   1\n\n2 1 0 1 2 AND\n")
    adder = "2 4\n1 1   2\n\n2 1 0 1 2 XOR\n2 1 0 1 3 AND\n"
    circuit = garbling.Circuit.read_bristol(adder.replace("1 1   2\n", "2 1 1\n1 2\n"))
    assert circuit.input_widths == [1, 1]
    assert circuit.output_widths == [2]


def test_wrong_buffers_raise() -> None:
    circuit, prg = garbling.relu_circuit(8, 8, 2), Prg()
    delta = garbling.random_delta(prg)
    zeros = garbling.random_labels(prg, 24, 10)
    garbled = garbling.garble(circuit, KEY, delta, zeros)
    with pytest.raises(ValueError, match="lowest bit"):
        garbling.garble(circuit, KEY, delta & ~np.uint64(1), zeros)
    with pytest.raises(ValueError, match="input_zeros"):
        garbling.garble(circuit, KEY, delta, zeros[:23])
    with pytest.raises(TypeError):
        garbling.garble(circuit, KEY, delta, zeros[:, ::2])
    with pytest.raises(ValueError, match="tables"):
        garbling.evaluate(circuit, KEY, zeros, garbled.tables[:-1])
    with pytest.raises(ValueError, match="16 bytes"):
        garbling.evaluate(circuit, KEY[:5], zeros, garbled.tables)
    with pytest.raises(ValueError, match="too many"):
        circuit.evaluate(KEY, 0, 2**63, zeros, garbled.tables, garbled.colours, garbled.halves, 1)
    with pytest.raises(ValueError, match="too many"):
        circuit.evaluate(KEY, 2**63, 10, zeros, garbled.tables, garbled.colours, garbled.halves, 1)
    with pytest.raises(TypeError):
        circuit.evaluate(KEY, 0, -1, zeros, garbled.tables, garbled.colours, garbled.halves, 1)
    with pytest.raises(TypeError):
        circuit.evaluate(KEY, 0, float("nan"), zeros, garbled.tables, garbled.colours, garbled.halves, 1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="relu_circuit"):
        garbling.relu_circuit(33, 32, 8)
    with pytest.raises(ValueError, match="width"):
        slice_bits(np.zeros(4, np.uint64), 65)


def test_client_labels_come_from_correlated_ot() -> None:
    """The OT sender's delta is the garbling offset, its q the zero labels: no label bytes beyond the OT."""
    w, k, f, count = 20, 24, 6, 100
    prg = Prg()
    delta = garbling.random_delta(prg)
    pairs = np.empty((ot.BASE_OTS, 2, 2), np.uint64)
    prg.fill_words(pairs)
    receiver = ot.OtReceiver(4, pairs, prg, checked=True)
    bits = np.unpackbits(delta[0].view(np.uint8), bitorder="little")
    keys = np.ascontiguousarray(pairs[np.arange(ot.BASE_OTS), bits])
    sender = ot.OtSender(4, delta, keys, receiver.setup, prg, checked=True)

    x = np.arange(-50, 50, dtype=np.int64)
    share = np.empty(count, np.uint64)
    prg.fill_words(share)
    x_server = (x.view(np.uint64) - share) & np.uint64(2**w - 1)
    mask = share * np.uint64(12345) & np.uint64(2**k - 1)

    # Rows of whole words, so that a plane is a run of choice bits.
    row = 64 * plane_words(count)
    client_planes = np.concatenate([slice_bits(share, w), slice_bits(mask, k)])
    message, t = receiver.correlated(client_planes.reshape(-1), (w + k) * row)
    q = sender.correlated(message, (w + k) * row, random_choices=False).zeros

    def labels(blocks: np.ndarray) -> np.ndarray:
        return blocks.reshape(w + k, row, 2)[:, :count]

    circuit = garbling.relu_circuit(w, k, f)
    server_zeros = garbling.random_labels(prg, w, count)
    garbled = garbling.garble(circuit, KEY, delta, np.concatenate([server_zeros, labels(q)]))
    server_labels = garbling.encode(delta, server_zeros, slice_bits(x_server, w))
    colours = garbling.evaluate(circuit, KEY, np.concatenate([server_labels, labels(t)]), garbled.tables).colours
    y = unslice_bits(colours ^ garbled.colours, count)
    assert ((y + mask) & np.uint64(2**k - 1) == np.maximum(x, 0).astype(np.uint64) >> np.uint64(f)).all()


def test_colours_say_nothing_about_the_value() -> None:
    """The same input many times: each output's colour at the evaluator is one about half the time."""
    count = 64 * 500
    circuit, prg = garbling.relu_circuit(8, 8, 2), Prg()
    planes = np.zeros((24, count // 64), np.uint64)
    planes[5] = ~np.uint64(0)
    delta = garbling.random_delta(prg)
    zeros = garbling.random_labels(prg, 24, count)
    garbled = garbling.garble(circuit, KEY, delta, zeros)
    colours = garbling.evaluate(circuit, KEY, garbling.encode(delta, zeros, planes), garbled.tables).colours
    ones = np.unpackbits(colours.view(np.uint8), axis=1).sum(axis=1)
    assert (abs(ones - count / 2) < 6 * np.sqrt(count) / 2).all()
    assert (unslice_bits(colours ^ garbled.colours, count) == 32 >> 2).all()


def test_an_offset_has_127_free_bits() -> None:
    """The lowest bit is 1, every other takes both values: docs/symmetric-core.md counts with that."""
    prg = Prg()
    words = np.concatenate([garbling.random_delta(prg) for _ in range(200)])
    bits = np.unpackbits(words.view(np.uint8), axis=1, bitorder="little")
    assert bits[:, 0].all()
    assert not bits[:, 1:].all(axis=0).any() and bits[:, 1:].any(axis=0).all()
