"""One picture per experiment: the paper's values (hollow) and ours (filled), and what scale ours were made at."""

from __future__ import annotations

from collections.abc import Sequence

from reproduction.experiments import Experiment, Row
from reproduction.outcomes import SEARCHED, Ours, Outcome, cells_of
from reproduction.scales import Scale, design_of
from sphynx.report.figures import beta_drawing
from sphynx.report.literature import Published, read_published
from sphynx.report.naming import DATA_SETS
from sphynx.space.published_cells import SPHYNX
from sphynx.svg.chart_axes import linear_axis, log_axis
from sphynx.svg.charts import WIDE, Bar, Group, Point, Series, bars, curves, stacked
from sphynx.svg.drawing import Drawing, Key, Text, roles


def draw_outcomes(experiment: Experiment, scale: Scale, outcomes: Sequence[Outcome], *, width: float = WIDE) -> Drawing:
    note = " ".join(_sentences(scale, outcomes))
    if experiment.picture == "pareto":
        body = _pareto(experiment, outcomes, width, note)
    elif experiment.picture == "placement":
        body = _location(experiment, outcomes, width, note)
    else:
        body = _bars(experiment, outcomes, width, note)
    drawing = Drawing(width, body.height + 30, experiment.title)
    drawing.add(Text(6, 19, experiment.title, bold=True, size=15))
    drawing.place(body, 0, 30)
    return drawing


def _sentences(scale: Scale, outcomes: Sequence[Outcome]) -> list[str]:
    found = ["Hollow: the paper."]
    if any(_all_ours(o) for o in outcomes):
        found[0] = "Hollow: the paper. Filled: ours."
    if any(o.ours is not None for o in outcomes):
        found.append(f"Ours at {scale.meaning}.")
    if any(o.ours is not None and o.ours.beta for o in outcomes):
        found.append(f"Our beta: {scale.placement_recipe().method}.")
    elsewhere = sorted({str(ours.made) for o in outcomes for ours in _all_ours(o) if not ours.made.here})
    if elsewhere:
        found.append(f"Of ours, not made here by this version: {'; '.join(elsewhere)}.")
    return found


def _all_ours(outcome: Outcome) -> list[Ours]:
    return [*([outcome.ours] if outcome.ours else []), *outcome.kept]


def paper_relus(row: Row) -> int:
    """Count the ReLUs of the paper's own network."""
    image, classes = DATA_SETS[row.data]
    cells = SPHYNX if row.cells.startswith(SEARCHED) else cells_of(row)
    return design_of(row, image, classes, cells).account.total.relus


def _pareto(experiment: Experiment, outcomes: Sequence[Outcome], width: float, note: str) -> Drawing:
    """Ours stand at the ReLUs of the network that ran, which at smoke scale is a smaller one."""
    colour = roles(o.row.series for o in outcomes if o.row.series != "teacher")
    series = []
    rows = [o for o in outcomes if o.row.series != "teacher"]
    for name, role in colour.items():
        own = [o for o in rows if o.row.series == name]
        paper = [
            Point(paper_relus(o.row), o.row.accuracy, _paper_tip(o.row), o.row.std or 0.0)
            for o in own
            if o.row.accuracy is not None
        ]
        series.append(Series(f"{name}, paper", paper, role, hollow=True))
        ours = [
            Point(found.relus, found.accuracy, _tip(o.row, found), found.std or 0.0)
            for o in own
            for found in _all_ours(o)
        ]
        if ours:
            joined = len(ours) == len([o for o in own if o.ours])
            series.append(Series(f"{name}, ours", sorted(ours, key=lambda p: p.x), role, "square", joined=joined))
    peers = [p for p in read_published() if _is_peer(p, experiment)]
    for number, name in enumerate(dict.fromkeys(p.method for p in peers)):
        points = sorted(
            (Point(p.relus or 0, p.accuracy, p.tip()) for p in peers if p.method == name), key=lambda p: p.x
        )
        series.append(Series(name, points, f"s{(len(colour) + number) % 8}", "diamond", hollow=True, dashed=True))
    values = [point for s in series for point in s.points]
    x = log_axis([p.x for p in values])
    y = linear_axis([v for p in values for v in (p.y - p.error, p.y + p.error)])
    return curves(
        experiment.title, series, x, y, x_name="ReLUs (logarithmic)", y_name="test accuracy, %", width=width, note=note
    )


