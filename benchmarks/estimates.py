"""Private inference measured beside its estimates: `python -m benchmarks.estimates NETWORK ...`.

    python -m benchmarks.estimates stream-cifar100-25k resnet18-64 --backend gc,gmw --link loopback,lan,wan \\
        -o results/speed/estimates.json

A machine's speed changes while it is measured: the rates of a row (`sphynx estimate`) are the means of those measured
before it and after it. Where the two differ by more than STEADY the row is measured again, up to ATTEMPTS times, and
the steadiest attempt is kept; what it is compared with plays no part in that. Nothing is fitted to any row. Networks
are names of models, compiled folders, or those of the zoo, which are compiled first (`--programs` keeps them).
`docs/make_estimates.py` makes the page.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.beside import STEADY, Beside, BesideRun, drift, mean_rates, read_kept
from benchmarks.zoo import compiled_entry
from benchmarks.zoo_networks import ZOO, as_data, network
from sphynx.bench.calibrate import measure_rates
from sphynx.bench.private import measure_private
from sphynx.bench.private_models import Model, compiled_model
from sphynx.bench.private_parties import OpenChannel
from sphynx.bench.results import BenchRow
from sphynx.cli.bench_options import describe_run, links_for
from sphynx.cli.options import parse_backends
from sphynx.program.backends import Backend
from sphynx.program.cost.deployment import Deployment
from sphynx.program.cost.estimate import LayerTime, estimate
from sphynx.program.cost.link import LINKS, Link
from sphynx.program.cost.rates import Rates
from sphynx.program.extensions import every_extension
from sphynx.program.folder import load_program
from sphynx.protocol.planned_he import planned_he
from sphynx.service.local import make_local_keys

ATTEMPTS = 3


def measure_beside(
    models: Iterable[Model], backends: Iterable[Backend], links: Mapping[str, Link | None], measure: Measure
) -> Iterator[Beside]:
    """Yield the row of each as soon as it is measured."""
    after = measure.rates()
    for model in models:
        for backend in backends:
            for name, link in links.items():
                attempts: list[tuple[float, BenchRow, Rates]] = []
                while len(attempts) < ATTEMPTS and all(change > STEADY for change, _, _ in attempts):
                    before, row, after = after, measure.row(model, backend, name, link), measure.rates()
                    attempts.append((drift(before, after), row, mean_rates(before, after)))
                change, row, rates = min(attempts, key=lambda attempt: attempt[0])
                yield beside(model, backend, row, rates, change, link or LINKS["loopback"])


@dataclass(frozen=True)
class Measure:
    """How rates and rows are measured."""

    open_channel: OpenChannel
    repeats: int

    def rates(self) -> Rates:
        return measure_rates(self.open_channel)

    def row(self, model: Model, backend: Backend, name: str, link: Link | None) -> BenchRow:
        kind = [model], [backend], {name: link}
        (row,) = measure_private(*kind, repeats=self.repeats, batch=1, open_channel=self.open_channel)
        return row


def beside(model: Model, backend: Backend, row: BenchRow, rates: Rates, change: float, link: Link) -> Beside:
    found = estimated(model, backend, row, rates, link)
    work = estimated(model, backend, row, replace(rates, cores=1), LINKS["loopback"])
    return Beside(
        row.model,
        backend,
        row.link,
        row.ot,
        row.offline_s,
        row.online_s,
        row.offline_cpu_s,
        found.offline_seconds,
        found.online_seconds,
        work.offline_seconds,
        change,
        rates.to_json(),
    )


def estimated(model: Model, backend: Backend, row: BenchRow, rates: Rates, link: Link) -> LayerTime:
    program = load_program(model.folder)
    made = {str(one): one for one in every_extension()}[row.ot]
    return estimate(program, rates, link, backend, made, planned=planned_he(program)).total


def models_named(names: Iterable[str], folder: Path) -> Iterator[Model]:
    """Without their designs: nothing is timed in the clear."""
    known = {entry.name: entry for entry in ZOO}
    for name in names:
        if name in known and not (folder / name).is_dir():
            data = as_data(known[name].size)
            compiled_entry(known[name], network(known[name], data), data, Deployment("gmw")).save(folder / name)
        model = compiled_model(str(folder / name) if name in known else name, print)
        yield replace(model, name=name, design=None)


def main() -> None:
    parse = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parse.add_argument("networks", nargs="+")
    parse.add_argument("--backend", default="gc,gmw")
    parse.add_argument("--link", default="loopback,lan,wan")
    parse.add_argument("--repeat", type=int, default=5)
    parse.add_argument("--programs", type=Path, help="a folder that keeps compiled networks of the zoo")
    parse.add_argument("-o", "--out", type=Path, help="a JSON file of the rows")
    parse.add_argument("--add", action="store_true", help="to the rows that the file has, measured on the same machine")
    told = parse.parse_args()
    if told.add and not (told.out and told.out.is_file()):
        parse.error("--add needs --out with a file that is there")
    machine, source = describe_run()
    kept = read_kept(told.out) if told.add else BesideRun(machine, source, ())
    if (kept.source.source_sha256, kept.machine.system) != (source.source_sha256, machine.system):
        parse.error(f"{told.out}: its rows are of another version, or of another machine; give another file")
    with tempfile.TemporaryDirectory(prefix="sphynx-estimates-") as temporary:
        folder = Path(temporary)
        models = list(models_named(told.networks, told.programs or folder))
        measure = Measure(make_local_keys(folder / "keys").open_channel, told.repeat)
        rows = [*kept.rows]
        for row in measure_beside(models, parse_backends(told.backend, "--backend"), links_for(told.link), measure):
            rows.append(row)
            print(
                f"{row.network}, {row.backend}, {row.link}: online {row.online_ratio:.2f}, offline "
                f"{row.offline_ratio:.2f}, its CPU {row.offline_cpu_ratio:.2f} of measured; drift {row.drift:.2f}",
                flush=True,
            )
            if told.out:
                told.out.write_text(
                    json.dumps(BesideRun(kept.machine, kept.source, tuple(rows)).to_json(), indent=1) + "\n"
                )


if __name__ == "__main__":
    main()
