"""The words and tables of a report: networks, training and benchmark tables, model cards, headline tiles."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from sphynx.design.results import RankedCells
from sphynx.report.figures import Chart
from sphynx.report.naming import describe_network
from sphynx.report.provenance import made_elsewhere, provenance
from sphynx.report.skeleton import draw_skeleton
from sphynx.report.sources import DesignRun, Score, Sources, TrainingRun
from sphynx.report.summary import rows_of
from sphynx.report.tables import Table, Tile
from sphynx.space.cell_svg import cell_svg
from sphynx.space.design import Design
from sphynx.space.files import AnyDesign, design_fingerprint
from sphynx.space.genotype import Genotype
from sphynx.space.micro import MicroDesign
from sphynx.space.stream import StreamDesign
from sphynx.svg.charts import WIDE
from sphynx.svg.drawing import Drawing
from sphynx.units import bytes_text, percent, seconds_text, short_number

_ROLES = {"own": "", "comparison": " (for comparison)", "teacher": " (the teacher)"}

Facts = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class NetworkCard:
    id: str
    title: str
    facts: Facts
    skeleton: Chart | None
    cells: Mapping[str, str] = field(default_factory=dict)  # file name -> SVG
    compared: bool = False  # not what the page is about, but beside it


@dataclass(frozen=True)
class ModelCard:
    id: str
    title: str
    facts: Facts


def network_cards(sources: Sources) -> list[NetworkCard]:
    """One per different network; cells are drawn once each, with the first network that has them."""
    cards, drawn = [], dict[str, str]()
    designs = {design_fingerprint(run.design): run.design for run in sources.training}
    own = {design_fingerprint(run.design) for run in sources.training if run.role == "own"}
    ordered = sorted(designs.items(), key=lambda item: item[0] not in own)
    for number, (key, design) in enumerate(ordered):
        runs = [run.name for run in sources.training if design_fingerprint(run.design) == key]
        cells: dict[str, str] = {}
        if isinstance(design, Design | MicroDesign):
            cells = _draw_cells(design.genotype, drawn)
        skeleton = None
        if isinstance(design, Design | StreamDesign):
            skeleton = Chart(f"skeleton-{number}", _title(design), "", partial(_skeleton, design))
        facts = _design_facts(design, runs)
        cards.append(NetworkCard(f"network-{number}", _title(design), facts, skeleton, cells, compared=key not in own))
    for number, search in enumerate(sources.searches, len(cards)):
        cells = _draw_cells(search.genotype, drawn)
        if cells:
            facts = [("found by", search.strategy), ("nodes", str(search.genotype.nodes)), ("run", search.name)]
            cards.append(NetworkCard(f"network-{number}", f"Cells found in {search.name}", facts, None, cells))
    return cards


def _skeleton(design: Design | StreamDesign, width: float) -> Drawing:
    return draw_skeleton(design, width=width - 4 if width >= WIDE else width)


def _draw_cells(genotype: Genotype, drawn: dict[str, str]) -> dict[str, str]:
    """`drawn`: the names under which cells were drawn. Two searches by one strategy give their cells the same name."""
    key = str((genotype.normal, genotype.reduce))
    if key in drawn:
        return {}
    # A name may come from anybody's file, and here it names files.
    name = re.sub(r"[^\w.-]+", "-", genotype.name) or "cells"
    if name in drawn.values():
        name = f"{name}-{len(drawn) + 1}"
    drawn[key] = name
    return {
        f"{name}-{kind}.svg": cell_svg(cell, title=f"{name}: {kind} cell")
        for kind, cell in (("normal", genotype.normal), ("reduce", genotype.reduce))
    }


def _title(design: AnyDesign) -> str:
    relus = design.account.total.relus
    return f"{design.name + ': ' if design.name else ''}{describe_network(design)}, {relus:,} ReLUs"


def _design_facts(design: AnyDesign, runs: Sequence[str]) -> Facts:
    total = design.account.total
    facts = [("input", f"{design.image}, {design.classes} classes"), ("ReLUs", f"{total.relus:,}")]
    if total.comparisons:
        facts.append(("max-pool comparisons", f"{total.comparisons:,}"))
    facts += [("parameters", f"{total.parameters:,}"), ("multiply-accumulates", short_number(total.macs))]
    if isinstance(design, Design):
        facts.append(("cells", f"{design.genotype.name or 'unnamed'}, N = {design.genotype.nodes}"))
        inner = "; ReLUs inside the cells (a teacher)" if design.inner_relus else ""
        facts.append(("convolutions", f"{design.convolution}, {design.conv_stack}{inner}"))
        facts.append(("balancing", f"{design.balancing}, stem {design.stem}"))
        facts.append(_groups(design))
    if isinstance(design, StreamDesign):
        facts.append(("stages", str(design)))
        facts.append(("borders", design.borders))
    facts.append(("runs", ", ".join(runs)))
    return facts


def _groups(design: Design) -> tuple[str, str]:
    """The paper's M1, M2, M3: also those that are 0, which the skeleton does not draw."""
    ends = (*design.reduce_positions, design.depth)
    starts = (0, *(position + 1 for position in design.reduce_positions))
    sizes = [end - start for start, end in zip(starts, ends, strict=True)]
    names = ", ".join(f"M{number}" for number in range(1, len(sizes) + 1))
    return f"{names}", f"{', '.join(map(str, sizes))} normal cells, a reduce cell after each but the last"


