"""The network that a report is about, evaluated and asked: its classes, private answers, and what an answer costs.

Files say some of it (`report.summary`); the rest takes the data, and for answers and costs the compiled network, which
is looked for beside the run: runs/NAME and compiled/NAME. What cannot be found out is said on the page, with a remedy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from sphynx.api.compiled import Compiled
from sphynx.api.networks import evaluate_network, load_network
from sphynx.data.class_order import ordered_as
from sphynx.data.images import Data
from sphynx.data.open import open_known
from sphynx.data.streamed import StreamedData
from sphynx.errors import InputError
from sphynx.network.trained import TrainedNetwork
from sphynx.program.backends import BACKENDS, Backend
from sphynx.program.interpret import interpret
from sphynx.report.page import known_summary
from sphynx.report.score_figures import score_charts
from sphynx.report.sources import Sources
from sphynx.report.summary import Asked, Cost, Judged, NetworkSummary, measured_cost, rows_of
from sphynx.report.tables import picture_url
from sphynx.run.update import Listener, Update, ignore
from sphynx.space.artifact import CARD, MODEL, PROGRAM, kind_of
from sphynx.train.confusion import Confusion
from sphynx.train.evaluate import Answers
from sphynx.train.scores import score
from sphynx.zoo.shipped import model_path

STAGE = "report"
LINK = "lan"  # that a cost is estimated for where none was measured
INTEGER_IMAGES, INTEGER_BATCH = 1000, 50  # that a program without a float network is judged by


def summarise(
    paths: Sequence[Path],
    sources: Sources,
    *,
    compiled: Path | None = None,
    data: str = "",
    image_size: int | None = None,
    stream: bool | None = None,
    skip_bad: bool = False,
    ask: int = 6,
    progress: Listener = ignore,
) -> NetworkSummary | None:
    """Summarise the network at the first path; None for a page about several networks or about benchmarks alone."""
    known, first = known_summary(sources), _existing(paths[0])
    program = _find_compiled(first, compiled, sources, known, progress)
    if known is None and kind_of(first) == "compiled" and program is not None:
        known = _of_program(program, sources)
    if known is None:
        return None
    trained = _load_trained(first)
    source = trained.source if trained is not None else program.source if program is not None else None
    opened: Data | StreamedData | None = None
    why = ""
    try:
        opened = open_known(data, image_size, stream, source, where="report", skip_bad=skip_bad)
        for line in opened.left_out.lines() if skip_bad else []:
            progress(Update(STAGE, note=line))
    except InputError as error:
        why = f"{error.what}. {error.remedy}"
    if opened is None:
        known = known.with_missing(f"Errors by class and sample answers are not shown: {why}")
    elif trained is not None or program is not None:
        known = _with_classes(known, trained, program, opened, progress)
    if program is None:
        command = f"sphynx compile {first} -o compiled/{first.resolve().name}"
        return known.with_missing(
            f"Private answers and their cost are not shown because the network is not compiled: {command}"
        )
    known = _with_cost(known, program, sources, progress)
    return known if opened is None or not ask else _with_answers(known, program, opened, ask, progress)


def _existing(given: Path) -> Path:
    return given if given.exists() else model_path(given)


def _load_trained(path: Path) -> TrainedNetwork | None:
    seeds = sorted(path.glob(f"seed-*/{MODEL}"))
    if not (path / MODEL).is_file() and not seeds:
        return None
    return load_network(path if (path / MODEL).is_file() else seeds[0].parent)


def _find_compiled(
    first: Path, given: Path | None, sources: Sources, known: NetworkSummary | None, progress: Listener
) -> Compiled | None:
    """The one that is given; a model's own; else one that lies beside the run, is of this network and not older."""
    if given is not None or sources.compiled:
        return Compiled.load(given or sources.compiled[0], progress)
    if (first / CARD).is_file():
        return Compiled.load(first.name, progress)
    name = first.resolve().name
    folders = [first / "compiled", *(root / "compiled" / name for root in first.resolve().parents[:2])]
    made = max((file.stat().st_mtime for file in first.rglob(MODEL)), default=0.0)
    for folder in folders:
        if (folder / PROGRAM).is_file() and (folder / PROGRAM).stat().st_mtime >= made:
            found = Compiled.load(folder, progress)
            if known is None or found.relus == known.relus:
                return found
    return None


