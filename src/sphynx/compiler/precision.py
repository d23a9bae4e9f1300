"""How many bits a program's numbers get."""

from __future__ import annotations

from dataclasses import dataclass

from sphynx.config import setting
from sphynx.errors import InputError

WEIGHT_BITS = range(6, 17)
ACTIVATION_BITS = range(4, 25)
LINK_BITS = range(4, 17)


@dataclass(frozen=True)
class Precision:
    """Bits of weights and activations, for `sphynx.compile_network`.

    >>> sphynx.Precision(weight_bits=12)
    Precision(weight_bits=12, activation_bits=10, link_bits=11)
    """

    weight_bits: int = setting(8, "Bits of a weight, 6 to 16. [default: as many as accuracy needs]", choose=True)
    activation_bits: int = setting(
        10, "With `weight_bits`: bits that a ReLU keeps, 4 to 24. [default: 10]", choose=True
    )
    link_bits: int = setting(  # weights of a map whose result another linear map reads: each link widens the ring
        0, "With `weight_bits`: bits of a weight inside a chain of maps, 4 to 16. [default: one bit less]", choose=True
    )

    def __post_init__(self) -> None:
        if not self.link_bits:  # as fine as the others, nearly: else a chain would be cheaper by being less exact
            object.__setattr__(self, "link_bits", self.weight_bits - 1)
        for name, value, allowed in (
            ("weight_bits", self.weight_bits, WEIGHT_BITS),
            ("activation_bits", self.activation_bits, ACTIVATION_BITS),
            ("link_bits", self.link_bits, LINK_BITS),
        ):
            if value not in allowed:
                raise InputError(
                    f"{value} is not a valid number of bits",
                    where=f"`{name}`",
                    remedy=f"Choose from {allowed.start} to {allowed.stop - 1}.",
                )
