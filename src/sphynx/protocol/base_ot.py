"""Base OTs: Chou and Orlandi's "simplest OT" (eprint 2015/267) on the prime-order group of edwards25519.

    sender -> receiver    A = a G, and a proof that it knows a     96 bytes
    receiver -> sender    B_j = b_j G + c_j A, one for each OT     32 bytes each
    keys, sender          H(j, A, B_j, a B_j) and H(j, A, B_j, a (B_j - A))
    key, receiver         H(j, A, B_j, b_j A)

The proof is Schnorr's, by Fiat and Shamir's transformation: e = H(A, K, context) and s = x + e a for K = x G with a
random x. (e, s) travel, and K = s G - e A is what e has to be the hash of. The context names the conversation, so no
proof serves in another. A sender that knows a knows both keys of every OT, as the extension's checks suppose.

B_j is uniform whatever c_j is; the other key needs a (B_j - A) or a B_j, a Diffie-Hellman value.
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
from sphynx.errors import InconsistentOtError, SphynxError

Words = NDArray[np.uint64]

POINT_BYTES = 32
FIRST_BYTES = 3 * POINT_BYTES  # A, and a proof of two scalars


def _random_scalar(prg: Prg) -> bytes:
    return sodium.crypto_core_ed25519_scalar_reduce(random_bytes(prg, 64))


def _times(scalar: bytes, point: bytes) -> bytes:
    """scalar * point. libsodium itself refuses points outside the prime-order group: a second check would cost half as
    much again."""
    if len(point) == POINT_BYTES:
        with contextlib.suppress(SodiumRefusal):
            return sodium.crypto_scalarmult_ed25519_noclamp(scalar, point)
    raise _not_a_point()


def _not_a_point() -> SphynxError:
    return SphynxError(
        "the peer sent something that is not a group element",
        where="base OT",
        remedy="The connection or the peer is broken: start a new session.",
    )


def _key(index: int, first: bytes, answer: bytes, shared: bytes) -> bytes:
    hashed = hashlib.blake2b(index.to_bytes(4, "little"), digest_size=16, person=b"sphynx base OT")
    for part in (first, answer, shared):
        hashed.update(part)
    return hashed.digest()


def _challenge(context: bytes, point: bytes, commitment: bytes) -> bytes:
    hashed = hashlib.blake2b(point + commitment + context, digest_size=64, person=b"sphynx base key")
    return sodium.crypto_core_ed25519_scalar_reduce(hashed.digest())


def _prove(scalar: bytes, point: bytes, context: bytes, prg: Prg) -> bytes:
    """A proof that whoever made it knows `scalar`, and nothing else about it."""
    blinding = _random_scalar(prg)
    e = _challenge(context, point, sodium.crypto_scalarmult_ed25519_base_noclamp(blinding))
    product = sodium.crypto_core_ed25519_scalar_mul(e, scalar)
    return e + sodium.crypto_core_ed25519_scalar_add(blinding, product)


def _check_proof(point: bytes, proof: bytes, context: bytes) -> None:
    """Refuse a point outside the group, and one whose sender does not show that it knows the exponent."""
    e, s = proof[:POINT_BYTES], proof[POINT_BYTES:]
    other = _times(e, point)
    with contextlib.suppress(SodiumRefusal):  # s is zero
        commitment = sodium.crypto_core_ed25519_sub(sodium.crypto_scalarmult_ed25519_base_noclamp(s), other)
        if _challenge(context, point, commitment) == e:
            return
    raise InconsistentOtError(
        "the peer's set-up of oblivious transfers is not consistent",
        where="base OT",
        remedy="The peer's software is changed or broken: start a new session.",
    )


class BaseOtSender:
    """Ends with both keys of every OT. Send `first_message`, then call `keys` with the receiver's answer."""

    def __init__(self, prg: Prg, context: bytes) -> None:
        self._scalar = _random_scalar(prg)
        self._point = sodium.crypto_scalarmult_ed25519_base_noclamp(self._scalar)
        self.first_message = self._point + _prove(self._scalar, self._point, context, prg)

    def keys(self, answer: bytes) -> Words:
        """Key pairs, blocks of shape (OTs, 2, 2)."""
        offset = _times(self._scalar, self._point)
        keys = []
        for index, start in enumerate(range(0, len(answer), POINT_BYTES)):
            point = answer[start : start + POINT_BYTES]
            shared = _times(self._scalar, point)
            keys.append(_key(index, self._point, point, shared))
            keys.append(_key(index, self._point, point, sodium.crypto_core_ed25519_sub(shared, offset)))
        return np.frombuffer(b"".join(keys), np.uint64).reshape(-1, 2, 2)


class BaseOtReceiver:
    """Ends with the key of its choice. `answer` takes the sender's first message, gives what to send back."""

    def __init__(self, choices: Words, count: int, prg: Prg) -> None:
        """`choices`: packed bits, `count` of them."""
        self._masks = (np.uint64(0) - bit_values(choices)[:count]).astype(np.uint8)  # 0 or 255 for each OT
        self._prg = prg

    def answer(self, first_message: bytes, context: bytes) -> tuple[bytes, Words]:
        """Return (what to send, the keys as blocks of shape (OTs, 2)). Nothing depends on a choice before the proof is
        checked."""
        if len(first_message) != FIRST_BYTES:
            raise _not_a_point()
        first = first_message[:POINT_BYTES]
        _check_proof(first, first_message[POINT_BYTES:], context)
        sent, keys = [], []
        for index, mask in enumerate(self._masks):
            scalar = _random_scalar(self._prg)
            shared = _times(scalar, first)
            # Both candidates are computed and one is taken by a mask: no branch on the choice bit.
            zero = np.frombuffer(sodium.crypto_scalarmult_ed25519_base_noclamp(scalar), np.uint8)
            one = np.frombuffer(sodium.crypto_core_ed25519_add(zero.tobytes(), first), np.uint8)
            point = (zero ^ ((zero ^ one) & mask)).tobytes()
            sent.append(point)
            keys.append(_key(index, first, point, shared))
        return b"".join(sent), np.frombuffer(b"".join(keys), np.uint64).reshape(-1, 2)
