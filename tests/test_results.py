"""Every row of docs/results.md, searches.md and experiments.md is what its file says; estimates explain latencies."""

import json
import re
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from statistics import mean, median, stdev
from typing import Any

import pytest
from benchmarks.beside import read_kept

from sphynx.bench.private_models import UNTRAINED_PRECISION, untrained_design
from sphynx.compiler.latency import design_estimate
from sphynx.data.catalogue import CATALOGUE
from sphynx.program.backends import Backend
from sphynx.program.cost.estimate import LayerTime, estimate
from sphynx.program.cost.link import LINKS
from sphynx.program.cost.rates import REFERENCE, Rates
from sphynx.program.extensions import every_extension
from sphynx.program.folder import load_program
from sphynx.protocol.planned_he import planned_he
from sphynx.search.stopping import cells_without_convolution
from sphynx.space.design import Design
from sphynx.space.files import load_any_design
from sphynx.space.genotype import Genotype
from sphynx.zoo.shipped import load_card, model_names, program_path

OWN_SEARCHES = ("darts-paper", "gaea-early-seed0", "gaea-early-seed1", "darts-early")
ROOT = Path(__file__).parents[1]
PAGES = "".join((ROOT / "docs" / name).read_text() for name in ("results.md", "searches.md"))
ROWS = re.findall(r"^\| `([\w.-]+)` \|(.+)\|$", (ROOT / "docs/experiments.md").read_text(), re.MULTILINE)


def test_there_are_rows() -> None:
    assert len(ROWS) >= 10


