"""OT extension (SoftSpoken, eprint 2022/192; parameter 1 is IKNP) and what is made of it.

Setup: 128 base OTs in which the extension's receiver offers key pairs and its sender chooses by the bits of
`delta`; then the receiver's `setup` array goes to the sender. Each extension is one message, receiver to
sender. Both parties extend in the same order.

    extend       `correlated` at the receiver, its message, `correlated` at the sender: t and q, the latter fixed now
    check        part of the message, made and compared in `correlated` (core/ot/row_check.h): a receiver that deviates
                 is refused with InconsistentOtError, or has guessed bits of delta; none where it is trusted
    late tweak   the sender draws a block R from those fixed labels, which are not there before, and sends it
    use          pads of random OTs, hashed with tweaks that R makes (core/crypto/hash.h), or t and q as wire labels,
                 R then being the tweak of the garbled circuit

A receiver may choose its seeds to fit tweaks that it knows, so R must not be known before. Where the receiver is
trusted, both may use `early_tweak`, which needs no message. Blocks are uint64 arrays of shape (..., 2), bits
are packed 64 to a word (sphynx.core.bits).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sphynx.core import Prg, _native, random_bytes
from sphynx.core.bits import plane_words
from sphynx.errors import InconsistentOtError

Bytes = NDArray[np.uint8]
Words = NDArray[np.uint64]

BASE_OTS = _native.base_ot_count
TWEAK_BYTES = 16


def setup_blocks(k: int, *, checked: bool) -> int:
    """Blocks of a session's set-up."""
    return _native.ot_setup_blocks(k, checked)


def message_blocks(k: int, count: int, *, random_choices: bool, checked: bool) -> int:
    """Blocks of one extension's message: ceil(128/k) bits per OT, one bit less with random choices. Checked, as many as
    for 128 OTs more, and three."""
    return _native.ot_message_blocks(k, count, random_choices, checked)


class CorrelatedReceiver(ABC):
    """The receiver of any extension: it holds the choice bits."""

    @abstractmethod
    def correlated(self, choices: Words, count: int, *, threads: int = 0) -> tuple[Words, Words]:
        """(message, t): t_j = q_j xor r_j delta for the given choice bits r."""

    @abstractmethod
    def correlated_random(self, count: int, *, threads: int = 0) -> tuple[Words, Words, Words]:
        """(message, choices, t): as `correlated`, the choice bits drawn by the extension itself."""

    @abstractmethod
    def early_tweak(self) -> bytes:
        """The tweak of the last extension that was known before it: for receivers that the sender trusts."""


class OtReceiver(CorrelatedReceiver):
    """Holds the choice bits. `setup` is what the sender needs once; its secrets are drawn from `prg`. With `checked` it
    shows in every message that it is consistent, to a sender that does not trust it."""

    def __init__(self, k: int, base_pairs: Words, prg: Prg, *, checked: bool) -> None:
        self.setup: Words = np.empty((setup_blocks(k, checked=checked), 2), np.uint64)
        self._ots = _native.OtReceiver(k, checked, base_pairs, prg, self.setup)

    def bind(self, said: bytes) -> None:
        """Bind later checks to this as well; the sender does the same."""
        self._ots.bind(said)

    def correlated(self, choices: Words, count: int, *, threads: int = 0) -> tuple[Words, Words]:
        message = self._message(count, random_choices=False)
        t = np.empty((count, 2), np.uint64)
        self._ots.extend(count, choices, False, message, t, threads)
        return message, t

    def correlated_random(self, count: int, *, threads: int = 0) -> tuple[Words, Words, Words]:
        message = self._message(count, random_choices=True)
        choices = np.empty(plane_words(count), np.uint64)
        t = np.empty((count, 2), np.uint64)
        self._ots.extend(count, choices, True, message, t, threads)
        return message, choices, t

    def _message(self, count: int, *, random_choices: bool) -> Words:
        ots = self._ots
        blocks = message_blocks(ots.k, count, random_choices=random_choices, checked=ots.checked)
        return np.empty((blocks, 2), np.uint64)

    def early_tweak(self) -> bytes:
        return self._ots.early_tweak()


def received_pads(t: Words, tweak: bytes, *, threads: int = 0) -> Words:
    """Turns the t of an extension, in place, into the pads m_r of random OTs."""
    _native.hash_received(tweak, t, threads)
    return t


def inconsistent(phase: str) -> InconsistentOtError:
    """Say which phase of a peer's OTs failed its check, and no more."""
    return InconsistentOtError(
        f"the peer's {phase} of oblivious transfers is not consistent",
        where="OT",
        remedy="The peer's software is changed or broken. Discard what was prepared on this connection.",
    )


@dataclass(frozen=True, repr=False)
class PadPair:
    """The sender's two pads of each random OT."""

    zeros: Words
    ones: Words


@dataclass(frozen=True, repr=False, eq=False)
class FixedLabels:
    """The sender's labels of an extension whose message has come and passed its check. Late tweaks are drawn here and
    nowhere else, so that none is known before; every use of the labels takes one of its own."""

    zeros: Words  # q, where the receiver has t_j = q_j xor r_j delta
    early_tweak: bytes  # was known before the extension: for receivers that the sender trusts
    prg: Prg

    def late_tweak(self) -> bytes:
        """Draw R."""
        return random_bytes(self.prg, TWEAK_BYTES)


