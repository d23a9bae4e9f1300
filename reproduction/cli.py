"""`python -m reproduction run`: the paper's tables and figures, the paper's value beside ours."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reproduction.cli_extras import extras, latency_estimates, print_latency_estimates, print_saving
from sphynx.cli import options as opt
from sphynx.cli.output import count, print_json, print_table
from sphynx.cli.record_flags import meaning_of
from sphynx.errors import InputError
from sphynx.run.settings import SweepSettings

if TYPE_CHECKING:
    from reproduction.experiments import Experiment
    from reproduction.kept_searches import KeptPlacement
    from reproduction.outcomes import KeptResult, Ours, Outcome
    from reproduction.scales import Scale

COUNTED = ("relu-counts", "parameters", "latency-estimates")
ALL = "all"
_OF_TRAININGS = ("scale", "data", "results", "seeds", "run", "device", "ray")


def run_experiment(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="An experiment, `all`, or `list` for their names.")],
    scale: Annotated[str, typer.Option("--scale", help="smoke, fast (one GPU) or full (the paper's).")] = "smoke",
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for runs, tables and figures.")] = Path(
        "runs/reproduce"
    ),
    data: Annotated[
        list[str] | None, typer.Option("--data", help="A path, or NAME=PATH such as imagenet=PATH. May be repeated.")
    ] = None,
    results: Annotated[
        list[Path] | None, typer.Option("--results", help="Earlier results to show as well: a folder, or single files.")
    ] = None,
    seeds: Annotated[
        int | None, typer.Option("--seeds", min=1, help="Number of seeds. [default: 3 at full scale, otherwise 1]")
    ] = None,
    run: Annotated[
        bool, typer.Option("--run/--no-run", help="--no-run: show finished results and run nothing.")
    ] = True,
    device: opt.DeviceOption = "auto",
    ray: Annotated[str, typer.Option("--ray", metavar="ADDRESS", help=meaning_of(SweepSettings, "ray"))] = "",
    verbose: opt.Verbose = False,
    quiet: opt.Quiet = False,
    as_json: opt.Json = False,
) -> None:
    """Reproduce the paper's tables and figures: its values beside ours and, where they differ, why.

    Finished networks are not trained again: the same command continues an interrupted one.

    Examples:

      python -m reproduction run relu-counts

      python -m reproduction run placement

      python -m reproduction run cifar100 --scale full --data cifar100=cifar-100-python.tar.gz -o runs/paper

      python -m reproduction run cifar100 --no-run --results results

      python -m reproduction run all --scale smoke -o runs/smoke
    """
    from reproduction.experiments import EXPERIMENTS, experiment_named

    if name == "list":
        _list(as_json)
        return
    if name in COUNTED:
        opt.refuse_idle(context, _OF_TRAININGS, f"{name} is counted, not trained")
        rows = _count(name, out, quiet=as_json)
        if as_json:
            print_json(rows)
        return
    if name != ALL and name not in EXPERIMENTS:
        raise InputError(
            f"{name!r} is not a table or figure of the paper",
            remedy=f"Use one of {', '.join((*COUNTED, *EXPERIMENTS, ALL))}.",
        )
    from reproduction.keeping import PLACEMENTS
    from reproduction.kept_searches import read_placements
    from reproduction.outcomes import outcomes_to_json, read_kept
    from reproduction.reproduce import DataSets, Reproduction
    from reproduction.reproduction_figure import draw_outcomes
    from reproduction.scales import scale_named
    from sphynx.errors import NothingToRunError
    from sphynx.run.folder import RunFolder
    from sphynx.run.sweep import open_sweep
    from sphynx.run.work import pick_device
    from sphynx.train.processes import join_processes

    chosen, voice = scale_named(scale), opt.voice_for(verbose, quiet, as_json)
    kept = read_kept(results or [])
    placements = [search for path in results or [] for search in read_placements(path / PLACEMENTS)]
    made: list[dict[str, Any]] = []
    with join_processes(pick_device(device)) as processes, open_sweep(ray, voice) as sweep:
        if name == ALL and processes.leads:
            made += [{"name": counted, "rows": _count(counted, out, quiet=as_json)} for counted in COUNTED]
        reproduction = Reproduction(
            chosen,
            DataSets(_data_sets(data or []), chosen),
            out,
            processes=processes,
            seeds=seeds,
            kept=kept,
            run=run,
            voice=voice,
            sweep=sweep,
        )
        for experiment in EXPERIMENTS.values() if name == ALL else [experiment_named(name)]:
            try:
                outcomes = reproduction.run(experiment)
            except NothingToRunError as error:
                if name != ALL:
                    raise
                typer.echo(f"left out: {error}", err=True)
                continue
            if not processes.leads:
                continue
            made.append(outcomes_to_json(experiment, chosen, outcomes) | extras(experiment, chosen, outcomes))
            RunFolder(out).write_json(f"{experiment.name}.json", made[-1])
            figure = out / f"{experiment.name}.svg"
            figure.write_text(draw_outcomes(experiment, chosen, outcomes).to_svg())
            if not as_json:
                _print(experiment, chosen, outcomes, figure, kept, placements, with_estimates=name != ALL)
    if as_json and made:
        print_json(made if name == ALL else made[0])


def _data_sets(given: list[str]) -> dict[str, str]:
    """`imagenet=PATH`, or a PATH for whatever the experiment asks for."""
    from sphynx.report.naming import DATA_SETS

    found = {}
    for text in given:
        name, equals, path = text.partition("=")
        found[name if name in DATA_SETS and equals else ""] = path if name in DATA_SETS and equals else text
    return found


def _list(as_json: bool) -> None:
    from reproduction.experiments import EXPERIMENTS

    if as_json:
        print_json([*COUNTED, *EXPERIMENTS])
        return
    print_table(
        "What can be reproduced",
        ["name", "title", "where in the paper", ">rows"],
        [
            [COUNTED[0], "ReLU counts, every table", "all", "-"],
            [COUNTED[1], "Parameter counts", "appendix F.3", "-"],
            [COUNTED[2], "Latencies that the paper estimated", "section 5.2", "-"],
            *([e.name, e.title, e.source, str(len(e.rows))] for e in EXPERIMENTS.values()),
        ],
    )


def _print(
    experiment: Experiment,
    scale: Scale,
    outcomes: list[Outcome],
    figure: Path,
    kept: list[KeptResult],
    placements: list[KeptPlacement],
    *,
    with_estimates: bool,  # with `all` they are printed before
) -> None:
    from reproduction.deviation import deviations_of
    from reproduction.verdicts import verdict_on

    with_beta = any(outcome.row.beta is not None for outcome in outcomes)
    columns = ["series", "network", ">paper %", ">ours %", *([">paper beta", ">our beta"] if with_beta else [])]
    columns += ["ran", ">ReLUs", "made", "note"]
    rows = []
    for outcome in outcomes:
        row = outcome.row
        for number, ours in enumerate((outcome.ours, *outcome.kept)):
            if number and ours is None:
                continue
            betas = [_plain(row.beta), _plain(ours.beta[-1] if ours and ours.beta else None)] if with_beta else []
            note = row.note if not number else f"kept: {ours.folders[0]}" if ours else ""
            paper = "-" if row.accuracy is None else _write_spread(row.accuracy, row.std)
            rows.append([row.series, row.label, paper, _ours(ours), *betas, *_ran(ours, outcome), note])
    # Kept results were made at no scale: what smoke does not prove, they may.
    ran = any(outcome.ours for outcome in outcomes)
    print_table(experiment.title, columns, rows, note=f"{scale.meaning}." if ran else "Nothing was run at this scale.")
    print_saving(scale, outcomes)
    if with_estimates:
        print_latency_estimates(experiment.name)
    typer.echo(f"{experiment.told_claim} ({experiment.source})")
    if any(outcome.kept for outcome in outcomes):
        judged = verdict_on(experiment, outcomes, deviations_of(kept), placements)
        typer.echo(f"Our kept runs: {judged.word}. {judged.told}")
    for note in experiment.notes:
        typer.echo(f"- {note}")
    typer.echo(f"figure: {figure}")


def _ran(ours: Ours | None, outcome: Outcome) -> list[str]:
    if ours is None:
        return [outcome.missing, "", ""]
    epochs = "one epoch" if ours.epochs == 1 else f"{ours.epochs} epochs"
    differs = f"; unlike the paper: {', '.join(ours.differs)}" if ours.differs else ""
    return [f"{ours.network}; {epochs} of {ours.data}{differs}", count(ours.relus), str(ours.made)]


def _ours(ours: Ours | None) -> str:
    if ours is None:
        return "-"
    return _write_spread(ours.accuracy, ours.std) + (f" (n={ours.seeds})" if ours.seeds > 1 else "")


def _write_spread(value: float, std: float | None) -> str:
    return f"{value:.2f}" if std is None else f"{value:.2f} ± {std:.2f}"


def _plain(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _count(name: str, out: Path, *, quiet: bool) -> Any:
    """These need neither data nor training nor torch: table and JSON at once, and a figure of counts."""
    import json

    out.mkdir(parents=True, exist_ok=True)
    if name == COUNTED[2]:
        estimates = latency_estimates(quiet=quiet)
        (out / f"{name}.json").write_text(json.dumps(estimates, indent=2) + "\n")
        return estimates
    from reproduction.counts_figure import draw_counts
    from reproduction.tables import parameter_rows, relu_count_rows

    rows = relu_count_rows() if name == "relu-counts" else parameter_rows()
    title, unit = ("ReLU counts", "ReLUs") if name == "relu-counts" else ("Parameter counts", "parameters")
    found = [{**vars(row), "agrees": row.agrees, "verdict": row.verdict} for row in rows]
    (out / f"{name}.json").write_text(json.dumps(found, indent=2) + "\n")
    figure = out / f"{name}.svg"
    figure.write_text(draw_counts(f"{title}, every table of the paper", rows, unit).to_svg())
    if quiet:
        return found
    for table in dict.fromkeys(row.table for row in rows):
        print_table(
            table,
            ["network", ">paper", f">our {unit}", "verdict", "note"],
            ([row.network, row.printed, count(row.ours), row.verdict, row.note] for row in rows if row.table == table),
        )
    agreeing = sum(row.agrees for row in rows)
    rest = "." if agreeing == len(rows) else "; the note of each other row says why it does not."
    typer.echo(f"{agreeing} of {len(rows)} rows agree to the printed digit{rest}")
    typer.echo(f"figure: {figure}")
    return found