@pytest.mark.parametrize(("name", "columns"), ROWS, ids=[name for name, _ in ROWS])
def test_row_traces_to_its_run(name: str, columns: str, tmp_path: Path) -> None:
    run = _run(name)
    columns_of_row = (column.strip() for column in columns.split("|"))
    relus, stack, epochs, batch, drop, mixup, decay, teacher, train, held_out, test, seconds, minutes = columns_of_row
    recipe, design, metrics = run["config"]["recipe"], run["config"]["design"], run["metrics"]
    design_file = tmp_path / "design.json"
    design_file.write_text(json.dumps(design))
    assert relus == f"{load_any_design(design_file).account.total.relus / 1000:.3g}K"
    assert stack == design.get("conv_stack", "none")
    assert int(epochs) == recipe["epochs"] == len(metrics) == run["result"]["epochs"]
    assert int(batch) == recipe["batch_size"]
    assert float(drop) == recipe["drop_path"]
    assert float(mixup) == recipe.get("mixup", 0)
    assert float(decay) == recipe["weight_decay"]
    assert (teacher == "none") == (run["config"]["teacher"] is None)
    assert float(train) == pytest.approx(100 * metrics[-1]["train_accuracy"], abs=0.006)
    assert held_out == f"{100 * metrics[-1]['held_out_accuracy']:.2f}" if recipe["held_out"] else held_out == ""
    assert float(test.strip("*")) == pytest.approx(100 * run["result"]["accuracy"], abs=0.006)
    median_seconds = sorted(row["seconds"] for row in metrics)[len(metrics) // 2]
    assert float(seconds) == pytest.approx(median_seconds, abs=0.006)
    assert float(minutes) == pytest.approx(run["result"]["minutes"], abs=0.06)


# What a row of accuracies is called in results.md, and the runs that experiments.md names for it.
HEADLINE = [
    (relus, what.strip(), re.findall("`(.+?)`", runs))
    for relus, what, runs in re.findall(
        r"^\| ([\d.]+K) \|(.+)\|(.+)\|$",
        (ROOT / "docs/experiments.md").read_text().partition("## Runs of the results")[2],
        re.MULTILINE,
    )
]


def test_headline_accuracies_are_those_of_the_runs_they_name() -> None:
    accuracies = PAGES.partition("## Accuracy on CIFAR-100")[2].partition("## Searches")[0]
    rows = re.findall(r"^\| ([\d.]+K) \|(.+)\|$", accuracies, re.MULTILINE)
    assert len(rows) == len(HEADLINE) >= 15
    for (relus, columns), (named_relus, named, names) in zip(rows, HEADLINE, strict=True):
        *_, what, ours, _ = columns.split("|")
        assert relus == named_relus and what.strip().startswith(named) and "`" not in columns
        runs = [_run(name) for name in names]
        assert ours.strip() == ", ".join(f"{100 * run['result']['accuracy']:.2f}" for run in runs)
        (epochs,) = {run["result"]["epochs"] for run in runs}
        assert f"{epochs} epochs" in what


def test_the_networks_called_shipped_are_those_that_come_with_sphynx() -> None:
    page = (ROOT / "docs/experiments.md").read_text()
    named = re.findall(r"`([\w-]+)`; shipped", page)
    runs = [_run(name)["result"] for name in named]
    cards = [card for card in map(load_card, model_names()) if card["data"]["name"] in CATALOGUE]
    assert sorted((r["parameters"], r["accuracy"]) for r in runs) == sorted(
        (c["parameters"], c["accuracy"]) for c in cards
    )
    others = re.findall(r"`([\w-]+)`[^`]*? is the shipped", page)
    assert set(others) <= set(named)


def test_ranking_row_traces_to_its_design() -> None:
    result = json.loads((ROOT / "results/design/cifar100-25k-gaea.json").read_text())["result"]
    assert _numbers_of_row("held-out accuracy, %") == [round(100 * row["held_out"], 2) for row in result["ranking"]]
    assert f"{sum(result['minutes'].values()):.1f} minutes of one H200" in PAGES


def test_cells_of_our_own_trace_to_their_searches() -> None:
    kept = {name: json.loads((ROOT / f"results/search/{name}.json").read_text()) for name in OWN_SEARCHES}
    assert cells_without_convolution(Genotype.from_json(kept["darts-paper"]["genotype"])) == ["normal", "reduce"]
    assert len(kept["darts-paper"]["metrics"]) == kept["darts-paper"]["config"]["recipe"]["epochs"] == 50
    collapsed = [row["convolutions"] == 0 for row in kept["darts-paper"]["metrics"]]
    assert collapsed == [False] * 6 + [True] * 44  # "from the seventh epoch on"
    page = PAGES
    minutes = [sum(row["seconds"] for row in run["metrics"]) / 60 for run in kept.values()]
    assert f"{minutes[0]:.0f} here, as" in page and f"({minutes[1]:.1f} and {minutes[2]:.1f} minutes" in page
    assert f"({minutes[3]:.1f} minutes on a shared GPU; file `results/search/darts-early.json`)" in page
    assert cells_without_convolution(Genotype.from_json(kept["darts-early"]["genotype"])) == ["normal"]


@pytest.mark.parametrize(
    ("file", "title", "row", "epochs"),
    [
        ("ranking-early", "held-out accuracy of cells, %", "after a training of 5 epochs", 5),
        ("ranking-early", "held-out accuracy of cells, %", "after a training of 15 epochs", 15),
        ("ranking-darts", "held-out accuracy of all cells, %", "trained for 15 epochs", 15),
    ],
)
def test_rankings_of_cells_trace_to_their_trainings(file: str, title: str, row: str, epochs: int) -> None:
    page = PAGES
    labels, values = (re.findall(rf"^\| {start} \|(.+)\|$", page, re.MULTILINE)[0].split("|") for start in (title, row))
    ranking = json.loads((ROOT / f"results/search/{file}.json").read_text())["ranking"]
    assert {name.strip(): value.strip() for name, value in zip(labels, values, strict=True)} == {
        _shown_label(entry["label"]): next(
            (f"{100 * one['accuracy']:.2f}" for one in entry["trainings"] if one["epochs"] == epochs), "-"
        )
        for entry in ranking
    }


def test_whole_trainings_of_cells_are_those_of_the_runs_they_name() -> None:
    """Rows of found cells name their runs; the row of published cells is the mean of the headline's three seeds."""
    page = PAGES
    headline = [names for relus, _, names in HEADLINE if relus == "25.6K"]
    shown = re.findall(r"^\| published \(three seeds each, above\) \| (.+) \| (.+) \|$", page, re.MULTILINE)
    assert list(shown[0]) == [_mean_and_deviation(names) for names in headline] and len(headline) == 2
    assert all(text in page for text in (f"{shown[0][0]} from labels", f"{shown[0][1]} with the teacher"))

    rows = re.findall(r"^\| GAEA, seed (\d) \((.+)\) \|(.+)\|(.+)\|$", page, re.MULTILINE)
    assert len(rows) == 2
    for seed, names, labels, teacher in rows:
        genotype = json.loads((ROOT / f"results/search/gaea-early-seed{seed}.json").read_text())["genotype"]
        runs = [_run(name) for name in re.findall("`(.+?)`", names)]
        assert all(run["config"]["design"]["genotype"]["normal"] == genotype["normal"] for run in runs)
        for column, taught in ((labels, False), (teacher, True)):
            found = [run["result"]["accuracy"] for run in runs if (run["config"]["teacher"] is not None) == taught]
            assert column.strip() == ", ".join(f"{100 * accuracy:.2f}" for accuracy in found)


def _mean_and_deviation(names: list[str]) -> str:
    accuracies = [100 * _run(name)["result"]["accuracy"] for name in names]
    assert len({_run(name)["config"]["seed"] for name in names}) == len(names) == 3
    return f"{mean(accuracies):.2f} +- {stdev(accuracies):.2f}"


def _run(name: str) -> dict[str, Any]:
    (path,) = (path for kind in ("cifar100", "stream") if (path := ROOT / f"results/{kind}/{name}.json").is_file())
    run: dict[str, Any] = json.loads(path.read_text())
    return run


def _shown_label(label: str) -> str:
    words = {"sphynx": "published", "gaea": "GAEA", "darts": "DARTS", "random cells": "random"}
    return next((label.replace(word, shown, 1) for word, shown in words.items() if label.startswith(word)), label)


ESTIMATE_TOLERANCE = 0.25


@lru_cache
def _estimated(model: str, backend: Backend, link: str) -> LayerTime:
    """On the two cores of the reference machine; of a network that does not come with Sphynx by its shapes."""
    rates = replace(REFERENCE, cores=2)
    if model.startswith("sphynx-"):
        return estimate(load_program(program_path(model)), rates, LINKS[link], backend).total
    design = untrained_design(model.split()[0], "single")
    assert isinstance(design, Design)
    return design_estimate(design, rates, LINKS[link], backend, UNTRAINED_PRECISION).total


@pytest.mark.parametrize("name", ["loopback", "lan-wan"])
def test_reference_rates_explain_what_their_machine_measured(name: str) -> None:
    """Only garbled circuits are compared: GMW has other messages since."""
    for row in json.loads((ROOT / f"results/private/{name}.json").read_text())["rows"]:
        if row["backend"] != "gc":
            continue
        found = _estimated(row["model"], row["backend"], row["link"])
        case = (row["model"], row["backend"], row["link"])
        assert found.online_seconds == pytest.approx(row["online_s"], rel=ESTIMATE_TOLERANCE), case
        assert found.offline_seconds == pytest.approx(row["offline_s"], rel=ESTIMATE_TOLERANCE), case


def test_estimates_explain_what_was_measured() -> None:
    """In the middle: a row by itself is as uncertain as the speed of a virtual machine. Networks of the zoo do not come
    with Sphynx."""
    extensions = {str(one): one for one in every_extension()}
    ratios = []
    for row in read_kept(ROOT / "results/speed/estimates.json").rows:
        if row.network in model_names():
            program, rates = load_program(program_path(row.network)), Rates.from_json(dict(row.rates))
            planned = planned_he(program)
            found = estimate(program, rates, LINKS[row.link], row.backend, extensions[row.ot], planned=planned).total
            ratios.append((found.online_seconds / row.online_s, found.offline_seconds / row.offline_s))
    assert [median(of_phase) for of_phase in zip(*ratios, strict=True)] == pytest.approx([1, 1], rel=ESTIMATE_TOLERANCE)


def test_estimated_bytes_in_the_docs_are_those_counted() -> None:
    text = " ".join((ROOT / "docs/compiler.md").read_text().split())
    found = re.search(
        r"using GMW ([\d.]+) KB, .+? counts ([\d.]+) KB .+? offline ([\d.]+) MB where it counts ([\d.]+)\.", text
    )
    rows = json.loads((ROOT / "results/private/emulated.json").read_text())["rows"]
    case = ("sphynx-cifar100-25k", "gmw", "loopback")
    (row,) = (r for r in rows if (r["model"], r["backend"], r["link"]) == case)
    estimated = _estimated("sphynx-cifar100-25k", "gmw", "loopback")
    online_kb = (estimated.online_bytes / 1e3, row["online_bytes"] / 1e3)
    offline_mb = (estimated.offline_bytes / 1e6, row["offline_bytes"] / 1e6)
    assert found and [float(shown) for shown in found.groups()] == pytest.approx([*online_kb, *offline_mb], abs=0.051)


def _numbers_of_row(heading: str) -> list[float]:
    (row,) = re.findall(rf"^\| {re.escape(heading)} \|(.+)\|$", PAGES, re.MULTILINE)
    return [float(value) for value in row.split("|")]


def test_placement_row_traces_to_its_search() -> None:
    beta = json.loads((ROOT / "results/placement/d5-fast-gumbel.json").read_text())["beta"]
    assert _numbers_of_row("held-out accuracy at the end, %") == pytest.approx(
        [100 * accuracy for accuracy in beta["held_out_accuracy"]], abs=0.06
    )
    assert _numbers_of_row("beta_hat at the end") == pytest.approx(beta["beta_hat"][-1], abs=0.006)


def test_search_rows_trace_to_their_benchmark() -> None:
    for row in json.loads((ROOT / "results/speed/search-lanes-h200.json").read_text())["rows"]:
        floor = max(row["floor_flops_seconds"], row["floor_bytes_seconds"])
        shown = _numbers_of_row(f"{row['what']} | {row['how']}")
        assert shown == pytest.approx([row["epoch_seconds"], floor, row["times_floor"]], abs=0.06)


def test_kernel_counts_trace_to_their_profiles() -> None:
    for name in ("train-b512", "darts"):
        _, kernels = re.findall(r"\d+", (ROOT / f"results/speed/kernels-{name}-h200.txt").read_text())[:2]
        assert f"{int(kernels):,} kernels" in PAGES


def test_speed_rows_trace_to_their_benchmark() -> None:
    rows = json.loads((ROOT / "results/speed/train-h200.json").read_text())["rows"]
    for row in rows:
        floor = max(row["floor_flops_seconds"], row["floor_bytes_seconds"])
        shown = _numbers_of_row(f"{row['what'].removeprefix('train ')} | {row['batch']}")
        assert shown == pytest.approx([row["epoch_seconds"], floor, row["times_floor"]], abs=0.06)


def test_scaling_rows_trace_to_their_benchmark() -> None:
    scaling = json.loads((ROOT / "results/private/scaling.json").read_text())
    assert len(scaling["rows"]) >= 10 and all(row["equal_to_oracle"] for row in scaling["rows"])
    for row in scaling["rows"]:
        shown = _numbers_of_row(f"{row['relus']:,} | {row['backend']}")
        expected = [row["ring_bits"], 1e3 * row["online_s"], row["offline_s"], 1e3 * row["plaintext_s"]]
        assert shown == pytest.approx(expected, abs=0.06)
    for fit in scaling["fits"]:
        shown = _numbers_of_row(f"{fit['backend']}, {fit['phase']}")
        assert shown == pytest.approx([1e3 * fit["intercept_s"], 1e6 * fit["s_per_relu"], fit["r_squared"]], abs=0.06)


def test_the_readme_has_the_measured_latencies() -> None:
    readme = (ROOT / "README.md").read_text()
    rows = {
        (row["model"], row["backend"]): row
        for row in json.loads((ROOT / "results/private/streams.json").read_text())["rows"]
    }
    models = dict.fromkeys(model for model, _ in rows)
    shown = re.findall(r"^\| ([a-z]+-cifar100-\w+) \|.+$", readme, re.MULTILINE)
    assert shown == list(models)
    for model in models:
        gmw, gc = rows[model, "gmw"], rows[model, "gc"]
        clear_s = min(row["plaintext_s"] for row in (gmw, gc))
        times_s = (clear_s, gmw["online_s"], gc["online_s"], gmw["offline_s"])
        accuracy = 100 * load_card(model)["evaluation"]["accuracy"]
        times = " | ".join(f"{1e3 * seconds:,.0f} ms" for seconds in times_s)
        assert f"| {model} | {gmw['relus']:,} | {accuracy:.1f} % | {times} |" in readme
    for fit in json.loads((ROOT / "results/private/scaling.json").read_text())["fits"]:
        if fit["phase"] == "online":
            assert f"{1e6 * fit['s_per_relu']:.1f} us" in readme


def test_a_stream_and_cells_of_as_many_relus_trace_to_their_benchmark() -> None:
    stream, cells = json.loads((ROOT / "results/private/stream-beside-cells.json").read_text())["rows"]
    (online, offline), (cells_online, cells_offline) = ((row["online_s"], row["offline_s"]) for row in (stream, cells))
    shown = (
        f"medians of {stream['repeats']} in four passes, GMW), the stream network takes {1e3 * online:.1f} ms online "
        f"and {1e3 * offline:.0f} ms offline, the cells {1e3 * cells_online:.1f} and {1e3 * cells_offline:.0f}: "
        f"{online / cells_online:.2f} and {offline / cells_offline:.2f} times."
    )
    assert shown in " ".join(PAGES.split())
