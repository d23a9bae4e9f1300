"""Prints docs/results/stream.md: every kept training of a stream network, from results/stream.

python docs/make_stream_results.py > docs/results/stream.md        (or: make docs)
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from math import sqrt
from pathlib import Path
from statistics import mean, stdev
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from docs.planned_streams import Kept, not_run

from sphynx.space.files import any_design_from_json
from sphynx.space.stream import StreamDesign
from sphynx.zoo.shipped import load_card

COMPARISON = "sphynx-allocation-comparison/1"
RESULTS = Path(__file__).parents[1] / "results" / "stream"
DESIGNED = RESULTS.parent / "design"
MEASURED = RESULTS.parent / "private" / "streams.json"

HEADER = """# Stream networks: every run

CIFAR-100 and Tiny-ImageNet, final epoch, one NVIDIA H200, bf16. `make docs` writes this page from `results/stream/`,
one file per run. What the networks are and how they are trained: [stream.md](../stream.md). "Held out" is the
accuracy on a tenth of the training images, averaged over the last three epochs: settings were chosen by it, and by no
test accuracy. Each network was trained for as many epochs as fitted, not until it stopped gaining. "Views" is how
many epochs of augmented images the teacher had answered; they repeat. Minutes are of runs that shared the GPU with
others, except for the teachers', those of `7x-250-seed3`, `5x-480-*` and Tiny-ImageNet, which had it to themselves (of
`5x-480-*` one started beside the last 45 epochs of another).

    sphynx show wide-resnet --channels 8 --depth 16 -o teacher.json
    sphynx train teacher.json --data cifar100 --recipe teacher --epochs 85 --set acceleration=compile --out runs/teacher
    sphynx show stream --stages "16:64:12 8:128:56x3 4:256:256x2,216" -o stream.json
    sphynx train stream.json --data cifar100 --recipe frontier --epochs 250 --seeds 3 --teacher runs/teacher \\
        --set optimizer=sgd --set view_epochs=120 --views runs/views.safetensors --set acceleration=compile \\
        --out runs/stream

The networks of five and six blocks learned from `stream-cifar100-102k`, which had learned from the wide ResNet:

    sphynx show stream --stages "16:64:24 8:128:72x2 4:256:316x2" -o shallow.json
    sphynx train shallow.json --data cifar100 --recipe frontier --epochs 480 --seeds 3 --teacher stream-cifar100-102k \\
        --set optimizer=sgd --set view_epochs=120 --views runs/views-102k.safetensors --set acceleration=compile \\
        --out runs/shallow

Tiny-ImageNet (100,000 images of 64x64, 200 classes; tested on the 10,000 of `val`, whose labels are public). Nothing
was chosen on it: sizes and recipe are CIFAR-100's, with a stage of 32x32 in front that rectifies nothing.

    sphynx show resnet18 --channels 96 --image-size 64 --classes 200 --stem small -o teacher.json
    sphynx train teacher.json --data tiny-imagenet --recipe teacher --epochs 52 --set trivial_augment=false \\
        --set acceleration=compile --out runs/teacher
    sphynx show stream --stages "32:48: 16:96:40x2 8:192:152x4 4:384:632x4" --image-size 64 --classes 200 -o stream.json
    sphynx train stream.json --data tiny-imagenet --recipe frontier --epochs 123 --teacher runs/teacher \\
        --set optimizer=sgd --set view_epochs=32 --views runs/views.safetensors --set acceleration=compile \\
        --out runs/stream
"""

DATA_SETS = {"cifar100": "CIFAR-100", "tiny-imagenet": "Tiny-ImageNet"}

FINAL = """## {data}, trained on all images

| network | ReLUs | parameters | teacher | epochs | views | seed | test, % | minutes | file |
|---|---|---|---|---|---|---|---|---|---|"""

CHOSEN = """## Settings compared on CIFAR-100, a tenth of the training images held out

All at about 25.5K ReLUs. A difference below one point is within what 5,000 images and one seed can tell. Teachers were
trained on all training images; rows of one teacher compare. Of those with five and six blocks, whose private inference
is faster, the best of five was to be taken unless six were better by a point.