def _is_peer(published: Published, experiment: Experiment) -> bool:
    """Other methods on the same data; with a teacher only beside networks with one."""
    distilled = experiment.name == "distillation"
    data = "cifar100" if distilled else experiment.name
    own = {row.series for row in experiment.rows} | {"Sphynx"}
    return (
        published.data == data
        and published.relus is not None
        and published.method not in own
        and published.distilled == distilled
    )


def _bars(experiment: Experiment, outcomes: Sequence[Outcome], width: float, note: str) -> Drawing:
    colour = roles(o.row.series for o in outcomes)
    groups = []
    for label in dict.fromkeys(o.row.label for o in outcomes):
        found: list[Bar] = []
        for o in (o for o in outcomes if o.row.label == label):
            role = colour[o.row.series]
            if o.row.accuracy is not None:
                found.append(Bar(o.row.accuracy, role, True, o.row.std or 0.0, _paper_tip(o.row)))
            found += [Bar(own.accuracy, role, False, own.std or 0.0, _tip(o.row, own)) for own in _all_ours(o)]
        groups.append(Group(label, found))
    key = [Key(f"{name}, paper", role, hollow=True) for name, role in colour.items()]
    ran = {o.row.series for o in outcomes if _all_ours(o)}
    key += [Key(f"{name}, ours", role) for name, role in colour.items() if name in ran]
    return bars(experiment.title, groups, key, y_name="test accuracy, %", width=width, note=note)


def _location(experiment: Experiment, outcomes: Sequence[Outcome], width: float, note: str) -> Drawing:
    """Per depth: accuracy of each placement trained alone beside beta, and how our beta came about."""
    panels: list[tuple[str, Drawing]] = []
    names = list(dict.fromkeys(o.row.series for o in outcomes))
    for name in names:
        own = [o for o in outcomes if o.row.series == name]
        ran = any(o.ours for o in own)
        key = [Key("accuracy, paper", "s0", hollow=True), Key("beta, paper", "s1", hollow=True)]
        key += [Key("accuracy, ours", "s0"), Key("beta, ours", "s1")] if ran else []
        last = name == names[-1] and not ran
        groups = [Group(o.row.label, _placement_bars(o)) for o in own]
        chart = bars(
            f"{experiment.title}, {name}",
            groups,
            key,
            y_name="percent",
            width=width,
            from_zero=True,
            note=note if last else "",
        )
        panels.append((f"{name}: reduce cells at", chart))
        found = [o for o in own if o.ours is not None and o.ours.beta]
        if found:
            histories = zip(*(o.ours.beta for o in found if o.ours is not None), strict=True)
            placements = [o.row.reduce_at or () for o in found]
            curves_of_ours = beta_drawing(placements, list(histories), width, note=note)
            panels.append((f"{name}: our beta over the search", curves_of_ours))
    return stacked(experiment.title, panels, width)


def _placement_bars(o: Outcome) -> list[Bar]:
    found = [
        Bar(o.row.accuracy or 0, "s0", True, tip=_paper_tip(o.row)),
        Bar(100 * (o.row.beta or 0), "s1", True, tip=f"{o.row.label}: the paper's beta is {o.row.beta}"),
    ]
    if o.ours is not None and o.ours.beta:
        final = o.ours.beta[-1]
        found.append(Bar(o.ours.accuracy, "s0", tip=_tip(o.row, o.ours)))
        found.append(Bar(100 * final, "s1", tip=f"{o.row.label}: our beta is {final:.4f}"))
    return found


def _paper_tip(row: Row) -> str:
    assert row.accuracy is not None
    spread = f" ± {row.std:.2f}" if row.std is not None else ""
    taught = ", distilled" if row.distilled else ""
    return f"{row.series} {row.label}, paper: {row.accuracy:.2f}{spread} %{taught} ({row.source})"


def _tip(row: Row, ours: Ours) -> str:
    spread = f" ± {ours.std:.2f}" if ours.std is not None else ""
    taught = ", distilled" if row.distilled else ""
    return (
        f"{row.series} {row.label}, ours: {ours.accuracy:.2f}{spread} %{taught}, n = {ours.seeds}, "
        f"{ours.network}, {ours.relus:,} ReLUs, {ours.epochs} epochs on {ours.data}; {ours.made}"
    )
