"""Sources of a report: run folders (train, search, place, design), results files, models by name, and the JSON that
`sphynx bench` and `sphynx check` print. Each input says by its content what it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from sphynx.bench.results import BenchRow, ThroughputRow
from sphynx.design.results import DesignResult
from sphynx.errors import InputError
from sphynx.record import Record
from sphynx.report.measured import BenchEntry, Ranges, Scaling
from sphynx.run.folder import RunFolder
from sphynx.run.stages import STAGES
from sphynx.space.artifact import CARD, kind_of
from sphynx.space.files import AnyDesign, any_design_from_json
from sphynx.space.genotype import Genotype
from sphynx.space.json_file import read_json
from sphynx.zoo.shipped import load_card, model_path

CONFIG, RESULT, ENVIRONMENT, BETA = "config.json", "result.json", "environment.json", "beta.json"
DESIGN = "design.json"
RUN_FILES = (CONFIG, RESULT, ENVIRONMENT, BETA, DESIGN, STAGES, "normalisation.json", "genotype.json", "data.json")
PRIVATE_KEYS = ("model", "backend", "online_s")

Role = Literal["own", "comparison", "teacher"]  # what the page is about, and what stands beside it


@dataclass(frozen=True, kw_only=True)
class Score(Record):
    """The part that a report reads of a run's result or of a model's card."""

    accuracy: float  # on test images, at the final epoch
    top5: float | None = None
    test_images: int | None = None
    data: str | None = None
    seed: int
    minutes: float


@dataclass(frozen=True)
class TrainingRun:
    name: str
    design: AnyDesign
    config: Mapping[str, Any]
    metrics: Sequence[Mapping[str, Any]]
    environment: Mapping[str, Any]
    result: Score | None  # None: not finished
    role: Role = "own"

    @property
    def relus(self) -> int:
        return self.design.account.total.relus

    @property
    def accuracy(self) -> float | None:
        """Percent, on test images, at the final epoch."""
        return None if self.result is None else 100 * self.result.accuracy

    @property
    def epochs(self) -> int:
        """Epochs that were run; a model's card keeps no curves, only its recipe."""
        return len(self.metrics) or int(self.config["recipe"]["epochs"])

    @property
    def distilled(self) -> bool:
        return self.config.get("teacher") is not None

    @property
    def data(self) -> Mapping[str, Any]:
        data: Mapping[str, Any] = self.config["data"]
        return data

    @property
    def data_name(self) -> str:
        """A finished run's result may have a better name for its data than the folder it was read from."""
        return str((self.result.data if self.result is not None else None) or self.data["name"])


@dataclass(frozen=True)
class PlacementRun:
    name: str
    placements: Sequence[tuple[int, ...]]
    beta_hat: Sequence[Sequence[float]]  # per epoch, per placement
    environment: Mapping[str, Any]
    by_losses: bool = False  # not by the paper's gradient


@dataclass(frozen=True)
class CellSearch:
    name: str
    strategy: str
    genotype: Genotype
    held_out: Sequence[float]  # the supernet's accuracy after each epoch
    environment: Mapping[str, Any]


@dataclass(frozen=True)
class DesignRun:
    """A result of `sphynx design`: its plan, and its network beside others of the same plan."""

    name: str
    result: DesignResult
    environments: Sequence[Mapping[str, Any]] = ()  # of its stages


@dataclass(frozen=True)
class ScalingRun:
    """Measurements of `python -m benchmarks.scaling`."""

    results: Scaling
    environment: Mapping[str, Any]


@dataclass(frozen=True)
class RangeCheck:
    """Output of `sphynx check --json`: the bits that each linear map was given, used, and could need."""

    name: str
    found: Ranges
    data: str = ""
    environment: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class Sources:
    training: list[TrainingRun] = field(default_factory=list)
    placements: list[PlacementRun] = field(default_factory=list)
    searches: list[CellSearch] = field(default_factory=list)
    designs: list[DesignRun] = field(default_factory=list)
    private: list[BenchEntry[BenchRow]] = field(default_factory=list)
    throughput: list[BenchEntry[ThroughputRow]] = field(default_factory=list)  # rows of `sphynx bench throughput`
    scaling: list[ScalingRun] = field(default_factory=list)
    checks: list[RangeCheck] = field(default_factory=list)
    compiled: list[Path] = field(default_factory=list)  # folders of `sphynx compile`, of ONNX networks too


