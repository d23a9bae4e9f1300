"""Charts: axes cover their values, nothing is drawn outside, colours can be read, both forms are well-formed."""

from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextPath
from PIL import Image

from sphynx.report.skeleton import blocks_of, draw_skeleton
from sphynx.space.account import relu_count
from sphynx.space.design import Design
from sphynx.space.published_cells import SPHYNX
from sphynx.svg.chart_axes import linear_axis, log_axis
from sphynx.svg.charts import NARROW, WIDE, Bar, Group, Point, Series, bars, curves
from sphynx.svg.drawing import DARK, LIGHT, Box, Dot, Drawing, Key, Line, Text, text_width
from sphynx.svg.png import save_png
from sphynx.svg.spans import Panel, Piece, SpanRow, spans

VALUES = st.lists(st.floats(0.001, 1e9), min_size=1, max_size=12)
WIDTHS = st.sampled_from([WIDE, NARROW])
SVG = "{http://www.w3.org/2000/svg}"


def assert_inside(drawing: Drawing) -> None:
    """Text by its estimated width."""
    for shape in drawing.shapes:
        if isinstance(shape, Text):
            wide = text_width(shape.text, shape.size)
            left = shape.x - {"start": 0.0, "middle": wide / 2, "end": wide}[shape.anchor] * (not shape.turned)
            right = left + wide * (not shape.turned)
            assert left >= -1, shape
            assert right <= drawing.width + 1, shape
            assert shape.size / 2 <= shape.y <= drawing.height + 1, shape
        elif isinstance(shape, Box):
            assert shape.x >= -0.1, shape
            assert shape.x + shape.width <= drawing.width + 0.1, shape
        elif isinstance(shape, Dot):
            assert 0 <= shape.x <= drawing.width, shape
            assert 0 <= shape.y <= drawing.height, shape
        elif isinstance(shape, Line):
            assert all(-0.1 <= x <= drawing.width + 0.1 and -0.1 <= y <= drawing.height + 0.1 for x, y in shape.points)
    ElementTree.fromstring(drawing.to_svg())


@pytest.mark.parametrize(
    "text",
    [
        "Hollow: published by others. Filled: ours. Diamonds: distilled. Hover for names and sources.",
        "other machine (NVIDIA H200); other version (0.1.0, source e08a78c6)",
        "DeepReDuce, distilled",
        "ours, gmw, loopback",
        "25.6K 49.15K 102.4K 83.3 MB 12.7 ms",
        "WWW mmm %% @",
    ],
)
def test_text_is_not_wider_than_taken_for(text: str) -> None:
    """The estimate that `assert_inside` and all layouts go by, beside the letters that a PNG has."""
    path = TextPath((0, 0), text, size=12, prop=FontProperties(family="DejaVu Sans"))
    assert path.get_extents().width <= text_width(text, 12) <= 1.15 * path.get_extents().width


@given(VALUES)
def test_axes_cover_their_values(values: list[float]) -> None:
    for axis in (linear_axis(values), linear_axis(values, zero=True), log_axis(values)):
        assert axis.ticks
        assert all(-1e-9 <= axis.place(value) <= 1 + 1e-9 for value in values)
        assert list(axis.ticks) == sorted(axis.ticks)


@settings(max_examples=12, deadline=None)
@example([(80_000_000.0, 0.0)], WIDE)  # a tick at the very end
@example([(1.0, 0.0), (1.0, 5e-324)], WIDE)  # as good as equal
@given(st.lists(st.tuples(st.floats(1, 1e8), st.floats(0, 100)), min_size=1, max_size=20), WIDTHS)
def test_curves_stay_inside(points: list[tuple[float, float]], width: float) -> None:
    series = [Series(f"series {n}", [Point(x, y, "tip")], f"s{n % 8}") for n, (x, y) in enumerate(points)]
    x, y = log_axis([p[0] for p in points]), linear_axis([p[1] for p in points])
    assert_inside(curves("title", series, x, y, x_name="x", y_name="y", width=width, note="a note " * 20))


@settings(max_examples=12, deadline=None)
@given(st.integers(1, 16), st.integers(1, 6), st.floats(1, 100), WIDTHS)
def test_bars_stay_inside(groups: int, members: int, value: float, width: float) -> None:
    made = [
        Group(f"({n},{n + 1})", [Bar(value * (b + 1) / members, f"s{b}", b % 2 == 0) for b in range(members)])
        for n in range(groups)
    ]
    assert_inside(bars("title", made, [Key("a", "s0")], y_name="accuracy, %", width=width))


@settings(max_examples=12, deadline=None)
@given(VALUES, WIDTHS)
def test_spans_stay_inside(values: list[float], width: float) -> None:
    rows = [SpanRow(f"a layer with a long name {n}", [Piece(0, v, "s0", "tip")]) for n, v in enumerate(values)]
    panel = Panel("offline", rows, lambda v: f"{v:.2g}")
    assert_inside(spans("title", [panel], [Key("a", "s0")], width=width))


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_colours_have_readable_contrast(palette: dict[str, str]) -> None:
    """WCAG 2.1: 4.5 : 1 for text; every series colour keeps it too."""
    for name in ("ink", "muted", *(f"s{n}" for n in range(8))):
        lighter, darker = sorted((_luminance(palette[name]), _luminance(palette["paper"])), reverse=True)
        assert (lighter + 0.05) / (darker + 0.05) >= 4.5, name


def test_png_has_the_drawing_size(tmp_path: Path) -> None:
    drawing = curves(
        "t",
        [Series("a", [Point(1, 1), Point(2, 3)], "s0")],
        linear_axis([1, 2]),
        linear_axis([1, 3]),
        x_name="x",
        y_name="y",
    )
    save_png(drawing, tmp_path / "a.png")
    with Image.open(tmp_path / "a.png") as image:
        assert image.size == (round(2 * drawing.width), round(2 * drawing.height))
        assert len(image.convert("RGB").getcolors(1 << 20) or ()) > 3


def test_tips_are_escaped_and_shown_without_scripts() -> None:
    drawing = Drawing(10, 10, 'a "title" & more')
    drawing.add(Dot(5, 5, "s0", tip='<b> & "c"'))
    root = ElementTree.fromstring(drawing.to_svg())
    circle = next(root.iter(f"{SVG}circle"))
    assert circle.get("data-tip") == '<b> & "c"'
    assert circle.findtext(f"{SVG}title") == '<b> & "c"'


@pytest.mark.parametrize(
    ("depth", "reduce_at", "names"),
    [
        (8, (1, 3), ["stem", "M1 = 1", "cell 1", "M2 = 1", "cell 3", "M3 = 4", "head"]),  # the paper's own example
        (5, (0, 1), ["stem", "cell 0", "cell 1", "M3 = 3", "head"]),
    ],
)
def test_skeleton_has_the_papers_groups(depth: int, reduce_at: tuple[int, ...], names: list[str]) -> None:
    design = Design(SPHYNX, 5, depth, reduce_at)
    blocks = blocks_of(design)
    assert [block.name for block in blocks] == names
    assert sum(block.relus for block in blocks) == relu_count(design)
    for width in (WIDE, NARROW):
        assert_inside(draw_skeleton(design, width=width))


def _luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
