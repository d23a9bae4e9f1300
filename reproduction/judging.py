"""Two networks, each trained from several seeds, on the same test images: means, spreads, is one not inferior.

answers.npz   what is compared: for each network its logits [seed, image, class] in single precision, the seeds, the
              labels and the group of each image; a few kilobytes a seed, so that calls can be judged together
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import sphynx
from sphynx.data.images import Data
from sphynx.errors import InputError
from sphynx.train.evaluate import Answers
from sphynx.train.scores import score

ANSWERS = "answers.npz"
MARGIN = 0.01  # of accuracy, that a network may lack to be called not inferior
RESAMPLES = 10_000
_SAME = ("labels", "groups")  # in all files that are judged together

Kept = Mapping[str, NDArray[Any]]


def keep_answers(file: Path, runs: Mapping[str, Sequence[Path]], data: Data, seeds: Sequence[int]) -> None:
    """Evaluate all runs on the test images. `runs`: of either network, one for each of the seeds."""
    kept: dict[str, NDArray[Any]] = {"seeds": np.array(seeds)}
    for name, of_name in runs.items():
        each = []
        for run in of_name:
            answers = Answers()
            sphynx.evaluate_network(run, data, seen=answers.add)
            logits, kept["labels"] = answers.arrays
            each.append(logits.astype(np.float32))
        kept[name] = np.stack(each)
    groups = data.test.groups
    kept["groups"] = np.arange(len(data.test)) if groups is None else groups.numpy()
    save(file, kept)


def save(file: Path, kept: Kept) -> None:
    """Write all or nothing: the file says that its networks need not be evaluated again."""
    part = file.with_name(file.name + ".new")
    with part.open("wb") as opened:
        np.savez_compressed(opened, allow_pickle=False, **kept)
    part.replace(file)


def read_answers(files: Sequence[Path]) -> Kept:
    """Join what several calls kept. They have to be of other seeds and the same images."""
    parts = []
    for file in files:
        with np.load(file) as opened:
            parts.append({name: opened[name] for name in opened.files})
    for part, file in zip(parts, files, strict=True):
        if any(not np.array_equal(part[name], parts[0][name]) for name in _SAME):
            raise InputError("its images are others", where=str(file), remedy="Judge runs on one data set together.")
    joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0] if name not in _SAME}
    if len(np.unique(joined["seeds"])) < len(joined["seeds"]):
        raise InputError("a seed is there twice", where=str(files[-1]), remedy="Give each call's answers once.")
    return {**joined, **{name: parts[0][name] for name in _SAME}}


def join_images(files: Sequence[Path]) -> Kept:
    """Join what was kept of the same seeds on images of other groups: each fold's, in cross-validation."""
    parts = []
    for file in files:
        with np.load(file) as opened:
            parts.append({name: opened[name] for name in opened.files})
    if any(not np.array_equal(part["seeds"], parts[0]["seeds"]) for part in parts):
        raise InputError(
            "the files are of different seeds", where=str(files[-1]), remedy="Judge folds of the same seeds."
        )
    groups = [set(part["groups"].tolist()) for part in parts]
    if len(set[int]().union(*groups)) < sum(map(len, groups)):
        raise InputError(
            "a group is in two of the files", where=str(files[-1]), remedy="Give each fold's answers once."
        )
    axis = {"labels": 0, "groups": 0}
    joined = {
        name: np.concatenate([part[name] for part in parts], axis.get(name, 1)) for name in parts[0] if name != "seeds"
    }
    return {**joined, "seeds": parts[0]["seeds"]}


def judge(kept: Kept, ours: str, theirs: str) -> dict[str, Any]:
    """Compare two networks by the share of right answers, with the middle 95 % of a bootstrap over groups."""
    labels = kept["labels"]
    right = {name: (kept[name].argmax(2) == labels).mean(0) for name in (ours, theirs)}
    difference = right[ours] - right[theirs]
    low, high = bootstrap(difference, kept["groups"])
    return {
        "seeds": kept["seeds"].tolist(),
        "difference": float(difference.mean()),
        "low": low,
        "high": high,
        "not_inferior": low > -MARGIN,
        ours: _spread(kept[ours], labels),
        theirs: _spread(kept[theirs], labels),
    }


def bootstrap(difference: NDArray[np.float64], groups: NDArray[np.int64]) -> tuple[float, float]:
    """The middle 95 % of the mean over images when whole groups are drawn again."""
    _, of_image = np.unique(groups, return_inverse=True)
    sums, sizes = np.bincount(of_image, difference), np.bincount(of_image)
    drawn = np.random.default_rng(0).integers(0, len(sizes), (RESAMPLES, len(sizes)))
    low, high = np.quantile(sums[drawn].sum(1) / sizes[drawn].sum(1), [0.025, 0.975]).tolist()
    return low, high


def _spread(logits: NDArray[np.float32], labels: NDArray[np.int64]) -> dict[str, Any]:
    names = [str(number) for number in range(logits.shape[2])]
    scores = [score(of_seed.astype(np.float64), labels, names, resamples=0) for of_seed in logits]
    return {
        key: {
            "mean": statistics.fmean(values),
            "std": statistics.stdev(values) if len(values) > 1 else None,
            "of_seeds": values,
        }
        for key in ("accuracy", "balanced_accuracy", "mcc")
        for values in [[float(getattr(one, key).value) for one in scores]]
    }
