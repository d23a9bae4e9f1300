"""Every binding of the compiled core with good arguments, from which test_hostile.py makes bad ones.

`free` names arguments whose size or value may change without being wrong (an output of any length, a thread count):
those calls may succeed. Those in `writes` must be writable.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sphynx.core import Prg, _native

rlwe = _native.rlwe
KEY = bytes(range(16))
COUNT, WIDTH = 130, 11  # OTs or values, and their bits: neither fills whole words
RING = 23  # of GMW: a carry tree with nodes of two and of three
SILENT = (80, 40, 5)  # secret, trees, depth
SILENT_BLOCKS = 200
PLANE = 3  # words of a plane of COUNT bits

USED = np.arange(10, dtype=np.uint32)
BRISTOL = _native.Circuit.adder(3).write_bristol()
MESSAGE_BLOCKS = _native.ot_message_blocks(4, COUNT, False, True)
CONV_SHAPE: dict[str, Any] = {
    "in_channels": 2, "height": 4, "width": 4, "out_channels": 3, "kernel_height": 3, "kernel_width": 3,
    "out_height": 4, "out_width": 4, "stride": 1, "dilation": 1, "pad_top": 1, "pad_left": 1, "ring_bits": 32,
}  # fmt: skip


def words(*shape: int) -> Any:
    return np.zeros(shape, np.uint64)


def packed(count: int, width: int) -> Any:
    return np.zeros((count * width + 7) // 8, np.uint8)


def delta() -> Any:
    return np.ones((1, 2), np.uint64)


class Objects:
    """Objects to call methods on, made for a test and dropped after it: the core reports those that outlive it."""

    def __init__(self) -> None:
        self.prg = Prg()
        self.circuit = _native.Circuit.relu(8, 8, 2)
        self.digits = _native.Digits(RING, 8, RING - 1, 3)
        self.gadget = _native.GmwGadget(True, RING, RING, 8, COUNT)
        self.params = rlwe.Params.for_ring(32)
        self.secret = rlwe.SecretKey(self.params, self.prg)
        self.public_wire = self.secret.public_key(self.prg)
        self.public = rlwe.PublicKey(self.params, self.public_wire)
        self.upload_wire = self.secret.encrypt(np.ones((2, self.params.n), np.uint64), self.prg)
        self.upload = rlwe.Ciphertexts(self.params, self.upload_wire, 2)
        self.weights = rlwe.Weights(self.params, 1, 2, self.params.n)
        self.reply_wire = rlwe.reply(self.public, self.weights, [self.upload], 1, USED, [10], self.prg, words(10))
        setup = words(_native.ot_setup_blocks(4, True), 2)
        self.receiver = _native.OtReceiver(4, True, words(128, 2, 2), self.prg, setup)
        self.sender = _native.OtSender(4, True, delta(), words(128, 2), setup)
        seeds = words(_native.silent_seeds(*SILENT), 2)
        self.silent_receiver = _native.SilentReceiver(*SILENT, False, KEY, seeds)
        self.silent_sender = _native.SilentSender(*SILENT, KEY, delta(), seeds)
        for _ in range(8):  # as often as tests of one object extend it
            self.silent_sender.refill(self.prg, words(SILENT_BLOCKS, 2), 1)
            self.silent_receiver.refill(words(SILENT_BLOCKS, 2), 1)
        self.conv = _native.ring.Conv(**CONV_SHAPE, weights=np.ones((3, 2, 3, 3), np.int32))


@dataclass(frozen=True)
class Binding:
    name: str
    call: Callable[..., object]
    good: Callable[[], dict[str, Any]]
    writes: frozenset[str] = field(default_factory=frozenset)
    free: frozenset[str] = field(default_factory=frozenset)
    optional: frozenset[str] = field(default_factory=frozenset)  # may be None


def binding(
    name: str, call: Callable[..., object], /, *, writes: str = "", free: str = "", optional: str = "", **good: Any
) -> Binding:
    """Arrays are copied for each call, so that no call sees what another wrote."""

    def fresh() -> dict[str, Any]:
        return {key: value.copy() if isinstance(value, np.ndarray) else value for key, value in good.items()}

    return Binding(name, call, fresh, *(frozenset(names.split()) for names in (writes, free, optional)))


def crypto_and_bits(made: Objects) -> list[Binding]:
    n = _native
    return [
        binding("force_portable_for_tests", n.force_portable_for_tests, on=False),
        binding("aes_encrypt", n.aes_encrypt, writes="out", key=KEY, blocks=words(5, 2), out=words(5, 2)),
        binding(
            "aes_counter_stream", n.aes_counter_stream, writes="out", free="out",
            key=KEY, counter=KEY, out=words(5, 2),
        ),
        binding(
            "expand_seed", n.expand_seed, writes="out", free="out stream first_block threads",
            seed=KEY, stream=1, first_block=2, out=words(5, 2), threads=1,
        ),
        binding("Prg.fixed_seed_for_tests", n.Prg.fixed_seed_for_tests, seed=KEY),
        binding("Prg.fill", made.prg.fill, writes="out", free="out", out=np.zeros(33, np.uint8)),
        binding("Prg.fill_words", made.prg.fill_words, writes="out", free="out", out=words(33)),
        binding(
            "slice_bits", n.slice_bits, writes="planes",
            values=words(COUNT), width=WIDTH, planes=words(WIDTH, PLANE), free="values",
        ),
        binding(
            "unslice_bits", n.unslice_bits, writes="values",
            planes=words(WIDTH, PLANE), width=WIDTH, values=words(COUNT), free="values",
        ),
        binding(
            "pack_ring", n.pack_ring, writes="bytes",
            values=words(COUNT), width=WIDTH, bytes=packed(COUNT, WIDTH),
        ),
        binding(
            "unpack_ring", n.unpack_ring, writes="values",
            bytes=packed(COUNT, WIDTH), width=WIDTH, values=words(COUNT),
        ),
    ]  # fmt: skip


def garbling(made: Objects) -> list[Binding]:
    n, zeros, tables, colours = (
        _native,
        words(24, COUNT, 2),
        words(2 * made.circuit.and_count * COUNT, 2),
        words(8, PLANE),
    )
    batch: dict[str, Any] = {
        "late_tweak": KEY,
        "first_instance": 0,
        "instances": COUNT,
        "tables": tables,
        "colours": colours,
    }
    batch["halves"] = words(8, COUNT)
    return [
        binding("Circuit.read_bristol", n.Circuit.read_bristol, text=BRISTOL),
        binding("Circuit.relu", n.Circuit.relu, w=8, k=8, f=2, free="f"),
        binding("Circuit.floor", n.Circuit.floor, w=8, k=8, f=2, free="f"),
        binding("Circuit.adder", n.Circuit.adder, width=8),
        binding("Circuit.label", n.Circuit.label, classes=3, w=8, margin=2, free="margin"),
        binding(
            "Circuit.evaluate_in_clear", made.circuit.evaluate_in_clear, writes="outputs",
            inputs=words(24, PLANE), outputs=words(8, PLANE),
        ),
        binding(
            "Circuit.garble", made.circuit.garble, writes="tables colours halves", free="first_instance threads",
            optional="halves",
            delta=delta(), input_zeros=zeros, threads=1, **batch,
        ),
        binding(
            "Circuit.evaluate", made.circuit.evaluate, writes="colours halves", free="first_instance threads",
            optional="halves",
            input_labels=zeros, threads=1, **batch,
        ),
        binding(
            "encode_labels", n.encode_labels, writes="labels", free="threads",
            delta=delta(), zeros=zeros, planes=words(24, PLANE), instances=COUNT, labels=zeros, threads=1,
        ),
    ]  # fmt: skip


def oblivious_transfer(made: Objects) -> list[Binding]:
    n, pads, choices = _native, words(COUNT, 2), words(PLANE)
    message, products = words(MESSAGE_BLOCKS, 2), packed(COUNT, WIDTH)
    setup = words(n.ot_setup_blocks(4, True), 2)
    return [
        binding("ot_message_blocks", n.ot_message_blocks, free="count", k=4, count=COUNT,
                random_choices=False, checked=True),
        binding("ot_setup_blocks", n.ot_setup_blocks, k=4, checked=True),
        binding("OtReceiver", n.OtReceiver, writes="setup", k=4, checked=True, base_pairs=words(128, 2, 2),
                prg=made.prg, setup=setup),
        binding("OtSender", n.OtSender, k=4, checked=True, delta=delta(), base_keys=words(128, 2), setup=setup),
        binding(
            "OtReceiver.extend", made.receiver.extend, writes="choices message t", free="threads",
            count=COUNT, choices=choices, random_choices=False, message=message, t=pads, threads=1,
        ),
        binding("OtReceiver.bind", made.receiver.bind, free="said", said=KEY),
        binding("OtSender.bind", made.sender.bind, free="said", said=KEY),
        binding("OtSender.has_refused", made.sender.has_refused),
        binding("OtReceiver.early_tweak", made.receiver.early_tweak),
        binding("OtSender.early_tweak", made.sender.early_tweak),
        binding("hash_received", n.hash_received, writes="t", free="t threads", tweak=KEY, t=pads, threads=1),
        binding(
            "OtSender.extend", made.sender.extend, writes="q", free="threads",
            count=COUNT, random_choices=False, message=message, q=pads, threads=1,
        ),
        binding(
            "OtSender.hash", made.sender.hash, writes="zeros ones", free="threads",
            tweak=KEY, q=pads, zeros=pads, ones=pads, threads=1,
        ),
        binding(
            "low_bit_planes", n.low_bit_planes, writes="planes", free="pads",
            pads=pads, width=WIDTH, planes=words(WIDTH, PLANE),
        ),
        binding(
            "expand_pads", n.expand_pads, writes="out", free="threads",
            pads=pads, out=words(COUNT, 5, 2), threads=1,
        ),
        binding(
            "send_chosen", n.send_chosen, writes="message",
            m0=pads, m1=pads, x0=pads, x1=pads, message=words(2 * COUNT, 2),
        ),
        binding(
            "receive_chosen", n.receive_chosen, writes="out",
            m_r=pads, choices=choices, message=words(2 * COUNT, 2), out=pads,
        ),
        binding(
            "send_products", n.send_products, writes="message shares",
            m0=pads, m1=pads, x=words(COUNT), width=WIDTH, message=products, shares=words(COUNT),
        ),
        binding(
            "receive_products", n.receive_products, writes="shares",
            m_r=pads, choices=choices, message=products, width=WIDTH, shares=words(COUNT),
        ),
    ]  # fmt: skip


def silent_transfer(made: Objects) -> list[Binding]:
    n, pads, bits, trees = _native, words(COUNT, 2), words(2, 2), words(SILENT_BLOCKS, 2)
    shape: dict[str, Any] = {"secret": SILENT[0], "trees": SILENT[1], "depth": SILENT[2]}
    seeds = words(n.silent_seeds(*SILENT), 2)

    def accept(proof: bytes) -> None:
        checked = n.SilentReceiver(*SILENT, True, KEY, seeds)
        checked.refill(trees, 1)
        checked.accept(proof)

    return [
        binding("silent_seeds", n.silent_seeds, free="secret trees", **shape),
        binding("SilentReceiver", n.SilentReceiver, **shape, checked=True, session=KEY, t=seeds),
        binding("SilentSender", n.SilentSender, **shape, session=KEY, delta=delta(), q=seeds),
        binding("SilentSender.refill", made.silent_sender.refill, writes="message", free="threads",
                prg=made.prg, message=trees, threads=1),
        binding("SilentSender.prove", made.silent_sender.prove, free="threads", masked=KEY, threads=1),
        binding("SilentSender.available", made.silent_sender.available),
        binding("SilentSender.extend", made.silent_sender.extend, writes="q", free="threads",
                count=COUNT, random_choices=False, message=bits, q=pads, threads=1),
        binding("SilentReceiver.refill", made.silent_receiver.refill, free="threads", message=trees, threads=1),
        binding("SilentReceiver.accept", accept, proof=KEY + KEY),
        binding("SilentReceiver.available", made.silent_receiver.available),
        binding("SilentReceiver.extend", made.silent_receiver.extend, writes="choices message t", free="threads",
                count=COUNT, choices=words(PLANE), random_choices=False, message=bits, t=pads, threads=1),
    ]  # fmt: skip


def gmw(made: Objects) -> list[Binding]:
    tree, codes, column = made.digits.tree, words(made.digits.code_rows, PLANE), words(COUNT)
    shared = {
        "x": column, "leaf_products": words(2 * len(made.digits.widths) + 1, PLANE),
        "pair_masks": words(5, tree.pair_count, PLANE), "three_masks": words(13, tree.three_count, PLANE),
        "bits": words(3, PLANE), "arithmetic": words(6, COUNT),
    }  # fmt: skip
    of_server, of_client = {"leaf_masks": codes, "alpha": column}, {"new_mask": column}

    def server() -> _native.GmwServer:
        made_server = made.gadget.server(**shared, **of_server)
        made_server.first()
        return made_server

    def client_answer(**arguments: Any) -> None:
        made.gadget.client(**shared, **of_client).answer(**arguments)

    def server_answer(**arguments: Any) -> None:
        server().answer(**arguments)

    def finish(**arguments: Any) -> None:
        party = server()
        while not party.is_last:
            party.answer(np.zeros(party.received_bytes, np.uint8))
        party.finish(**arguments)

    leaf_pads = words(64 * PLANE * made.digits.bit_rows, 2)
    openings = [8 * PLANE * rows for rows in (*map(tree.opened_rows, range(tree.level_count)), 3)]
    head, ring = 8 * codes.size + (COUNT * RING + 7) // 8, (COUNT * RING + 7) // 8
    return [
        binding("CarryTree", _native.CarryTree, leaves=7, low=3, arity=3, free="low arity"),
        binding("CarryTree.opened_rows", tree.opened_rows, level=1, free="level"),
        binding("Digits", _native.Digits, w=8, f=2, top=7, arity=3, free="f top arity"),
        binding(
            "Digits.bits", made.digits.bits, writes="bits", free="values",
            values=column, bits=words(made.digits.bit_rows, PLANE),
        ),
        binding(
            "Digits.masks", made.digits.masks, writes="masks products corrections", zeros=leaf_pads, ones=leaf_pads,
            masks=codes, products=words(made.digits.product_rows, PLANE),
            corrections=words(made.digits.correction_rows, PLANE),
        ),
        binding(
            "Digits.products", made.digits.products, writes="products", pads=leaf_pads,
            bits=words(made.digits.bit_rows, PLANE), corrections=words(made.digits.correction_rows, PLANE),
            products=words(made.digits.product_rows, PLANE),
        ),
        binding("GmwGadget", _native.GmwGadget, free="f count", is_relu=True, w=RING, k=RING, f=8, count=COUNT),
        binding("GmwGadget.server", made.gadget.server, **shared, **of_server),
        binding("GmwGadget.client", made.gadget.client, **shared, **of_client),
        binding("GmwClient.answer", client_answer, received=np.zeros(openings[0] + head, np.uint8)),
        binding("GmwServer.answer", server_answer, received=np.zeros(sum(openings[:2]), np.uint8)),
        binding(
            "GmwServer.finish", finish, writes="y",
            received=np.zeros(sum(openings[len(openings) // 2 * 2 :]) + ring, np.uint8), y=column,
        ),
    ]  # fmt: skip


def linear(made: Objects) -> list[Binding]:
    n, polynomials = made.params.n, np.ones((2, made.params.n), np.int32)
    listed: dict[str, Any] = {"tiles": 1, "used_index": USED, "used_counts": [10], "threads": 1}
    return [
        binding("rlwe.max_modulus_bits", rlwe.max_modulus_bits, n=4096, free="n"),
        binding("rlwe.Params.for_ring", rlwe.Params.for_ring, ring_bits=32),
        binding("rlwe.Params.make", rlwe.Params.make, n=4096, ring_bits=32, prime_bits=[28, 28, 28], reply_primes=2),
        binding("rlwe.Params.reply_bytes", made.params.reply_bytes, used=10, free="used"),
        binding("rlwe.Params.noise", made.params.noise, l1=1.0, l2_squared=1.0),
        binding(
            "rlwe.Params.transform", made.params.transform, writes="values",
            prime=1, forward=True, values=np.zeros(n, np.int32), free="prime",
        ),
        binding("rlwe.SecretKey", rlwe.SecretKey, params=made.params, prg=made.prg),
        binding("rlwe.SecretKey.public_key", made.secret.public_key, prg=made.prg),
        binding(
            "rlwe.SecretKey.encrypt", made.secret.encrypt, free="messages threads",
            messages=words(2, n), prg=made.prg, threads=1,
        ),
        binding(
            "rlwe.SecretKey.decrypt", made.secret.decrypt, writes="out", free="threads used_index",
            wire=made.reply_wire, out=words(10), **listed,
        ),
        binding("rlwe.PublicKey", rlwe.PublicKey, params=made.params, wire=made.public_wire),
        binding(
            "rlwe.Ciphertexts", rlwe.Ciphertexts, free="threads",
            params=made.params, wire=made.upload_wire, count=2, threads=1,
        ),
        binding("rlwe.Weights", rlwe.Weights, params=made.params, replies=1, inputs=2, degree=4096),
        binding(
            "rlwe.Weights.copy_to", made.weights.copy_to, writes="out",
            out=np.zeros(made.weights.bytes // 4, np.int32),
        ),
        binding("limit_cores", _native.limit_cores, free="most", most=_native.available_cores()),
        binding(
            "rlwe.Weights.set_reply", made.weights.set_reply, free="reply threads",
            reply=0, polynomials=polynomials, threads=1,
        ),
        binding(
            "rlwe.reply", rlwe.reply, writes="share", free="threads used_index",
            key=made.public, weights=made.weights, inputs=[made.upload], prg=made.prg, share=words(10), **listed,
        ),
        binding(
            "rlwe.time_products", rlwe.time_products, free="threads",
            weights=made.weights, inputs=[made.upload], threads=1,
        ),
        binding(
            "ring.Conv", _native.ring.Conv, free="pad_top pad_left",
            weights=np.ones((3, 2, 3, 3), np.int32), **CONV_SHAPE,
        ),
        binding(
            "ring.Conv.apply", made.conv.apply, writes="out", free="threads",
            tensor=np.ones((2, 4, 4), np.uint32), out=np.ones((3, 4, 4), np.uint32), threads=1,
        ),
    ]  # fmt: skip


def bindings() -> dict[str, Binding]:
    made = Objects()
    parts = (crypto_and_bits, garbling, oblivious_transfer, silent_transfer, gmw, linear)
    return {entry.name: entry for part in parts for entry in part(made)}