def training_table(sources: Sources, present: Mapping[str, Any]) -> Table:
    """Tabulate the runs; a numbered note says where a run was made that was not made here."""
    rows, notes = [], list[str]()
    for run in sources.training:
        recipe = run.config["recipe"]
        made = provenance(run.environment, present)
        if not made.here and made.text not in notes:
            notes.append(made.text)
        rows.append(
            [
                f"{run.name}{_ROLES[run.role]}",
                f"{run.relus:,}",
                _accuracy(run),
                str(run.epochs),
                str(recipe["batch_size"]),
                recipe["distillation"] if run.distilled else "no",
                "-" if run.result is None else f"{run.result.minutes:.1f}",
                "here" if made.here else f"not\u00a0here\u00a0[{notes.index(made.text) + 1}]",
            ]
        )
    columns = ["run", ">ReLUs", ">test accuracy", ">epochs", ">batch", "distilled", ">minutes", "made"]
    return Table(columns, rows, [f"[{number}] {note}" for number, note in enumerate(notes, 1)])


def _ranking_note(ranking: Sequence[RankedCells]) -> list[str]:
    order = ", ".join(f"{entry.cells} {percent(entry.held_out)}{_length(entry)}" for entry in ranking)
    return [f"Ranked by short trainings before, on held-out training images: {order}."] if ranking else []


def _length(ranked: RankedCells) -> str:
    """Accuracies of different lengths are not to be compared. Runs before there were several do not say."""
    return f" ({ranked.trainings[-1].epochs} epochs)" if ranked.trainings else ""


def search_table(sources: Sources, present: Mapping[str, Any]) -> Table:
    rows = [
        [s.name, s.strategy, str(len(s.held_out)), percent(s.held_out[-1]) if s.held_out else "-"]
        for s in sources.searches
    ]
    made = made_elsewhere((search.environment for search in sources.searches), present)
    columns = ["search", "strategy", ">epochs", ">held-out accuracy of the supernet"]
    return Table(columns, rows, [made.strip()] if made else [])


def design_table(run: DesignRun, present: Mapping[str, Any]) -> Table:
    """The networks of one plan, which differ in their cells only; its own alone, where no comparison was made."""
    result = run.result
    compared = [
        [
            row.cells,
            percent(row.mean),
            _deviation(row.deviation),
            str(len(row.accuracies)),
            f"{row.parameters:,}",
            f"{row.minutes:.1f}",
        ]
        for row in result.comparison.rows
    ]
    own = [
        result.cells,
        percent(result.accuracy),
        _deviation(result.accuracy_std),
        str(len(result.accuracies)),
        "-",
        f"{result.minutes.get('training', 0.0):.1f}",
    ]
    plan = (
        f"{run.name}: {result.data}, budget {result.relu_budget:,} ReLUs; C = {result.channels}, D = {result.depth}, "
        f"{result.relus:,} ReLUs, reduce cells at {', '.join(map(str, result.reduce_positions))} ({result.placed_by})."
    )
    stages = ", ".join(f"{stage} {minutes:.1f}" for stage, minutes in result.minutes.items())
    notes = [
        plan,
        f"Minutes by stage: {stages}.",
        *(f"The first {gain}." for gain in result.comparison.gains),
        *_ranking_note(result.ranking),
    ]
    if made := made_elsewhere(run.environments, present):
        notes.append(made.strip())
    return Table(["cells", ">test accuracy", ">std", ">seeds", ">parameters", ">minutes"], compared or [own], notes)


