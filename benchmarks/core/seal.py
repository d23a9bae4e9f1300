"""SEAL's times for what our RLWE does, through TenSEAL, in this process.

BFV at the same degree with SEAL's own primes inside its own 128-bit table. One of them is its special prime, so
its ciphertexts have a smaller modulus than ours (72 bits and not 106 at n = 4096), which favours it. A product is
multiply_plain of a ciphertext and a plaintext that both are in NTT form; encryption is symmetric, as ours is.
"""

from __future__ import annotations

import importlib
from typing import Any

from sphynx.bench.machine import best_seconds, installed_version

PRIME_BITS = {4096: [36, 36, 37], 8192: [36, 36, 36, 36, 36]}
KEYS = ("seal_product_s", "seal_add_s", "seal_plaintext_ntt_s", "seal_encrypt_s", "seal_decrypt_s")


def seal_peer() -> str:
    """Which peer was measured, or why there is none."""
    version = installed_version("tenseal")
    return f"TenSEAL {version}" if version else "TenSEAL is not installed (pip install tenseal): no SEAL times"


def seal_times(n: int, repeats: int) -> dict[str, float | None]:
    try:
        seal: Any = importlib.import_module("tenseal.sealapi")
    except ImportError:
        return {"seal_modulus_bits": None, **dict.fromkeys(KEYS)}
    settings = seal.EncryptionParameters(seal.SCHEME_TYPE.BFV)
    settings.set_poly_modulus_degree(n)
    settings.set_coeff_modulus(seal.CoeffModulus.Create(n, PRIME_BITS[n]))
    settings.set_plain_modulus(seal.Modulus(2**32))
    context = seal.SEALContext(settings, True, seal.SEC_LEVEL_TYPE.TC128)
    keys = seal.KeyGenerator(context)
    encryptor = seal.Encryptor(context, keys.secret_key())
    decryptor, evaluator = seal.Decryptor(context, keys.secret_key()), seal.Evaluator(context)

    terms = [f"{(i * 2654435761) % 2**32:X}" + (f"x^{i}" if i else "") for i in reversed(range(n))]
    message, ciphertext, decrypted = seal.Plaintext(" + ".join(terms)), seal.Ciphertext(), seal.Plaintext()
    encryptor.encrypt_symmetric(message, ciphertext)
    transformed, plain, scratch = seal.Ciphertext(), seal.Plaintext(), seal.Plaintext()
    evaluator.transform_to_ntt(ciphertext, transformed)
    evaluator.transform_to_ntt(message, ciphertext.parms_id(), plain)
    product, total = seal.Ciphertext(), seal.Ciphertext()
    evaluator.multiply_plain(transformed, plain, product)
    work = {
        "seal_product_s": lambda: evaluator.multiply_plain(transformed, plain, product),
        "seal_add_s": lambda: evaluator.add(product, product, total),
        "seal_plaintext_ntt_s": lambda: evaluator.transform_to_ntt(message, ciphertext.parms_id(), scratch),
        "seal_encrypt_s": lambda: encryptor.encrypt_symmetric(message, ciphertext),
        "seal_decrypt_s": lambda: decryptor.decrypt(ciphertext, decrypted),
    }
    times: dict[str, float | None] = {key: best_seconds(work[key], repeats) for key in KEYS}
    return {"seal_modulus_bits": sum(PRIME_BITS[n][:-1]), **times}
