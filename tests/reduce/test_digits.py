"""Digits by the methods, with a small ResNet18 as the original, reduced as a user does it, then compiled."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

import sphynx
from sphynx.cli.main import app
from sphynx.reduce.settings import Method
from sphynx.space.reference import ResNet18Design
from sphynx.space.tally import Shape

ORIGINAL = ResNet18Design(width=4, image=Shape(1, 8, 8), classes=10, stem="small", name="original")
BUDGET = 300
OURS: tuple[Method, ...] = ("stream", "channels")


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("original") / "run"
    trained = sphynx.train_network(ORIGINAL, "digits", out=out)
    assert trained.accuracy > 0.95
    return out


@pytest.mark.parametrize(
    "method",
    [
        *OURS,
        *(
            pytest.param(method, marks=pytest.mark.slow)
            for method in ("deepreduce", "snl", "senet", "delphi", "safenet", "autorep")
        ),
    ],
)
def test_digits_keep_their_accuracy_within_the_budget(original: Path, tmp_path: Path, method: Method) -> None:
    out = tmp_path / "reduced"
    result = sphynx.reduce_network(
        original, None, relu_budget=BUDGET, out=out, method=method, settings={"search_epochs": 8}
    )
    assert result.best.counts.relus == sphynx.load_network(out).design.relus <= BUDGET < ORIGINAL.relus / 7
    assert result.best.accuracy > result.original_accuracy - 0.03
    compiled = sphynx.compile_network(out)
    assert compiled.judged is not None and compiled.relus == result.best.counts.relus


def test_the_verb_prints_what_it_counted(tmp_path: Path) -> None:
    original = tmp_path / "original"
    sphynx.train_network(ORIGINAL, "digits", out=original, settings={"epochs": 1})
    words = [str(original), "--relu-budget", str(BUDGET), "--method", "deepreduce", "--search-epochs", "4"]
    words += ["--set", "training.epochs=3", "--quiet", "-o", str(tmp_path / "reduced")]
    made = CliRunner().invoke(app, ["reduce", *words], catch_exceptions=False)
    assert made.exit_code == 0 and "deepreduce" in made.stdout and "2,176 ReLUs" in made.stdout
    again = CliRunner().invoke(app, ["reduce", *words])
    assert again.exception is not None and "already contains a run" in str(again.exception)
    resumed = CliRunner().invoke(app, ["reduce", *words, "--resume", "--json"], catch_exceptions=False)
    assert '"best": "deepreduce"' in resumed.stdout
