"""The answer without protection, for contrast: whoever computes it sees the picture.

By the float network that the program was compiled from, in fp32 by torch, where both are here: a model by name comes
with it, a compiled folder does not hold it. Otherwise by the program's integers, which are the private answer's own,
but evaluated to be exact, not to be fast: their time says little.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sphynx.api.compiled import Compiled
from sphynx.app.answer import TOP, outputs_in_the_clear
from sphynx.program.interpret import interpret
from sphynx.service.prediction import ranked, ranked_scores

if TYPE_CHECKING:
    from sphynx.network.trained import TrainedNetwork


class InTheClear:
    def __init__(self, compiled: Compiled, run: Path | None = None) -> None:
        """`run` is the float network's folder, where it is here."""
        self._compiled, self._run = compiled, run

    def answer(self, pixels: NDArray[np.uint8]) -> dict[str, Any]:
        """`pixels` are one image's; `by` says what `clear_seconds` are of."""
        return self.by_floats(pixels) if self.has_floats else self.by_integers(pixels)

    def compare(self, pixels: NDArray[np.uint8], private: Mapping[str, Any]) -> dict[str, Any]:
        """Answer by the float network, where it is here, and by the program's integers: `equal` says whether the
        `private` answer has the same integers, bit for bit."""
        integers = self.by_integers(pixels)
        same = ("integer_logits", "labels", "outputs")
        equal = all(_plain(integers.get(name)) == _plain(private.get(name)) for name in same if name in private)
        return {"fp32": self.by_floats(pixels) if self.has_floats else None, "integers": integers, "equal": equal}

    @property
    def has_floats(self) -> bool:
        """Return whether the float network is here, and one of classes."""
        return self._network is not None and self._compiled.program.classes is not None

    def by_floats(self, pixels: NDArray[np.uint8]) -> dict[str, Any]:
        from sphynx.network.in_the_clear import answer_in_the_clear

        assert self._network is not None
        scores, took_s = answer_in_the_clear(self._network, pixels[None])
        labels, probabilities = ranked_scores(self._compiled.program, scores[0].astype(np.float64))
        return {**_best(labels, probabilities), "clear_seconds": took_s, "by": "fp32", "outputs": []}

    def by_integers(self, pixels: NDArray[np.uint8]) -> dict[str, Any]:
        program, start_s = self._compiled.program, time.monotonic()
        integers = interpret(program, self._compiled.weights, pixels[None])[0]
        told = {"clear_seconds": time.monotonic() - start_s, "by": "integers"}
        if program.classes is not None:
            told |= _best(*ranked(program, integers))
            told["integer_logits"] = program.split(integers[None])[program.classes.name][0].tolist()
        return {**told, "outputs": outputs_in_the_clear(program, integers)}

    @cached_property
    def _network(self) -> TrainedNetwork | None:
        if self._run is None:
            return None
        try:
            from sphynx.network.trained import load_trained  # here: it takes torch, which the page does without
        except ModuleNotFoundError:
            return None
        return load_trained(self._run)


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _best(labels: tuple[str, ...], probabilities: tuple[float, ...]) -> dict[str, Any]:
    return {"labels": labels[:TOP], "probabilities": probabilities[:TOP]}