def _of_program(program: Compiled, sources: Sources) -> NetworkSummary:
    channels, height, width = program.image
    data = f"{program.source.spec}: " if program.source is not None else ""
    what = f"{data}{channels}x{height}x{width} images into {len(program.class_names) or 'unnamed'} classes, integers"
    name = program.folder.resolve().name if program.folder is not None else program.name
    cost = measured_cost(rows_of(name, program.relus, sources))
    return NetworkSummary(name, what, program.relus, program.comparisons, cost=cost)


def _with_classes(
    known: NetworkSummary,
    trained: TrainedNetwork | None,
    program: Compiled | None,
    data: Data | StreamedData,
    progress: Listener,
) -> NetworkSummary:
    ours = trained.class_names if trained is not None else program.class_names if program is not None else ()
    names = ordered_as(data.train, ours, where=data.name).class_names
    confusion, answers = Confusion(names), Answers()
    groups = None
    if trained is not None:
        progress(Update(STAGE, note=f"evaluating on {len(data.test):,} test images"))
        evaluate_network(trained, data, seen=answers.add)
        groups = data.test.groups
    elif program is not None:
        images = ordered_as(data.test.sample(INTEGER_IMAGES), ours, where=data.name)
        progress(Update(STAGE, note=f"evaluating the integers on {len(images):,} test images"))
        for start in range(0, len(images), INTEGER_BATCH):
            batch = slice(start, start + INTEGER_BATCH)
            answers.add(torch.from_numpy(program.infer(images.images[batch].numpy())), images.labels[batch])
        groups = images.groups
    logits, labels = answers.arrays
    confusion.add(torch.from_numpy(logits.argmax(1)), torch.from_numpy(labels))
    counts = confusion.counts
    scores = score(logits, labels, names, None if groups is None else groups.numpy())
    if known.judged is None:
        right, total = sum(row[label] for label, row in enumerate(counts)), sum(map(sum, counts))
        known = replace(known, judged=Judged(right / total, total, "the integer program"))
    return replace(
        known,
        class_names=names,
        classes=tuple(confusion.classes()),
        confusion=counts,
        scores=scores,
        score_charts=score_charts(scores, logits, labels) if scores.classes else (),
    )


def _with_cost(known: NetworkSummary, program: Compiled, sources: Sources, progress: Listener) -> NetworkSummary:
    name = program.folder.resolve().name if program.folder is not None else program.name
    cost = known.cost or measured_cost(rows_of(name, program.relus, sources))
    if cost is None:
        progress(Update(STAGE, note="estimating the cost of a private answer"))
        found = program.estimate(LINK)
        total = found.total
        cost = Cost(
            found.backend,
            "LAN",
            total.online_seconds,
            total.offline_seconds,
            total.online_bytes,
            total.offline_bytes,
            measured=False,
        )
    return replace(known, cost=cost)


def _with_answers(
    known: NetworkSummary, program: Compiled, data: Data | StreamedData, ask: int, progress: Listener
) -> NetworkSummary:
    images = data.test.sample(ask)
    pixels = images.images.numpy()
    backend: Backend = next((name for name in BACKENDS if known.cost is not None and name == known.cost.backend), "gmw")
    progress(Update(STAGE, note=f"asking privately about {len(images)} test images"))
    expected = interpret(program.program, program.weights, pixels)
    answers = program.infer_privately(pixels, backend=backend)
    asked = tuple(
        Asked(
            picture_url(picture),
            data.train.class_names[label],
            answer.label,
            answer.probability,
            answer.integer_logits.tolist() == logits.tolist(),
        )
        for picture, label, answer, logits in zip(pixels, images.labels.tolist(), answers, expected, strict=True)
    )
    return replace(known, asked=asked)
