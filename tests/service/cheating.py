"""Clients that cheat, in this process: honest ones with one part replaced. The server is another process.

Each is as consistent as it can be: what it sends later fits what it changed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from sphynx.core import garbling
from sphynx.program.ir import INPUT, Program
from sphynx.protocol import inference
from sphynx.protocol.inference import InferenceClient
from sphynx.protocol.linear import MaskedTensors, Words
from sphynx.protocol.linear_plan import Upload
from sphynx.protocol.verify import parties

ONE = np.uint64(1)


def shift_a_share(patched: pytest.MonkeyPatch) -> None:
    """Open a ReLU: the committed u is not M r - S."""
    honest = parties.committed_numbers

    def changed(program: Program, shares: Mapping[str, Words], masks: Mapping[str, Words]) -> dict[str, list[Words]]:
        shifted = shares["relu"].copy()
        shifted.reshape(-1)[1] += np.uint64(2**17)
        return honest(program, {**shares, "relu": shifted}, masks)

    patched.setattr(parties, "committed_numbers", changed)


def upload_another_mask(patched: pytest.MonkeyPatch) -> None:
    honest = MaskedTensors.shifted

    def changed(self: MaskedTensors, upload: Upload) -> Words:
        words = honest(self, upload).copy()
        if upload.tensor == INPUT:
            words.reshape(-1)[1] += ONE
        return words

    patched.setattr(MaskedTensors, "shifted", changed)


def ask_out_of_range(patched: pytest.MonkeyPatch) -> None:
    honest = InferenceClient.infer
    patched.setattr(inference, "require_images", lambda *_: None)

    def changed(self: InferenceClient, bundle: Any, pixels: Any) -> Any:
        strange = pixels.astype(np.uint64)
        strange.reshape(-1)[2] = 2**19
        return honest(self, bundle, strange)

    patched.setattr(InferenceClient, "infer", changed)


def return_another_colour(patched: pytest.MonkeyPatch, *, forge_label: bool = False) -> None:
    honest = garbling.evaluate

    def changed(*arguments: Any, **options: Any) -> Any:
        evaluated = honest(*arguments, **options)
        evaluated.colours[0, 0] ^= ONE
        if forge_label:
            assert evaluated.halves is not None
            evaluated.halves[0, 0] = np.frombuffer(os.urandom(8), np.uint64)[0]
        return evaluated

    patched.setattr(garbling, "evaluate", changed)


def forge_a_label(patched: pytest.MonkeyPatch) -> None:
    return_another_colour(patched, forge_label=True)


OFFLINE = (shift_a_share, upload_another_mask)
ONLINE = (ask_out_of_range, return_another_colour, forge_a_label)
