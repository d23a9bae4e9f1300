"""A product of polynomials as Microsoft SEAL computes it, kept: our RLWE core is held to it where SEAL is missing.

    python -m tests.core.seal_vectors      makes it again, with TenSEAL's SEAL, and writes seal_product.json

A message of 4,096 words of 32 bits is encrypted by SEAL's BFV at t = 2^32, multiplied by 200 weights and decrypted.
"""

from __future__ import annotations

import base64
import json
import random
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

KEPT = Path(__file__).with_name("seal_product.json")
SEED, N, RING_BITS, TAPS, SIZE = 21, 4096, 32, 200, 127


def sparse_weights(rng: random.Random, n: int, taps: int, size: int) -> list[int]:
    poly = [0] * n
    for _ in range(taps):
        poly[rng.randrange(n)] = rng.randint(-size, size)
    return poly


def factors() -> tuple[list[int], list[int]]:
    """The message and the weights: Python's generator gives the same ones everywhere."""
    rng = random.Random(SEED)
    message = [rng.randrange(1 << RING_BITS) for _ in range(N)]
    return message, sparse_weights(rng, N, TAPS, SIZE)


def ask_seal(seal: Any) -> tuple[NDArray[np.uint64], int]:
    """Multiply by SEAL: the product, and the bits of its noise budget that are left."""
    ring = 1 << RING_BITS
    settings = seal.EncryptionParameters(seal.SCHEME_TYPE.BFV)
    settings.set_poly_modulus_degree(N)
    settings.set_coeff_modulus(seal.CoeffModulus.Create(N, [36, 36, 37]))
    settings.set_plain_modulus(seal.Modulus(ring))
    context = seal.SEALContext(settings, True, seal.SEC_LEVEL_TYPE.TC128)
    keys = seal.KeyGenerator(context)
    encryptor = seal.Encryptor(context, keys.secret_key())
    decryptor, evaluator = seal.Decryptor(context, keys.secret_key()), seal.Evaluator(context)

    def plaintext(poly: list[int]) -> object:
        terms = [f"{poly[i] % ring:X}" + (f"x^{i}" if i else "") for i in reversed(range(N)) if poly[i] % ring]
        return seal.Plaintext(" + ".join(terms))

    message, weights = map(plaintext, factors())
    ciphertext, out = seal.Ciphertext(), seal.Plaintext()
    encryptor.encrypt_symmetric(message, ciphertext)
    evaluator.multiply_plain_inplace(ciphertext, weights)
    decryptor.decrypt(ciphertext, out)
    product = [out[i] if i < out.coeff_count() else 0 for i in range(N)]
    return np.array(product, np.uint64), int(decryptor.invariant_noise_budget(ciphertext))


def kept_product() -> NDArray[np.uint64]:
    return np.frombuffer(base64.b64decode(json.loads(KEPT.read_text())["product"]), "<u4").astype(np.uint64)


if __name__ == "__main__":
    import tenseal.sealapi

    product, _ = ask_seal(tenseal.sealapi)
    text = base64.b64encode(product.astype("<u4").tobytes()).decode()
    made_by = f"SEAL of tenseal {metadata.version('tenseal')}"
    KEPT.write_text(json.dumps({"made_by": made_by, "product": text}, indent=1) + "\n")
