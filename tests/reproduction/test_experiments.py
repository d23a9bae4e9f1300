"""The paper's rows: every network can be built, has the printed ReLUs, and agrees with the published points."""

import pytest
from reproduction.experiments import EXPERIMENTS, Row, experiment_named, read_rows
from reproduction.outcomes import SEARCHED, cells_of
from reproduction.reproduction_figure import paper_relus
from reproduction.scales import SCALES, shrunk
from reproduction.tables import PaperRow

from sphynx.errors import InputError
from sphynx.report.literature import read_published

ROWS = read_rows()


def test_every_row_belongs_to_an_experiment() -> None:
    assert {row.experiment for row in ROWS} == {one.networks_of or name for name, one in EXPERIMENTS.items()}
    assert all(experiment.rows for experiment in EXPERIMENTS.values())
    with pytest.raises(InputError, match="no experiment"):
        experiment_named("cifar-1000")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.experiment}-{row.series}-{row.label}".replace(" ", "_"))
def test_row_is_a_network_of_its_label(row: Row) -> None:
    """A label that is a ReLU count is ours as well; FLOP-balanced networks stand beside the others' counts."""
    relus = paper_relus(row)
    count = row.label.removeprefix("ImageNet ")
    if count[-1] in "KM" and "/" not in count and row.options.get("balancing") != "flop":
        assert PaperRow("", row.label, count, relus).agrees
    assert shrunk(row).depth <= 5
    assert row.cells.startswith(SEARCHED) or (cells_of(row) is None) == (row.network in ("resnet18", "vgg11"))
    for scale in SCALES.values():
        assert scale.recipe(row).epochs >= 1
        assert (scale.recipe(row).distillation != "none") == row.distilled


@pytest.mark.parametrize("data", ["cifar100", "distillation", "tiny-imagenet", "imagenet"])
def test_rows_agree_with_the_published_points(data: str) -> None:
    """Two transcriptions of the paper: same accuracy and latency for the same network."""
    checked = 0
    for row in EXPERIMENTS[data].rows:
        for point in read_published():
            same = point.method == row.series.split(",")[0] and point.distilled == row.distilled
            if same and point.data == row.data and point.relus and abs(point.relus / paper_relus(row) - 1) < 0.008:
                assert point.accuracy == pytest.approx(row.accuracy)
                if row.latency_ms is not None:
                    assert point.latency_s == pytest.approx(row.latency_ms / 1000)
                checked += 1
    assert checked >= 4


def test_all_other_methods_of_the_papers_pareto_figure_are_published_points() -> None:
    figure = {
        "CryptoNAS": {1.67, 2.0, 2.3, 7.5},
        "DeepReDuce": {0.579, 0.738, 1.19, 2.18},
        "DELPHI": {1.23, 4.44, 6.5},
        "SAFENet": {2.22},
    }
    points = [point for point in read_published() if point.data == "cifar100" and not point.distilled]
    for method, seconds in figure.items():
        assert {point.latency_s for point in points if point.method == method} == seconds


def test_what_the_paper_contradicts_itself_in_is_said() -> None:
    grid = next(row for row in EXPERIMENTS["placement-grid"].rows if (row.depth, row.reduce_at) == (5, (1, 3)))
    bar = next(row for row in EXPERIMENTS["placement"].rows if row.depth == 5 and row.reduce_at == (1, 3))
    assert (grid.accuracy, bar.accuracy) == (59.87, 61.88)
    assert "61.88" in grid.note
    assert "59.87" in bar.note
    for name in ("nodes", "recycled"):
        assert any("65.57" in row.note for row in EXPERIMENTS[name].rows)


def test_the_grid_has_every_placement_and_one_learned() -> None:
    for depth, number, best in ((5, 6, (0, 1)), (6, 10, (0, 1)), (8, 15, (1, 3))):
        rows = [row for row in EXPERIMENTS["placement-grid"].rows if row.depth == depth]
        assert len(rows) == number
        assert max(rows, key=lambda row: row.beta or 0).reduce_at == best
        assert max(rows, key=lambda row: row.accuracy or 0).reduce_at == best
