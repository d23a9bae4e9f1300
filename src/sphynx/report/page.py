"""One self-contained HTML page about runs: networks, training, placement, comparison, private inference, model cards.

No part of it is fetched from anywhere. A section whose input is missing is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from importlib import resources
from pathlib import Path
from typing import Any

from sphynx.errors import InputError
from sphynx.report import cards
from sphynx.report.figures import (
    Chart,
    pareto_charts,
    placement_chart,
    training_charts,
)
from sphynx.report.private_part import private_charts, private_table, throughput_table
from sphynx.report.sources import Sources
from sphynx.report.summary import NetworkSummary, lead_runs, rows_of, summary_of
from sphynx.report.tables import Picture, Table, Tile
from sphynx.svg.charts import NARROW, WIDE
from sphynx.svg.drawing import Drawing, colour_rules
from sphynx.svg.png import save_png
from sphynx.version import __version__


@dataclass
class Section:
    id: str
    title: str
    parts: list[Mapping[str, Any]] = field(default_factory=list)


@dataclass(frozen=True)
class Report:
    html: str
    charts: tuple[Chart, ...]
    cells: Mapping[str, str]  # file name -> SVG

    def _repr_html_(self) -> str:
        """Show the page in a notebook, in a frame of its own, so that the styles keep apart."""
        return f'<iframe srcdoc="{escape(self.html)}" style="width: 100%; height: 80vh; border: 0"></iframe>'

    def save_figures(self, folder: Path) -> list[Path]:
        """Every chart as SVG and PNG, every cell as SVG."""
        folder.mkdir(parents=True, exist_ok=True)
        written = []
        for chart in self.charts:
            drawing = chart.alone()
            written += [folder / f"{chart.id}.svg", folder / f"{chart.id}.png"]
            written[-2].write_text(drawing.to_svg())
            save_png(drawing, written[-1])
        for name, svg in self.cells.items():
            written.append(folder / name)
            written[-1].write_text(svg)
        return written


def known_summary(sources: Sources) -> NetworkSummary | None:
    """Summarise the one network that the page is about, as far as files say it."""
    runs = lead_runs(sources)
    return summary_of(runs, rows_of(runs[0].name.split("/")[0], runs[0].relus, sources)) if runs else None


def make_report(
    sources: Sources, present: Mapping[str, Any], *, title: str = "Sphynx report", summary: NetworkSummary | None = None
) -> Report:
    """`present` is this machine and source (`run.environment`): what was made elsewhere is labelled so.

    `summary` is of the network that the page is about; unless it is given, what the files say of it.
    """
    summary = summary or known_summary(sources)
    networks = cards.network_cards(sources)
    compared = [card for card in networks if summary is None or card.compared]
    own = [card for card in networks if card not in compared]
    sections = [
        *([] if summary is None else [_summary(summary)]),
        Section("network", "How it is built", [_network_part(card) for card in own]),
        _designs(sources, present),
        _training(sources, present),
        _searches(sources, present),
        Section(
            "comparison",
            "Compared with published results",
            [chart_part(chart) for chart in pareto_charts(sources, present)],
        ),
        _private(sources, present),
        Section(
            "networks",
            "Networks" if summary is None else "Networks for comparison",
            [_network_part(card) for card in compared],
        ),
        Section("cards", "Model cards", [_card_part(card) for card in cards.model_cards(sources, present)]),
    ]
    sections = [section for section in sections if section.parts]
    if not sections:
        raise InputError("the inputs contain nothing to report", remedy="Give a finished run or a results file.")
    charts = [part["chart"] for section in sections for part in section.parts if "chart" in part]
    charts += [card.skeleton for card in networks if card.skeleton is not None]
    html = render(
        title=title,
        subtitle=cards.subtitle(sources),
        tiles=cards.tiles(sources, present) if summary is None else [],
        sections=sections,
    )
    return Report(html, tuple(charts), {name: svg for card in networks for name, svg in card.cells.items()})


def _summary(summary: NetworkSummary) -> Section:
    section = Section("summary", "Your network")
    section.parts.append(
        {
            "kind": "summary",
            "title": summary.name,
            "what": summary.what,
            "tiles": summary.tiles(),
            "pictures": summary.pictures(),
            "missing": summary.missing,
        }
    )
    table, chart = summary.class_table(), summary.chart()
    section.parts += [table_part(table)] if table is not None else []
    section.parts += [chart_part(chart)] if chart is not None else []
    scores = summary.score_table()
    section.parts += [table_part(scores)] if scores is not None else []
    section.parts += [chart_part(chart) for chart in summary.score_charts]
    return section


def _designs(sources: Sources, present: Mapping[str, Any]) -> Section:
    tables = (cards.design_table(run, present) for run in sources.designs)
    return Section("design", "Design", [table_part(table) for table in tables])


def _training(sources: Sources, present: Mapping[str, Any]) -> Section:
    section = Section("training", "Training")
    if sources.training:
        section.parts.append(table_part(cards.training_table(sources, present)))
        section.parts += [chart_part(chart) for chart in training_charts(sources.training, present)]
    return section


def _searches(sources: Sources, present: Mapping[str, Any]) -> Section:
    section = Section("search", "Search and placement")
    if sources.searches:
        section.parts.append(table_part(cards.search_table(sources, present)))
    section.parts += [
        chart_part(placement_chart(run, number, present)) for number, run in enumerate(sources.placements)
    ]
    return section


def _private(sources: Sources, present: Mapping[str, Any]) -> Section:
    section = Section("private", "Private inference")
    if sources.private:
        section.parts.append(table_part(private_table(sources, present)))
    section.parts += [chart_part(chart) for chart in private_charts(sources, present)]
    if sources.throughput:
        section.parts.append(table_part(throughput_table(sources, present)))
    return section


def chart_part(chart: Chart) -> dict[str, Any]:
    wide, narrow = _both(chart)
    return {
        "kind": "chart",
        "id": chart.id,
        "title": chart.title,
        "caption": chart.caption,
        "wide": wide,
        "narrow": narrow,
        "chart": chart,
    }


def _both(chart: Chart) -> tuple[str, str]:
    """Draw for a screen and for a phone, where text must not shrink; the style sheet shows one of them."""

    def svg(drawing: Drawing, css_class: str) -> str:
        return drawing.to_svg(alone=False, css_class=css_class)

    return svg(chart.draw(WIDE), "wide"), svg(chart.draw(NARROW - 24), "narrow")


def _network_part(card: cards.NetworkCard) -> dict[str, Any]:
    wide, narrow = ("", "") if card.skeleton is None else _both(card.skeleton)
    return {
        "kind": "card",
        "id": card.id,
        "title": card.title,
        "facts": card.facts,
        "wide": wide,
        "narrow": narrow,
        "cells": list(card.cells.values()),
    }


def _card_part(card: cards.ModelCard) -> dict[str, Any]:
    return {
        "kind": "card",
        "id": card.id,
        "title": card.title,
        "facts": card.facts,
        "wide": "",
        "narrow": "",
        "cells": [],
    }


def table_part(table: Table) -> dict[str, Any]:
    columns = [{"name": name.removeprefix(">"), "number": name.startswith(">")} for name in table.columns]
    return {"kind": "table", "title": table.title, "columns": columns, "rows": table.rows, "notes": table.notes}


def pictures_part(pictures: Sequence[Picture]) -> dict[str, Any]:
    return {"kind": "pictures", "pictures": pictures}


def render(
    *, title: str, subtitle: str, tiles: Sequence[Tile], sections: Sequence[Section], refresh_s: float = 0.0
) -> str:
    """`refresh_s`: after this many seconds the browser loads the page again."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    templates = Environment(
        loader=PackageLoader("sphynx.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    folder = resources.files("sphynx.report").joinpath("templates")
    return templates.get_template("report.html").render(
        title=title,
        subtitle=subtitle,
        tiles=tiles,
        sections=sections,
        refresh_s=refresh_s,
        version=__version__,
        colours=colour_rules(),
        css=folder.joinpath("report.css").read_text(),
        script=folder.joinpath("report.js").read_text(),
    )
