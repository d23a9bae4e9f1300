"""Judge kept answers of all folds again, in the ways that docs/diagnosis.md tells of.

Only the first was settled before the run; the two others say how far its answer can be due to the teachers' being alone
or to the choice of the layout.

    all patients                       by the rule that was written before the run, as in experiment.json
    beside the mean of the teachers    its logits are the mean of all seeds'
    patients without part in a choice  those alone that candidates were not compared on

    python -m reproduction.fold_answers xrays-128 results/diagnosis/fourth-answers.npz
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import sphynx
from reproduction import judging
from reproduction.diagnosis import CHOICE, FINAL_TEACHER, WINNER
from sphynx.data.images import Data
from sphynx.errors import InputError
from sphynx.train.loop import HELD_OUT_SEED

ALL, MEAN, OTHERS = "all patients", "beside the mean of the teachers", "patients without part in a choice"


def judge_again(data: Data, kept: judging.Kept) -> dict[str, dict[str, Any]]:
    """Return the judgement of each way."""
    mean = {**kept, FINAL_TEACHER: kept[FINAL_TEACHER].mean(0, keepdims=True)}
    ways = {ALL: kept, MEAN: mean, OTHERS: _without(kept, patients_of_choice(data))}
    return {name: judging.judge(of_way, WINNER, FINAL_TEACHER) for name, of_way in ways.items()}


def patients_of_choice(data: Data) -> NDArray[np.int64]:
    """Return the patients on whom candidates were compared."""
    _, held_out = data.train.split(CHOICE.held_out, HELD_OUT_SEED)
    if held_out.groups is None:
        raise InputError("its images have no patients", where=data.name, remedy="Pack them with `--groups`.")
    patients: NDArray[np.int64] = held_out.groups.unique().numpy()
    return patients


def _without(kept: judging.Kept, patients: NDArray[np.int64]) -> Mapping[str, NDArray[Any]]:
    left = ~np.isin(kept["groups"], patients)
    one_each = {name: kept[name][left] for name in ("labels", "groups")}
    return {**one_each, "seeds": kept["seeds"], **{name: kept[name][:, left] for name in (WINNER, FINAL_TEACHER)}}


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m reproduction.fold_answers", description=__doc__.splitlines()[0])
    parser.add_argument("data", help="packed X-rays, or a folder with `--groups`")
    parser.add_argument("answers", type=Path, help="answers.npz of `reproduction.patient_folds`")
    parser.add_argument("--groups", help="the rule that tells patients, for a folder")
    parser.add_argument("--image-size", type=int)
    options = parser.parse_args(words)
    data = sphynx.open_data(options.data, image_size=options.image_size, groups=options.groups)
    kept = judging.read_answers([options.answers])
    if len(kept["labels"]) != len(data.train):
        raise InputError(
            f"it has answers about {len(kept['labels']):,} images, the data {len(data.train):,} to train on",
            where=str(options.answers),
            remedy="Give the data whose folds were judged.",
        )
    print("| compared | stream | ResNet18 | difference, points | 95 % |\n|---|---:|---:|---:|---:|")
    for name, judged in judge_again(data, kept).items():
        ours, theirs = (f"{100 * judged[network]['accuracy']['mean']:.2f}" for network in (WINNER, FINAL_TEACHER))
        difference, low, high = (f"{100 * judged[key]:+.2f}" for key in ("difference", "low", "high"))
        print(f"| {name} | {ours} | {theirs} | {difference} | {low} .. {high} |")


if __name__ == "__main__":
    main()
