"""A finished run whose weights are kept in eight bits per kernel: a quarter of their size, evaluated again as kept."""

from __future__ import annotations

import json
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

from sphynx.data.images import Data
from sphynx.network.trained import load_model, load_trained, save_model
from sphynx.run.settings import AUTO
from sphynx.run.work import pick_device
from sphynx.space.artifact import MODEL
from sphynx.train.evaluate import Answers, evaluate
from sphynx.train.results import RESULT, TrainResult
from sphynx.train.scores import score
from sphynx.train.views import weights_digest

SMALL_FILES = {".json", ".jsonl"}


def compact_bytes(run: Path) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        save_model(Path(folder), load_model(run), compact=True)
        return (Path(folder) / MODEL).read_bytes()


def keep_compact(run: Path, out: Path, data: Data) -> TrainResult:
    """Another run folder of the same training, whose result is that of the weights as they are kept."""
    out.mkdir(parents=True, exist_ok=True)
    for file in run.iterdir():
        if file.suffix in SMALL_FILES and file.name != RESULT:
            shutil.copyfile(file, out / file.name)
    save_model(out, load_model(run), compact=True)
    trained, answers = load_trained(out), Answers()
    weights = weights_digest(trained.module)
    network = trained.module.to(pick_device(AUTO))
    test = evaluate(network, data.test, trained.mean, trained.std, answers.add)
    scores = score(*answers.arrays, data.test.class_names, resamples=0)
    result = replace(
        TrainResult.from_json(json.loads((run / RESULT).read_text()), where=str(run / RESULT)),
        accuracy=test.accuracy,
        top5=test.top5,
        test_loss=test.loss,
        bf16_accuracy=None,
        balanced_accuracy=scores.balanced_accuracy.value,
        mcc=scores.mcc.value,
        held_out_accuracy=None,
        held_out_mcc=None,
        weights=weights,
    )
    (out / RESULT).write_text(json.dumps(result.to_json(), indent=2) + "\n")  # last: it says that all is there
    return result