class CorrelatedSender(ABC):
    """The sender of any extension: labels that are fixed, and pads from them."""

    @abstractmethod
    def correlated(self, message: Words, count: int, *, random_choices: bool, threads: int = 0) -> FixedLabels: ...

    @abstractmethod
    def pads(self, q: Words, tweak: bytes, *, threads: int = 0) -> PadPair:
        """The pads of random OTs from the q of an extension, which is overwritten."""

    def late_pads(self, message: Words, count: int, *, random_choices: bool) -> tuple[bytes, PadPair]:
        """(R for the receiver, the pads) of one extension."""
        labels = self.correlated(message, count, random_choices=random_choices)
        tweak = labels.late_tweak()
        return tweak, self.pads(labels.zeros, tweak)

    def early_pads(self, message: Words, count: int, *, random_choices: bool) -> PadPair:
        """The pads of one extension whose receiver is trusted."""
        labels = self.correlated(message, count, random_choices=random_choices)
        return self.pads(labels.zeros, labels.early_tweak)


class OtSender(CorrelatedSender):
    """Holds delta, whose lowest bit is 1: it may be the garbling offset. Late tweaks are drawn from `prg`."""

    def __init__(self, k: int, delta: Words, base_keys: Words, setup: Words, prg: Prg, *, checked: bool) -> None:
        self._ots, self._prg = _native.OtSender(k, checked, delta, base_keys, setup), prg
        if self._ots.has_refused():
            raise inconsistent("set-up")

    def bind(self, said: bytes) -> None:
        """Bind later checks to this as well; the receiver does the same."""
        self._ots.bind(said)

    def correlated(self, message: Words, count: int, *, random_choices: bool, threads: int = 0) -> FixedLabels:
        q = np.empty((count, 2), np.uint64)
        if not self._ots.extend(count, random_choices, message, q, threads):
            raise inconsistent("extension")
        return FixedLabels(q, self._ots.early_tweak(), self._prg)

    def pads(self, q: Words, tweak: bytes, *, threads: int = 0) -> PadPair:
        ones = np.empty_like(q)
        self._ots.hash(tweak, q, q, ones, threads)
        return PadPair(q, ones)


def pad_planes(pads: Words, width: int) -> Words:
    """The low `width` bits of each pad as planes (width, words): random OTs of short strings."""
    planes = np.empty((width, plane_words(pads.shape[0])), np.uint64)
    _native.low_bit_planes(pads, width, planes)
    return planes


def expanded_pads(pads: Words, length: int, *, threads: int = 0) -> Words:
    """Expand each pad, as a seed, into `length` random words, (pads, length): OTs of long strings."""
    words = np.empty((len(pads), (length + 1) // 2, 2), np.uint64)
    _native.expand_pads(pads, words, threads)
    return words.reshape(len(pads), 2 * words.shape[1])[:, :length]


@dataclass(frozen=True, repr=False)
class Triples:
    """One party's shares of random a, b and c = a and b, as planes of words."""

    a: Words
    b: Words
    c: Words


def sender_triples(pads: PadPair) -> Triples:
    """From 2 n random OTs, n a multiple of 64: the offsets of the first half are a, of the second half b."""
    zeros, ones = pad_planes(pads.zeros, 1)[0], pad_planes(pads.ones, 1)[0]
    a, b = np.split(zeros ^ ones, 2)
    first, second = np.split(zeros, 2)
    return Triples(a, b, (a & b) ^ first ^ second)


def receiver_triples(choices: Words, pads: Words) -> Triples:
    """The other share: the choices of the first half are b, of the second half a."""
    b, a = np.split(choices, 2)
    first, second = np.split(pad_planes(pads, 1)[0], 2)
    return Triples(a, b, (a & b) ^ first ^ second)


def send_chosen(pads: PadPair, x0: Words, x1: Words) -> Words:
    """The message by which the receiver learns x0 or x1 (blocks) by its choice bit."""
    message = np.empty((2 * x0.shape[0], 2), np.uint64)
    _native.send_chosen(pads.zeros, pads.ones, x0, x1, message)
    return message


def receive_chosen(pads: Words, choices: Words, message: Words) -> Words:
    out = np.empty_like(pads)
    _native.receive_chosen(pads, choices, message, out)
    return out


def send_products(pads: PadPair, x: Words, width: int) -> tuple[Bytes, Words]:
    """(message, shares) of r * x mod 2^width for the receiver's bits r: a bit times a ring element."""
    message = np.empty((x.size * width + 7) // 8, np.uint8)
    shares = np.empty(x.size, np.uint64)
    _native.send_products(pads.zeros, pads.ones, x, width, message, shares)
    return message, shares


def receive_products(pads: Words, choices: Words, message: Bytes, width: int) -> Words:
    shares = np.empty(pads.shape[0], np.uint64)
    _native.receive_products(pads, choices, message, width, shares)
    return shares
