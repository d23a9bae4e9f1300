"""(key, plaintext, ciphertext) in hexadecimal, as FIPS 197 prints them."""

FIPS_197_128 = [
    (
        "2b7e151628aed2a6abf7158809cf4f3c",  # appendix B
        "3243f6a8885a308d313198a2e0370734",
        "3925841d02dc09fbdc118597196a0b32",
    ),
    (
        "000102030405060708090a0b0c0d0e0f",  # appendix C.1
        "00112233445566778899aabbccddeeff",
        "69c4e0d86a7b0430d8cdb78070b4c55a",
    ),
]
FIPS_197_256 = [
    (
        "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f",  # appendix C.3
        "00112233445566778899aabbccddeeff",
        "8ea2b7ca516745bfeafc49904b496089",
    ),
]