def model_cards(sources: Sources, present: Mapping[str, Any]) -> Iterator[ModelCard]:
    """A card for every finished run."""
    finished = ((run, run.result) for run in sources.training if run.result is not None)
    for number, (run, result) in enumerate(finished):
        yield ModelCard(f"card-{number}", run.name, _model_facts(run, result, present))


def _model_facts(run: TrainingRun, result: Score, present: Mapping[str, Any]) -> Facts:
    recipe, data, made = run.config["recipe"], run.data, run.environment
    top5 = "" if result.top5 is None else f" (top 5: {100 * result.top5:.2f} %)"
    teacher = run.config.get("teacher")
    taught = "none" if teacher is None else f"{str(teacher['format']).split('/')[0]}, by {recipe['distillation']}"
    return [
        ("what it does", f"puts {run.design.image} images into one of {run.design.classes} classes"),
        ("network", _title(run.design)),
        ("training data", f"{run.data_name}: {data['train']:,} images; augmentation: {_augmentation(recipe)}"),
        ("test accuracy", f"{_accuracy(run)}{top5}, on {result.test_images or data['test']:,} images"),
        ("how it was measured", f"final epoch, seed {result.seed}, one run"),
        (
            "training",
            f"{recipe['epochs']} epochs, batch {recipe['batch_size']}, {recipe['optimizer']}, "
            f"rate {recipe['learning_rate']}, weight decay {recipe['weight_decay']}",
        ),
        (
            "held-out images",
            f"{percent(recipe['held_out'], 0)} of the training images" if recipe["held_out"] else "none",
        ),
        ("teacher", taught),
        (
            "made",
            f"{provenance(made, present)}; {made.get('device', 'unknown device')}, "
            f"sphynx {made.get('sphynx', 'unknown')}, source {made.get('source_sha256', 'unknown')}",
        ),
        (
            "limits",
            "Accuracy is for images like the training images. Nothing is known about other inputs, fairness "
            "between groups, or inputs made to mislead it. Private inference hides the image and the weights "
            "from parties that follow the protocol, not what answers reveal.",
        ),
    ]


def _accuracy(run: TrainingRun) -> str:
    return percent(None if run.accuracy is None else run.accuracy / 100)


def tiles(sources: Sources, present: Mapping[str, Any]) -> list[Tile]:
    """Show one network, the most accurate of those that were also timed, or else of all; every tile is about it."""
    trained = [run for run in sources.training if run.accuracy is not None and not _is_teacher(run)]
    timed = [run for run in trained if rows_of(run.name.split("/")[0], run.relus, sources)]
    found: list[Tile] = []
    best = max(timed or trained, key=lambda run: run.accuracy or 0, default=None)
    rows = sources.private
    if best is not None:
        name = best.name.split("/")[0]
        rows = rows_of(name, best.relus, sources)
        others = f"one of {len(trained)} trained networks" if len(trained) > 1 else "the trained network"
        found.append(Tile("test accuracy", _accuracy(best), f"{best.name}, on {best.data_name}"))
        found.append(Tile("ReLUs", f"{best.relus:,}", f"{name}, {others}"))
    fastest = min((row for row in rows if row.values.online_s), key=lambda row: row.values.online_s, default=None)
    if fastest is not None:
        made = provenance(fastest.environment, present)
        where = "this machine" if made.here else fastest.machine if made.text.startswith("unknown") else made.text
        found.append(Tile("online latency", seconds_text(fastest.values.online_s), f"{fastest.name}; {where}"))
        if fastest.values.online_bytes:
            found.append(Tile("online traffic", bytes_text(fastest.values.online_bytes), fastest.name))
    return found


def _is_teacher(run: TrainingRun) -> bool:
    if run.role == "teacher" or not isinstance(run.design, Design | StreamDesign):
        return True
    return isinstance(run.design, Design) and run.design.inner_relus


def subtitle(sources: Sources) -> str:
    counts = [
        (len(sources.designs), "design run"),
        (len(sources.training), "training run"),
        (len(sources.searches), "cell search"),
        (len(sources.placements), "placement search"),
        (len(sources.private), "private benchmark"),
        (len(sources.checks), "range check"),
        (len(sources.compiled), "compiled network"),
    ]
    return ", ".join(f"{n} {word}{_plural(word, n)}" for n, word in counts if n)


def _plural(word: str, count: int) -> str:
    return "" if count == 1 else "es" if word.endswith("ch") else "s"


def _augmentation(recipe: Mapping[str, Any]) -> str:
    used = [name for name in ("crop", "flip", "cutout", "mixup") if recipe.get(name)]
    return ", ".join(used) or "none"


def _deviation(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.2f}"
