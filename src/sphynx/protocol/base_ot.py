"""Base OTs: Chou and Orlandi's "simplest OT" (eprint 2015/267) on the prime-order group of edwards25519.

    sender -> receiver    A = a G                                  32 bytes
    receiver -> sender    B_j = b_j G + c_j A, one for each OT     32 bytes each
    keys, sender          H(j, A, B_j, a B_j) and H(j, A, B_j, a (B_j - A))
    key, receiver         H(j, A, B_j, b_j A)

Semi-honest: B_j is uniform whatever c_j is; the other key needs a (B_j - A) or a B_j, a Diffie-Hellman value.
Points from the peer are refused unless they lie in the prime-order group. Group operations are libsodium's.
"""

from __future__ import annotations

import contextlib
import hashlib

import numpy as np
from nacl import bindings as sodium
from nacl.exceptions import RuntimeError as SodiumRefusal
from numpy.typing import NDArray

from sphynx.core import Prg, random_bytes
from sphynx.core.bits import bit_values
from sphynx.errors import SphynxError

Words = NDArray[np.uint64]

POINT_BYTES = 32


def _random_scalar(prg: Prg) -> bytes:
    return sodium.crypto_core_ed25519_scalar_reduce(random_bytes(prg, 64))


def _times(scalar: bytes, point: bytes) -> bytes:
    """scalar * point. libsodium itself refuses points outside the prime-order group: a second check would cost half as
    much again."""
    if len(point) == POINT_BYTES:
        with contextlib.suppress(SodiumRefusal):
            return sodium.crypto_scalarmult_ed25519_noclamp(scalar, point)
    raise SphynxError(
        "the peer sent something that is not a group element",
        where="base OT",
        remedy="The connection or the peer is broken: start a new session.",
    )


def _key(index: int, first: bytes, answer: bytes, shared: bytes) -> bytes:
    hashed = hashlib.blake2b(index.to_bytes(4, "little"), digest_size=16, person=b"sphynx base OT")
    for part in (first, answer, shared):
        hashed.update(part)
    return hashed.digest()


class BaseOtSender:
    """Ends with both keys of every OT. Send `first_message`, then call `keys` with the receiver's answer."""

    def __init__(self, prg: Prg) -> None:
        self._scalar = _random_scalar(prg)
        self.first_message = sodium.crypto_scalarmult_ed25519_base_noclamp(self._scalar)

    def keys(self, answer: bytes) -> Words:
        """Key pairs, blocks of shape (OTs, 2, 2)."""
        offset = _times(self._scalar, self.first_message)
        keys = []
        for index, start in enumerate(range(0, len(answer), POINT_BYTES)):
            point = answer[start : start + POINT_BYTES]
            shared = _times(self._scalar, point)
            keys.append(_key(index, self.first_message, point, shared))
            keys.append(_key(index, self.first_message, point, sodium.crypto_core_ed25519_sub(shared, offset)))
        return np.frombuffer(b"".join(keys), np.uint64).reshape(-1, 2, 2)


class BaseOtReceiver:
    """Ends with the key of its choice. `answer` takes the sender's first message, gives what to send back."""

    def __init__(self, choices: Words, count: int, prg: Prg) -> None:
        """`choices`: packed bits, `count` of them."""
        self._masks = (np.uint64(0) - bit_values(choices)[:count]).astype(np.uint8)  # 0 or 255 for each OT
        self._prg = prg

    def answer(self, first_message: bytes) -> tuple[bytes, Words]:
        """Return (what to send, the keys as blocks of shape (OTs, 2))."""
        sent, keys = [], []
        for index, mask in enumerate(self._masks):
            scalar = _random_scalar(self._prg)
            shared = _times(scalar, first_message)
            # Both candidates are computed and one is taken by a mask: no branch on the choice bit.
            zero = np.frombuffer(sodium.crypto_scalarmult_ed25519_base_noclamp(scalar), np.uint8)
            one = np.frombuffer(sodium.crypto_core_ed25519_add(zero.tobytes(), first_message), np.uint8)
            point = (zero ^ ((zero ^ one) & mask)).tobytes()
            sent.append(point)
            keys.append(_key(index, first_message, point, shared))
        return b"".join(sent), np.frombuffer(b"".join(keys), np.uint64).reshape(-1, 2)
