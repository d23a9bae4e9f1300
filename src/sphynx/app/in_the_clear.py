"""The answer without protection, for contrast: whoever computes it sees the picture.

By the float network that the program was compiled from, in fp32 by torch, where both are here: a model by name comes
with it, a compiled folder does not hold it. Otherwise by the program's integers, which are the private answer's own,
but evaluated to be exact, not to be fast: their time says little.
"""

from __future__ import annotations

import time
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sphynx.api.compiled import Compiled
from sphynx.program.interpret import interpret
from sphynx.service.prediction import ranked, ranked_scores

if TYPE_CHECKING:
    from sphynx.network.trained import TrainedNetwork

TOP = 5  # labels that a page shows

Answer = tuple[tuple[str, ...], tuple[float, ...], dict[str, Any]]  # labels, the likeliest first; the rest


class InTheClear:
    def __init__(self, compiled: Compiled, run: Path | None = None) -> None:
        """`run` is the float network's folder, where it is here."""
        self._compiled, self._run = compiled, run

    def answer(self, pixels: NDArray[np.uint8]) -> dict[str, Any]:
        """`pixels` are one image's; `by` says what `clear_seconds` are of."""
        labels, probabilities, rest = self._by_floats(pixels) if self._network else self._by_integers(pixels)
        return {"labels": labels[:TOP], "probabilities": probabilities[:TOP], **rest}

    def _by_floats(self, pixels: NDArray[np.uint8]) -> Answer:
        from sphynx.network.in_the_clear import answer_in_the_clear

        assert self._network is not None
        scores, took_s = answer_in_the_clear(self._network, pixels[None])
        ordered = ranked_scores(self._compiled.program, scores[0].astype(np.float64))
        return *ordered, {"clear_seconds": took_s, "by": "fp32"}

    def _by_integers(self, pixels: NDArray[np.uint8]) -> Answer:
        start_s = time.monotonic()
        logits = interpret(self._compiled.program, self._compiled.weights, pixels[None])[0]
        took_s = time.monotonic() - start_s
        rest = {"clear_seconds": took_s, "by": "integers", "integer_logits": logits.tolist()}
        return *ranked(self._compiled.program, logits), rest

    @cached_property
    def _network(self) -> TrainedNetwork | None:
        if self._run is None:
            return None
        try:
            from sphynx.network.trained import load_trained  # here: it takes torch, which the page does without
        except ModuleNotFoundError:
            return None
        return load_trained(self._run)
