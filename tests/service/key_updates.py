"""A client's TLS 1.3 records that only renew its keys (RFC 8446, 4.6.3 and 7.2): OpenSSL makes one where this makes
thousands."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA384
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

CIPHER = "TLS_AES_256_GCM_SHA384"
_SECRET_BYTES, _KEY_BYTES, _IV_BYTES, _TAG_BYTES = 48, 32, 12, 16


def key_updates(key_log: Path, count: int, *, wants_answer: bool) -> Iterator[bytes]:
    """The first records that a client sends after its handshake; `key_log` is what `ssl` wrote for it."""
    fields = (line.split() for line in key_log.read_text().splitlines())
    secret = next(bytes.fromhex(line[2]) for line in fields if line[0] == "CLIENT_TRAFFIC_SECRET_0")
    message = bytes((24, 0, 0, 1, wants_answer, 22))  # key_update, its length, its value; the type of a handshake
    header = bytes((23, 3, 3)) + (len(message) + _TAG_BYTES).to_bytes(2, "big")
    for _ in range(count):
        key, iv = _expand(secret, b"key", _KEY_BYTES), _expand(secret, b"iv", _IV_BYTES)
        yield header + AESGCM(key).encrypt(iv, message, header)  # a new key's first record is number 0: the iv as it is
        secret = _expand(secret, b"traffic upd", _SECRET_BYTES)


def _expand(secret: bytes, label: bytes, size: int) -> bytes:
    label = b"tls13 " + label
    info = size.to_bytes(2, "big") + bytes([len(label)]) + label + b"\0"
    return HKDFExpand(SHA384(), size, info).derive(secret)
