"""Every row of docs/searches.md on what Algorithm 1 chose is what its file says."""

import json
import re
from pathlib import Path

import pytest
from scipy.stats import spearmanr

from sphynx.search.placement.doubt import doubt

ROOT = Path(__file__).parents[1]
PAGES = (ROOT / "docs/searches.md").read_text()


@pytest.mark.parametrize("depth", [5, 6, 8])
def test_chosen_placements_trace_to_their_searches(depth: int) -> None:
    beta = json.loads((ROOT / f"results/placement/d{depth}-fast.json").read_text())["beta"]
    (row,) = re.findall(rf"^\| {depth} \|(.+)\|$", PAGES, re.MULTILINE)
    candidates, minutes, chosen, strength, *_ = map(str.strip, row.split("|"))
    best = max(range(len(beta["placements"])), key=lambda n: float(beta["beta_hat"][-1][n]))
    assert (int(candidates), minutes) == (len(beta["placements"]), f"{beta['minutes']:.1f}")
    assert chosen == "({},{})".format(*beta["placements"][best]) == "({},{})".format(*beta["best"])
    assert float(strength) == pytest.approx(beta["beta_hat"][-1][best], abs=0.006)


TAU_1000 = re.findall(r"^\| D=(\d), seed (\d) \|(.+)\|$", PAGES, re.MULTILINE)


@pytest.mark.parametrize(("depth", "seed", "columns"), TAU_1000)
def test_placements_with_the_papers_temperature_trace_to_their_searches(depth: str, seed: str, columns: str) -> None:
    assert len(TAU_1000) == len(list((ROOT / "results/placement").glob("place-released-tau1000-*.json")))
    run = json.loads((ROOT / f"results/placement/place-released-tau1000-d{depth}-seed{seed}.json").read_text())
    beta, history = run["beta"], run["beta"]["beta_hat"]
    places = [tuple(place) for place in beta["placements"]]
    epochs, minutes, *shares, taken, held_out, ranks = map(str.strip, columns.split("|"))
    assert (int(epochs), minutes) == (len(history), f"{beta['minutes']:.1f}")
    rows = (history[len(history) // 2 - 1], history[int(0.9 * len(history)) - 1], history[-2], history[-1])
    assert shares == [f"{share:.3f}" for share in (1 / len(places), *map(max, rows))]
    assert taken == "({},{})".format(*beta["best"]) and doubt(places, history)
    by_place = dict(zip(places, beta["held_out_accuracy"], strict=True))
    best = sorted(places, key=by_place.__getitem__, reverse=True)[:2]
    assert held_out == ", ".join(f"({first},{second}) {100 * by_place[first, second]:.1f}" for first, second in best)
    assert (0, 1) in best
    if ranks != "-":
        alone = [ROOT / f"results/paper/short-c5-d{depth}-r{first}{second}.json" for first, second in places]
        trained = [json.loads(file.read_text())["result"]["accuracy"] for file in alone]
        assert ranks == f"{spearmanr(beta['held_out_accuracy'], trained).statistic:.2f}"
