"""The paper's counts against ours, as a picture: equal ones lie on the diagonal."""

from __future__ import annotations

from collections.abc import Sequence

from reproduction.tables import PaperRow
from sphynx.svg.chart_axes import log_axis
from sphynx.svg.charts import WIDE, Point, Series, curves
from sphynx.svg.drawing import Drawing, Text


def draw_counts(title: str, rows: Sequence[PaperRow], unit: str, *, width: float = WIDE) -> Drawing:
    kinds = (("agrees to the printed digit", "s0", True), ("differs; the note says why", "s5", False))
    series = [
        Series(name, [_point(row) for row in rows if row.agrees == agrees], role, hollow=not agrees, joined=False)
        for name, role, agrees in kinds
    ]
    axis = log_axis([value for row in rows for value in (row.ours, row.paper)])
    equal = [Point(end, end) for end in (axis.low, axis.high)]
    series.append(Series("equal", equal, "muted", marked=False, dashed=True))
    agreeing = sum(row.agrees for row in rows)
    body = curves(
        title,
        [s for s in series if s.points],
        axis,
        axis,
        x_name=f"{unit} that the paper prints (logarithmic)",
        y_name=f"our {unit} (logarithmic)",
        width=width,
        height=400.0,
        note=f"{agreeing} of {len(rows)} rows agree to the printed digit. Ours are counted from descriptions.",
    )
    drawing = Drawing(width, body.height + 30, title)
    drawing.add(Text(6, 19, title, bold=True, size=15))
    drawing.place(body, 0, 30)
    return drawing


def _point(row: PaperRow) -> Point:
    note = f" ({row.note})" if row.note else ""
    return Point(
        row.paper, row.ours, f"{row.network}: {row.printed} in the paper, ours {row.ours:,}; {row.verdict}{note}"
    )
