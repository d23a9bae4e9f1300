"""`sphynx eval`: the accuracy of a trained run on data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sphynx.cli import options as opt
from sphynx.cli.output import count, print_json, print_table
from sphynx.cli.output_files import picture_folder
from sphynx.units import class_text, percent

if TYPE_CHECKING:
    from sphynx.train.confusion import ClassScore
    from sphynx.train.scores import Estimate, Scores

TOP = 5  # classes in which the right one may be
WORST = 10  # classes that the table shows


def evaluate(
    run: opt.RunArgument,
    data: opt.KnownData = "",
    split: opt.SplitOption = "test",
    device: opt.DeviceOption = "auto",
    image_size: opt.DataSize = None,
    stream: opt.KnownStream = None,
    skip_bad: opt.SkipBad = False,
    per_class: Annotated[
        bool,
        typer.Option(
            "--per-class",
            help=f"The {WORST} worst classes and what they are confused with; of few classes sensitivity, specificity "
            "and AUC; --json has all.",
        ),
    ] = False,
    svg: Annotated[
        Path | None,
        typer.Option("--svg", help="Draw confusions, ROC and reliability into this folder.", callback=picture_folder),
    ] = None,
    as_json: opt.Json = False,
) -> None:
    """Evaluate a trained network in fp32, with the normalisation it was trained with.

    Brackets hold 95 % intervals from a bootstrap, over groups where the data have some (--groups of `train`).

    Examples:

      sphynx eval runs/digits

      sphynx eval runs/digits --per-class --svg pictures

      sphynx eval runs/paper/seed-0 --data cifar100 --json

      sphynx eval sphynx-cifar100-25k --data cifar100
    """
    import torch

    from sphynx.api.networks import evaluate_network, load_network
    from sphynx.data.class_order import ordered_as
    from sphynx.report.confusion_figure import FEW_CLASSES, confusion_chart
    from sphynx.report.score_figures import score_charts
    from sphynx.run.environment import device_name
    from sphynx.run.work import pick_device
    from sphynx.train.confusion import Confusion
    from sphynx.train.evaluate import Answers
    from sphynx.train.scores import score

    network, chosen = load_network(run), pick_device(device)
    voice = opt.voice_for(False, False, as_json)
    opened = opt.open_known_images(data, image_size, stream, skip_bad, network.source, voice, where=run)
    names = ordered_as(opened.train, network.class_names, where=opened.name).class_names
    answers, confusion = Answers(), Confusion(names)
    result = evaluate_network(network, opened, split=split, device=chosen, seen=answers.add)
    logits, labels = answers.arrays
    confusion.add(torch.from_numpy(logits.argmax(1)), torch.from_numpy(labels))
    classes = confusion.classes()
    groups = (opened.test if split == "test" else opened.train).groups
    scores = score(logits, labels, names, None if groups is None else groups.numpy())
    if svg is not None:
        charts = [confusion_chart(confusion.counts, names)] if len(names) <= FEW_CLASSES else []
        for chart in (*charts, *score_charts(scores, logits, labels)):
            (svg / f"{chart.id}.svg").write_text(chart.alone().to_svg())
    if as_json:
        where = {"run": run, "data": opened.name, "split": split, "device": device_name(chosen)}
        listed = {"classes": [one.to_json() for one in classes]} if per_class else {}
        print_json({**where, **result.to_json(), **listed, "scores": scores.to_json()})
        return
    shown = {
        ">accuracy": f"{percent(result.accuracy)}{_interval(scores.accuracy)}",
        ">balanced": f"{percent(scores.balanced_accuracy.value)}{_interval(scores.balanced_accuracy)}",
        ">MCC": f"{scores.mcc.value:.3f} ({scores.mcc.low:.3f} to {scores.mcc.high:.3f})",
        ">top 5": percent(result.top5),
        ">calibration error": f"{scores.calibration_error.value:.3f}",
        ">loss": f"{result.loss:.4f}",
    }
    if len(opened.train.class_names) <= TOP:
        del shown[">top 5"]  # always 100 %
    shown[">images"] = count(result.images)
    print_table(f"{run} on {opened.name}, {split} images", list(shown), [list(shown.values())])
    if per_class:
        _print_worst(classes)
        if scores.classes:
            _print_scores(scores)


def _interval(share: Estimate) -> str:
    return f" ({100 * share.low:.1f} to {100 * share.high:.1f})"


def _print_scores(scores: Scores) -> None:
    print_table(
        "Each class against all others",
        ["class", ">sensitivity", ">specificity", ">AUC"],
        (
            [
                class_text(one.name),
                *(f"{percent(share.value, 1)}{_interval(share)}" for share in (one.sensitivity, one.specificity)),
                f"{one.auc.value:.3f} ({one.auc.low:.3f} to {one.auc.high:.3f})",
            ]
            for one in scores.classes
        ),
    )
    print_table(
        "When answers below a probability count as not sure",
        [">probability", ">answered", ">accuracy of these"],
        ([f"{one.threshold:.2f}", percent(one.answered, 1), percent(one.accuracy, 1)] for one in scores.sure),
    )


def _print_worst(classes: list[ClassScore]) -> None:
    shown = [one for one in classes if one.accuracy is not None][:WORST]
    print_table(
        "Classes, worst first",
        ["class", ">accuracy", ">images", "most often confused with"],
        (
            [
                class_text(one.name),
                percent(one.accuracy),
                count(one.images),
                f"{class_text(one.taken_for)} ({one.times})" if one.times else "-",
            ]
            for one in shown
        ),
        note=f"{len(shown)} of {len(classes)} classes; --json has all" if len(shown) < len(classes) else "",
    )
