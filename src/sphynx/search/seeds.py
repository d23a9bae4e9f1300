"""A cell search from several seeds in one call: the spread, a ranking by retraining where one is asked for, a winner.

out/                 one seed: the run itself          out/seed-0, out/seed-1, ...   several seeds
out/genotype.json    the winner                        out/summary.json              all results, spread, ranking
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType

from sphynx.record import Record
from sphynx.run.folder import RunFolder
from sphynx.run.sweep import IN_TURN, Sweep
from sphynx.search.ranking import Ranked, Spread, spread
from sphynx.search.search import SearchResult
from sphynx.space.genotype import Genotype

SUMMARY = "summary.json"
NO_CELLS: Mapping[str, Genotype] = MappingProxyType({})


@dataclass(frozen=True)
class SearchSummary(Record):
    """The result of a cell search: the chosen cells, and those of every seed.

    >>> found = sphynx.search_cells("digits", out="runs/cells", seeds=2)  # doctest: +SKIP
    >>> found.chosen.normal, found.spread  # doctest: +SKIP
    """

    results: tuple[SearchResult, ...]
    spread: Spread  # of the supernets' held-out accuracy, and of the cells
    ranking: tuple[Ranked, ...]  # empty where nothing was retrained
    chosen: Genotype


def search_seeds(
    search: Callable[[int, Path], SearchResult],
    out: Path,
    seeds: Sequence[int],
    *,
    rank: Callable[[Mapping[str, Genotype], Mapping[str, Genotype]], tuple[Ranked, ...]] | None = None,
    beside: Mapping[str, Genotype] = NO_CELLS,
    drawn: Mapping[str, Genotype] = NO_CELLS,
    drawn_may_win: bool = False,
    sweep: Sweep = IN_TURN,
) -> SearchSummary:
    """`search(seed, folder)` runs one. The winner is the found cell that `rank` puts first, else the supernet's best.

    Those `beside` and those `drawn` at random are ranked with it for comparison. Where drawn ones may win, this is a
    random search by retraining (no shared weights).
    """
    folders = {seed: out if len(seeds) == 1 else out / f"seed-{seed}" for seed in seeds}
    results = tuple(sweep.map({f"seed {seed}": partial(search, seed, folders[seed]) for seed in seeds}))
    ranking: tuple[Ranked, ...] = ()
    if rank is not None:
        found = {f"{result.strategy}, seed {result.seed}": result.genotype for result in results}
        ranking = rank({**found, **beside}, drawn)
        may_win = {*found, *drawn} if drawn_may_win else {*found}
        chosen = next(entry.genotype for entry in ranking if entry.label in may_win)
    else:
        chosen = max(results, key=lambda result: result.held_out_accuracy).genotype
    summary = SearchSummary(
        results, spread([r.genotype for r in results], [r.held_out_accuracy for r in results]), ranking, chosen
    )
    chosen.save(out / "genotype.json")
    RunFolder(out).write_json(SUMMARY, summary.to_json())
    return summary