def read_sources(paths: Sequence[Path]) -> Sources:
    """The page is about the first path's runs; those of further paths are for comparison."""
    found = Sources()
    for given in paths:
        before = len(found.training)
        path = given if given.suffix == ".json" else model_path(given)
        if (path / CARD).is_file():
            found.training.append(_model(path))
        elif kind_of(path) == "compiled":
            found.compiled.append(path)
        elif path.is_dir():
            _read_folder(path, found)
        else:
            _read_file(path, read_json(path), found)
        if before or (found.compiled and found.compiled[0] != path):
            found.training[before:] = [replace(run, role="comparison") for run in found.training[before:]]
    found.training.sort(key=lambda run: run.role != "own")
    return found


def add_beside(paths: Sequence[Path], found: Sources) -> list[Path]:
    """Benchmarks and checks that lie in a run's folder or beside it, and are of that run; returns their files."""
    added: list[Path] = []
    for given in paths:
        folder = given if given.is_dir() else given.parent
        if not given.exists() or given.suffix == ".json" or (given / CARD).is_file():
            continue
        name, given_files = folder.resolve().name, {path.resolve() for path in paths}
        for file in sorted([*folder.glob("*.json"), *folder.resolve().parent.glob("*.json")]):
            if file.resolve() in given_files or file.name in RUN_FILES or file in added:
                continue
            if _belongs(file, name):
                _read_file(file, read_json(file), found)
                added.append(file)
    return added


def _belongs(file: Path, name: str) -> bool:
    """Return whether a file is a benchmark or a check of the network of this name; false where it cannot be read."""
    try:
        data = read_json(file)
    except InputError:
        return False
    if not isinstance(data, Mapping):
        return False
    if {"layers", "images", "accuracy"} <= data.keys():
        return Path(str(data.get("compiled", ""))).name == name
    rows = data.get("rows")
    kinds = PRIVATE_KEYS, ("model", "inferences_per_s")
    return isinstance(rows, list) and any(
        isinstance(row, Mapping) and row.get("model") == name and any(set(kind) <= row.keys() for kind in kinds)
        for row in rows
    )


def _model(folder: Path) -> TrainingRun:
    """A packed model: what its card says of the run that it was."""
    card = load_card(folder.name, folder.parent)
    design = any_design_from_json(read_json(folder / DESIGN), where=str(folder / DESIGN))
    environment = {**card["provenance"], "device": card["device"]}
    score = Score.from_json({**card, "data": card["data"]["name"]}, where=str(folder / CARD))
    return TrainingRun(card["name"], design, card, (), environment, score)


def _read_folder(path: Path, found: Sources) -> None:
    """A run, or a folder of runs or results files at any depth."""
    configs = sorted(path.rglob(CONFIG))
    if not configs:
        files = sorted(path.glob("*.json"))
        if not files:
            raise InputError(
                "it contains neither a run nor a results file", where=str(path), remedy="Give a run folder."
            )
        for file in files:
            _read_file(file, read_json(file), found)
    for stages in sorted(path.rglob(STAGES)):
        file = stages.parent / RESULT
        described = read_json(file) if file.is_file() else None
        if described is not None and "family" not in described:  # of a stream its trainings say everything
            environments = [read_json(file) for file in sorted(stages.parent.rglob(ENVIRONMENT))]
            result = DesignResult.from_json(described, where=str(file))
            found.designs.append(DesignRun(stages.parent.name, result, environments))
    for config in configs:
        folder = config.parent
        name = path.name if folder == path else f"{path.name}/{folder.relative_to(path)}"
        _read_run(folder, name, found)


def _read_run(folder: Path, name: str, found: Sources) -> None:
    run = RunFolder(folder)
    config = run.read_json(CONFIG)
    environment = run.read_json(ENVIRONMENT) if (folder / ENVIRONMENT).is_file() else {}
    result = run.read_json(RESULT) if (folder / RESULT).is_file() else None
    if config.get("stage") == "search":
        if result is not None:
            held_out = [float(row["held_out"]) for row in run.read_metrics()]
            genotype = Genotype.from_json(result["genotype"], where=str(folder / RESULT))
            found.searches.append(CellSearch(name, config["strategy"], genotype, held_out, environment))
    elif config.get("stage") == "place":
        if (folder / BETA).is_file():
            beta = run.read_json(BETA)
            places = [tuple(place) for place in beta["placements"]]
            by_losses = config["recipe"].get("estimator") == "losses"
            found.placements.append(PlacementRun(name, places, beta["beta_hat"], environment, by_losses))
    elif "stage" not in config and config.get("scored_on", "test") == "test":  # else of a ranking, or an allocation
        design = any_design_from_json(config["design"], where=str(folder / CONFIG))
        score = None if result is None else Score.from_json(result, where=str(folder / RESULT))
        role = _role(name)
        found.training.append(TrainingRun(name, design, config, run.read_metrics(), environment, score, role))