| network | parameters | teacher | epochs | views | distillation | held out, % | file |
|---|---|---|---|---|---|---|---|"""

OPTIMIZERS = """## Muon beside SGD, a tenth of the training images held out

    python -m reproduction.frontier teachers muon --data cifar100 -o runs/frontier --given stream-cifar100-102k

Five blocks, {stages}, {epochs} epochs, all from views of `stream-cifar100-102k`; accuracy of the
finished network on 5,000 held-out images. The rule was written before: the highest mean is taken, and differences below
1.4 points are not shown, which counted on 0.5 points between seeds. So **Muon is better than SGD, at each of the three
rates**, by 2.3 to 3.4 points; that 0.02 is the best rate is not shown. (Found between seeds were
{deviation:.2f} points, pooled, {degrees} degrees; by those {shown:.2f} would show.) Nothing was chosen by the test
images. Minutes in the files are of runs beside many others and say nothing about Muon's price.

What was to follow, three networks by Muon at 0.02 on all images, taught by the mean of `stream-cifar100-102k` and the
two wide ResNets of 60 epochs below, was cut off after 154 of 288 epochs, when the GPU's time was over: their accuracy
is not known.

| kernels learn by | held out, each seed, % | mean, % | test, mean, % | files |
|---|---|---|---|---|"""
T_FOUR_DEGREES = 2.776  # two-sided, 5 %

ALLOCATIONS = """## Where the ReLUs go: searched, uniform and random allocations

`benchmarks/allocation.py` on one NVIDIA H200: all allocations of one start's ReLUs, each trained alike with kept views
of a teacher on nine tenths of the training images. A search learns its weights from the same views and its allocation
from the held-out tenth, so held-out accuracy (mean of the last three epochs) flatters it; nothing was chosen by the
test images. All learned by SGD (now `--set '{"optimizer": "sgd"}'`). "Given" is the start, made by hand. Minutes of a
search are those of its epochs, beside other processes."""

ALLOCATION_ROWS = """| allocation | stages | ReLUs | search, minutes | held out, % | test, % |
|---|---|---|---|---|---|"""

PRIVATE = """## Private inference, beside the cells

One picture, two processes over mutual TLS 1.3 on one machine, `{command}`; medians of {repeats}, every result equal to
the integer oracle's. {machine}; {wire}. "In the clear" is fp32 on the same cores, batch 1,
and x is to the faster of torch and ONNX Runtime. Accuracy is that of the packed model on all test images.

| network | accuracy, % | ReLUs by | torch, ms | ONNX Runtime, ms | online, ms | x clear | offline, ms \
| online MB | offline MB | rounds | CPU online, ms | memory of server, MB |
|---|---|---|---|---|---|---|---|---|---|---|---|---|"""

TEACHERS = """## Teachers

