"""AES-128 against FIPS 197 and SP 800-38A (ECB F.1.1, CTR F.5.1), on every path of this CPU."""

from __future__ import annotations

import numpy as np
import pytest

from sphynx.core import Prg, _native, cpu_features
from tests.core.aes_vectors import FIPS_197_128

SP800_KEY = "2b7e151628aed2a6abf7158809cf4f3c"
SP800_PLAIN = (
    "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51"
    "30c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710"
)
SP800_ECB = (
    "3ad77bb40d7a3660a89ecaf32466ef97f5d3d58503b9699de785895a96fdbaaf"
    "43b1cd7f598ece23881b00e3ed0306887b0c785e27e8ad3f8223207104725dd4"
)
SP800_CTR = (
    "874d6191b620e3261bef6864990db6ce9806f66b7970fdff8617187bb9fffdff"
    "5ae4df3edbd5d35e5b4f09020db03eab1e031dda2fbe03d1792170a0f3009cee"
)


def blocks(hexadecimal: str) -> np.ndarray:
    return np.frombuffer(bytes.fromhex(hexadecimal), dtype=np.uint64).reshape(-1, 2)


def encrypt(key: str, plain: str) -> str:
    source = blocks(plain)
    out = np.empty_like(source)
    _native.aes_encrypt(bytes.fromhex(key), source, out)
    return out.tobytes().hex()


@pytest.mark.usefixtures("path")
@pytest.mark.parametrize(
    ("key", "plain", "cipher"),
    [*FIPS_197_128, (SP800_KEY, SP800_PLAIN, SP800_ECB)],
)
def test_ecb_vectors(key: str, plain: str, cipher: str) -> None:
    assert encrypt(key, plain) == cipher
    # Enough copies to fill the pipeline several times and leave a remainder.
    assert encrypt(key, plain * 37) == cipher * 37


@pytest.mark.usefixtures("path")
def test_ctr_vectors() -> None:
    stream = np.empty((4, 2), np.uint64)
    _native.aes_counter_stream(bytes.fromhex(SP800_KEY), bytes.fromhex("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff"), stream)
    assert (stream ^ blocks(SP800_PLAIN)).tobytes().hex() == SP800_CTR


@pytest.mark.usefixtures("path")
def test_fixed_seed_prg_is_counter_mode_from_zero() -> None:
    drawn = np.empty(1000, np.uint8)
    Prg.fixed_seed_for_tests(bytes(16)).fill(drawn)
    stream = np.empty((63, 2), np.uint64)
    _native.aes_counter_stream(bytes(16), bytes(16), stream)
    assert drawn.tobytes() == stream.tobytes()[:1000]


def test_os_seeded_prgs_differ() -> None:
    first, second = np.empty(16, np.uint8), np.empty(16, np.uint8)
    Prg().fill(first)
    Prg().fill(second)
    assert first.tobytes() != second.tobytes()


def test_wrong_buffers_raise() -> None:
    good = np.zeros((4, 2), np.uint64)
    with pytest.raises(ValueError, match="16 bytes"):
        _native.aes_encrypt(bytes(15), good, good.copy())
    with pytest.raises(ValueError, match="4 blocks"):
        _native.aes_encrypt(bytes(16), good, np.zeros((3, 2), np.uint64))
    with pytest.raises(ValueError, match="shape"):
        _native.aes_encrypt(bytes(16), np.zeros((2, 3), np.uint64), good)
    with pytest.raises(TypeError):
        _native.aes_encrypt(bytes(16), np.zeros((4, 2), np.float64), good)
    with pytest.raises(TypeError):
        _native.aes_encrypt(bytes(16), np.zeros((2, 4), np.uint64).T, good)
    frozen = good.copy()
    frozen.flags.writeable = False
    with pytest.raises(TypeError):
        _native.aes_encrypt(bytes(16), good, frozen)
    unaligned = np.frombuffer(bytes(65), np.uint8)[1:].view(np.uint64).reshape(4, 2)
    with pytest.raises(ValueError, match="aligned"):
        _native.aes_encrypt(bytes(16), unaligned, good)


def test_cpu_features_name_the_path() -> None:
    features = cpu_features()
    assert features.aes_path in ("vaes512", "vaes", "aesni", "armv8", "portable")
    assert (features.aes_path == "armv8") == ("armv8_aes" in features.available)