def _role(name: str) -> Role:
    """Tell a run's role by its place below the folder that was given."""
    below = name.split("/")[1:]
    return "teacher" if "teacher" in below else "comparison" if "comparison" in below else "own"


def _read_file(path: Path, data: Any, found: Sources) -> None:
    where = str(path)
    about: Mapping[str, Any] = data if isinstance(data, Mapping) else {}
    rows = about.get("rows", data)
    if isinstance(data, Mapping) and _is_private(data):
        rows = [data]
    if isinstance(data, Mapping) and {"rows", "fits", "machine"} <= data.keys():
        results = Scaling.from_json(data, where=where)
        found.scaling.append(ScalingRun(results, _environment(data["machine"], data.get("source"))))
    elif isinstance(rows, list) and rows and all(isinstance(r, Mapping) and "inferences_per_s" in r for r in rows):
        found.throughput += [
            BenchEntry(ThroughputRow.from_json(row, where=f"{where}, row {n}"), path.name, *_origin_of(row, about))
            for n, row in enumerate(rows)
        ]
    elif isinstance(rows, list) and rows and all(isinstance(r, Mapping) and _is_private(r) for r in rows):
        found.private += [
            BenchEntry(BenchRow.from_json(row, where=f"{where}, row {n}"), path.name, *_origin_of(row, about))
            for n, row in enumerate(rows)
        ]
    elif isinstance(data, Mapping) and {"layers", "images", "accuracy"} <= data.keys():
        name = str(data.get("compiled", path.stem))
        on = f"{data['data']}, {data['split']} images" if {"data", "split"} <= data.keys() else ""
        ranges = Ranges.from_json(data, where=where)
        found.checks.append(RangeCheck(name, ranges, on, data.get("environment", {})))
    elif isinstance(data, Mapping) and {"result", "config", "metrics"} <= data.keys():
        design = any_design_from_json(data["config"].get("design"), where=where)
        name = str(data.get("name", path.stem))
        score = Score.from_json(data["result"], where=f"{where}, result")
        found.training.append(
            TrainingRun(name, design, data["config"], data["metrics"], data.get("environment", {}), score)
        )
    else:
        raise InputError(
            "it is neither a results file nor the JSON output of `bench` or `check`",
            where=where,
            remedy="Give run folders, results files, or what these print as JSON.",
        )


def _origin_of(row: Mapping[str, Any], about: Mapping[str, Any]) -> tuple[str, str, dict[str, Any]]:
    """The machine, its software, and both in the words of a run's environment: a row's own, else the file's."""
    machine, source = (row.get(key, about.get(key)) for key in ("machine", "source"))
    return _machine_text(machine), _software_text(machine), _environment(machine, source)


def _machine_text(machine: Any) -> str:
    """From what a benchmark says of its machine: words, or a table of facts."""
    if not isinstance(machine, Mapping):
        return str(machine or "unknown")
    facts = [str(machine.get("architecture", "unknown")), f"{machine.get('cores', '?')} cores"]
    if machine.get("load_average"):
        facts.append(f"load {machine['load_average'][0]} at the start")
    facts += [f"sphynx {version}" for version in [dict(machine.get("versions", {})).get("sphynx")] if version]
    return ", ".join(facts)


def _software_text(machine: Any) -> str:
    versions = dict(machine.get("versions", {})) if isinstance(machine, Mapping) else {}
    return ", ".join(f"{name} {version}" for name, version in versions.items() if version and name != "sphynx")


def _environment(machine: Any, source: Any) -> dict[str, Any]:
    """A benchmark's machine and source in the words of a run's environment. It runs on no accelerator."""
    if not isinstance(machine, Mapping) or not isinstance(source, Mapping):
        return {}
    return {
        "platform": machine.get("system"),
        "cores": machine.get("cores"),
        "sphynx": dict(machine.get("versions", {})).get("sphynx"),
        "source_sha256": source.get("source_sha256"),
    }


def _is_private(row: Mapping[str, Any]) -> bool:
    return all(key in row for key in PRIVATE_KEYS)
