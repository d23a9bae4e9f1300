"""One random network, compiled by each reader of networks and judged: what became of it.

A verdict is one of
  compiled      within what `compile` allows, which is held against the float network
  refused       by an error that names what is wrong: an operator, a size, a precision that no ring holds
  not exported  torch itself could not write the file
and of errors of the compiler
  wrong         far from what torch answers, and `compile` said nothing
  misread       read as a different network; `compile` says so, but must never have to
  crashed       anything else than an error of Sphynx
  inexact       a private answer differs from the integer program's
"""

from __future__ import annotations

import logging
import os
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import torch

import sphynx
from sphynx.compiler.frontend.readable import torch_judge
from sphynx.program.backends import BACKENDS
from sphynx.program.judgement import Judgement, Original, judge
from sphynx.program.outputs import joined
from tests.fuzz_networks.networks import Drawn, draw

Reader = Literal["torch", "onnx", "pt2"]
Verdict = Literal["compiled", "refused", "not exported", "wrong", "misread", "crashed", "inexact"]
READERS: tuple[Reader, ...] = ("torch", "onnx", "pt2")
ERRORS: tuple[Verdict, ...] = ("wrong", "misread", "crashed", "inexact")
NOTABLE = 0.02  # of the spread: what is off by more has a cause that is listed
PRIVATE_EVERY = 50  # networks, one is also asked privately


@dataclass(frozen=True)
class Outcome:
    seed: int
    reader: Reader
    verdict: Verdict
    why: str = ""  # the refusal, the error, or what causes a notable error
    error: float = 0.0
    read_error: float = 0.0
    same_class: float = 1.0
    asked_privately: bool = False
    seconds: float = 0.0


def attempt(seed: int, readers: tuple[Reader, ...] = READERS) -> list[Outcome]:
    logging.disable(logging.WARNING)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        drawn = draw(seed)
        return [_timed(drawn, reader, Path(folder)) for reader in readers]


def attempt_all(seeds: Sequence[int]) -> list[Outcome]:
    return [found for seed in seeds for found in attempt(seed)]


def begin_worker() -> None:
    """Make a process one of many. Its output goes nowhere: torch prints the graph of what it cannot export."""
    torch.set_num_threads(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _timed(drawn: Drawn, reader: Reader, folder: Path) -> Outcome:
    start = time.process_time()
    found = _read_by(drawn, reader, folder)
    return Outcome(**{**vars(found), "seconds": round(time.process_time() - start, 4)})


def _read_by(drawn: Drawn, reader: Reader, folder: Path) -> Outcome:
    try:
        given = _given(drawn, reader, folder)
    except Exception as error:  # whatever torch says
        return Outcome(drawn.seed, reader, "not exported", _line(error))
    try:
        compiled = sphynx.compile_network(
            given,
            calibrate=drawn.pictures(),
            mean=drawn.mean,
            std=drawn.std,
            approximate=True,
            knees=12,
            accept_error=float("inf"),
            warn=lambda _: None,
        )
    except sphynx.SphynxError as refusal:
        return Outcome(drawn.seed, reader, "refused", _line(refusal))
    except Exception as error:
        return Outcome(drawn.seed, reader, "crashed", f"{type(error).__name__}: {_line(error)}")
    said, judged = compiled.judged, _judged_by_torch(drawn, compiled)
    assert said is not None
    errors = judged.error, said.read_error or 0.0, 1.0 if judged.same_class is None else judged.same_class
    if said.fault is not None:  # by default it would be raised
        return Outcome(drawn.seed, reader, "misread" if said.is_misread else "refused", said.fault[0], *errors)
    if judged.is_far_off:
        return Outcome(drawn.seed, reader, "wrong", f"judged by {said.by}: {said.error:.1%}", *errors)
    why = _cause(compiled, judged) if judged.error > NOTABLE else ""
    asked = drawn.seed % PRIVATE_EVERY == 0
    if asked:
        try:
            differing = list(_inexact(drawn, compiled))
        except Exception as error:
            return Outcome(drawn.seed, reader, "crashed", f"privately: {type(error).__name__}: {_line(error)}", *errors)
        if differing:
            return Outcome(drawn.seed, reader, "inexact", ", ".join(differing), *errors, asked)
    return Outcome(drawn.seed, reader, "compiled", why, *errors, asked)


def _given(drawn: Drawn, reader: Reader, folder: Path) -> torch.nn.Module | Path:
    example = (torch.zeros(1, *drawn.image),)
    if reader == "torch":
        return drawn.module
    file = folder / f"network.{reader}"
    if reader == "onnx":
        torch.onnx.export(drawn.module, example, file, dynamo=False, input_names=["x"])
    else:
        torch.export.save(torch.export.export(drawn.module, example), file)
    return file


def _judged_by_torch(drawn: Drawn, compiled: sphynx.Compiled) -> Judgement:
    """Whatever `compile` was able to compare with: ONNX Runtime cannot run every file."""
    pictures = drawn.pictures().train
    images, labels = pictures.images.numpy(), pictures.labels.numpy()
    answers = torch_judge(drawn.module).answer(images, drawn.mean, drawn.std)
    return judge(Original(answers, labels, "", "torch"), joined(compiled.outputs(images)))


def _cause(compiled: sphynx.Compiled, judged: Judgement) -> str:
    """Name the cause of an error that is notable, and not the reading's."""
    if judged.hardly_varies:
        return f"logits hardly vary ({judged.variation:.2%} of their size)"
    if compiled.approximation_error > NOTABLE / 2:
        functions = sorted({found.function for found in compiled.approximations})
        return f"approximated {', '.join(functions)}"
    rounding = compiled.logit_error or 0.0
    if rounding > NOTABLE / 2:
        return f"rounding of {compiled.program.weight_bits} bits, the finest that a ring of 64 holds"
    if final := compiled.program.outputs[0].final:
        return f"{final} of large logits, which are themselves off by {rounding:.2%}"
    return "unknown"


def _inexact(drawn: Drawn, compiled: sphynx.Compiled) -> Iterator[str]:
    """The backends whose private answers are not the integer program's."""
    picture = drawn.pictures().test.images[:1].numpy()
    expected = compiled.infer(picture)[0]
    for backend in BACKENDS:
        (answer,) = compiled.infer_privately(picture, backend=backend)
        if not np.array_equal(answer.logits, expected):
            yield backend


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