| data | network | parameters | epochs | test, % | minutes | file |
|---|---|---|---|---|---|---|"""


def page() -> str:
    found = {path.stem: json.loads(path.read_text()) for path in sorted(RESULTS.glob("*.json"))}
    compared = {name: one for name, one in found.items() if one.get("format") == COMPARISON}
    runs = {name: one for name, one in found.items() if name not in compared}
    designs = {name: any_design_from_json(run["config"]["design"], name) for name, run in runs.items()}
    streams = {name: design for name, design in designs.items() if isinstance(design, StreamDesign)}
    final = [name for name in streams if not runs[name]["config"]["recipe"]["held_out"]]
    final.sort(key=lambda name: (streams[name].relus, runs[name]["result"]["epochs"], name))
    optimizers = [name for name in streams if name.startswith(("muon-", "sgd-"))]
    tried = [name for name in streams if name not in final + optimizers]
    tried.sort(key=lambda name: -_held_out(runs[name]))
    parts = [HEADER]
    for data, shown in DATA_SETS.items():
        own = [name for name in final if runs[name]["result"]["data"] == data]
        parts += [FINAL.format(data=shown), *(_final_row(name, runs[name], streams[name]) for name in own), ""]
        if means := _means(own, runs, streams):
            parts += [*means, ""]
    parts += [CHOSEN, *(_tried_row(name, runs[name], streams[name]) for name in tried)]
    parts += ["", *_optimizers([runs[name] for name in optimizers], streams[optimizers[0]])]
    if compared:
        parts += ["", ALLOCATIONS, *(line for name, one in compared.items() for line in ["", *_compared(name, one)])]
    pipelines = [json.loads(path.read_text()) for path in sorted(DESIGNED.glob("*.json"))]
    kept = Kept([(streams[name], runs[name]) for name in streams], [*compared.values()], pipelines)
    parts += ["", *_private(json.loads(MEASURED.read_text())), "", *not_run(kept), TEACHERS]
    for name in runs:
        if name not in streams:
            result = runs[name]["result"]
            parts.append(
                f"| {DATA_SETS[result['data']]} "
                f"| {_kind(runs[name]['config']['design'])} "
                f"| {result['parameters'] / 1e6:.1f}M | {result['epochs']} | {100 * result['accuracy']:.2f} "
                f"| {result['minutes']:.1f} | `{name}` |"
            )
    return "\n".join(parts)


def _final_row(name: str, run: dict[str, Any], design: StreamDesign) -> str:
    result, views = run["result"], run["config"]["recipe"]["view_epochs"]
    return (
        f"| {design} | {design.relus:,} | {result['parameters'] / 1e6:.1f}M | {_teacher(run)} | {result['epochs']} "
        f"| {views} | {result['seed']} | {100 * result['accuracy']:.2f} | {result['minutes']:.1f} | `{name}` |"
    )


def _means(names: list[str], runs: dict[str, Any], designs: dict[str, StreamDesign]) -> list[str]:
    """Means over seeds with equal settings."""
    alike: dict[tuple[str, int, int], list[float]] = defaultdict(list)
    for name in names:
        recipe = runs[name]["config"]["recipe"]
        alike[str(designs[name]), recipe["epochs"], recipe["view_epochs"]].append(
            100 * runs[name]["result"]["accuracy"]
        )
    return [
        f"- {stages} for {epochs} epochs, {views} of views: {mean(found):.2f} +- {stdev(found):.2f} over "
        f"{len(found)} seeds"
        for (stages, epochs, views), found in alike.items()
        if len(found) > 1
    ]


def _optimizers(runs: list[dict[str, Any]], design: StreamDesign) -> list[str]:
    """Settings of the optimizer, best mean first."""
    alike: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for run in runs:
        recipe = run["config"]["recipe"]
        muon = f"Muon, {recipe['kernel_learning_rate']}"
        alike[muon if recipe["optimizer"] == "muon" else f"SGD, {recipe['learning_rate']}"].append(run)
    held_out = {label: [100 * run["result"]["held_out_accuracy"] for run in own] for label, own in alike.items()}
    degrees = sum(len(own) - 1 for own in held_out.values())
    deviation = sqrt(sum(stdev(own) ** 2 * (len(own) - 1) for own in held_out.values()) / degrees)
    epochs = runs[0]["result"]["epochs"]
    heading = OPTIMIZERS.format(
        stages=design, epochs=epochs, deviation=deviation, degrees=degrees, shown=T_FOUR_DEGREES * deviation
    )
    rows = [
        f"| {label} | {', '.join(f'{value:.2f}' for value in own)} | {mean(own):.2f} "
        f"| {100 * mean(run['result']['accuracy'] for run in alike[label]):.2f} "
        f"| {', '.join('`' + run['name'] + '`' for run in alike[label])} |"
        for label, own in sorted(held_out.items(), key=lambda row: -mean(row[1]))
    ]
    return [heading, *rows]


def _compared(name: str, one: dict[str, Any]) -> list[str]:
    """One comparison: its table, best mean of held-out accuracy first."""
    minutes = {search["method"]: search["minutes"] for search in one["searches"]}
    chosen = {search["method"]: search["best"] for search in one["searches"]}
    alike: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for training in one["trainings"]:
        alike[training["name"]].append(training)
    ranked = sorted(alike.items(), key=lambda row: -mean(run["held_out_accuracy"] for run in row[1]))
    rows = []
    for label, runs in ranked:
        took = f"{minutes[label]:.1f}" if label in minutes else ""
        scores = f"{_seeds(runs, 'held_out_accuracy')} | {_seeds(runs, 'test_accuracy')}"
        rows.append(f"| {label} | {runs[0]['stages']} | {runs[0]['relus']:,} | {took} | {scores} |")
    same = [
        f"`{method}` took {minutes[method]:.1f} minutes and chose the allocation {best}."
        for method, best in chosen.items()
        if method not in alike
    ]
    command = " ".join(one["environment"]["command"]).removeprefix("python ")  # earlier ones begin with the file
    own = [
        f"The network of the gates, after its search, has a held-out accuracy of {_range(search)}."
        if search["method"] == "gates"
        else f"The networks of the {search['method']} search, after it, have held-out accuracies of {_range(search)}."
        for search in one["searches"]
    ]
    start = f"`{name}`: start {one['start']}, {one['borders']} borders, {one['recipe']['epochs']} epochs each, "
    seeds = f"mean (and half the range) over up to {max(map(len, alike.values()))} seeds; "
    took_all = f"{one['minutes']:.1f} minutes in all, {one['at_once']} processes at once."
    if prices := one.get("prices"):
        counted = "online" if prices["counted"] == "online" else "offline and online"
        took_all += f" Allocations cost as many seconds {counted} ({prices['link']}, {prices['backend']}) as the start."
    return [start + seeds + took_all, "", f"    python {command}", "", ALLOCATION_ROWS, *rows, "", *same, *own]


def _range(search: dict[str, Any]) -> str:
    found = sorted({f"{100 * one['held_out_accuracy']:.1f}" for one in search["allocations"]}, key=float)
    return f"{found[0]} to {found[-1]} %" if len(found) > 1 else f"{found[0]} %"


def _private(measured: dict[str, Any]) -> list[str]:
    rows, machine = measured["rows"], measured["machine"]
    command = " ".join(measured["source"]["command"])
    described = f"{machine['architecture']}, {machine['cores']} cores, {', '.join(machine['cpu_features'])}"
    load = f"load average {machine['load_average'][0]:.1f} at the start"
    wire = f"wire {measured['source']['wire']}"
    heading = PRIVATE.format(command=command, repeats=rows[0]["repeats"], machine=f"{described}, {load}", wire=wire)
    return [heading, *(_private_row(row) for row in rows)]


def _private_row(row: dict[str, Any]) -> str:
    times = [1e3 * row[key] for key in ("torch_s", "onnxruntime_s", "online_s")]
    cells = (
        row["model"],
        f"{100 * load_card(row['model'])['evaluation']['accuracy']:.2f}",
        row["backend"],
        *(f"{ms:.1f}" for ms in times),
        f"{row['online_ratio']:.1f}",
        f"{1e3 * row['offline_s']:.0f}",
        f"{row['online_bytes'] / 1e6:.2f}",
        f"{row['offline_bytes'] / 1e6:.1f}",
        row["rounds"],
        f"{1e3 * row['online_cpu_s']:.0f}",
        f"{row['peak_memory_bytes']['server'] / 1e6:,.0f}",
    )
    return "| " + " | ".join(map(str, cells)) + " |"


def _seeds(runs: list[dict[str, Any]], what: str) -> str:
    values = [100 * run[what] for run in runs]
    spread = f" +- {(max(values) - min(values)) / 2:.2f}" if len(values) > 1 else ""
    return f"{mean(values):.2f}{spread}"


def _tried_row(name: str, run: dict[str, Any], design: StreamDesign) -> str:
    recipe = run["config"]["recipe"]
    taught = f"{recipe['distillation']}, T = {recipe['distillation_temperature']:g}"
    return (
        f"| {design} | {run['result']['parameters'] / 1e6:.1f}M | {_teacher(run)} | {run['result']['epochs']} "
        f"| {recipe['view_epochs']} | {taught} | {100 * _held_out(run):.2f} | `{name}` |"
    )


def _teacher(run: dict[str, Any]) -> str:
    design = any_design_from_json(run["config"]["teacher"])
    if isinstance(design, StreamDesign):
        return f"stream, {design.relus / 1e3:.1f}K"
    return _kind(run["config"]["teacher"])


def _kind(design: dict[str, Any]) -> str:
    return str(design["format"]).partition("/")[0].removeprefix("sphynx-")


def _held_out(run: dict[str, Any]) -> float:
    return float(mean(row["held_out_accuracy"] for row in run["metrics"][-3:]))


if __name__ == "__main__":
    print(page())
