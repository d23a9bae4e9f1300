"""The chain on a model's card: teachers by the hashes that students recorded, commands, and what is refused."""

import json
import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from tools.pack_model import pack

from sphynx.errors import InputError
from sphynx.network.ensemble import Ensemble
from sphynx.network.trained import load_model
from sphynx.space.artifact import MODEL
from sphynx.train.loop import train
from sphynx.train.views import weights_digest
from sphynx.zoo.chain import Chain, chain_of, find_unknowns
from sphynx.zoo.shipped import load_card, model_names
from tests.train.small import job

COMMANDS = """\
# stripes: made by the test
sphynx data pack stripes -o packed
python -m reproduction.diagnosis teachers packed \\
    -o runs
"""


def _train(out: Path, *teachers: Path, seed: int = 0) -> Path:
    """Train for an epoch, taught by one run or several."""
    taught = job(out, epochs=1, seed=seed, **({"distillation": "kl", "label_weight": 0.0} if teachers else {}))
    networks = [load_model(teacher) for teacher in teachers]
    if networks:
        taught = taught.taught_by(Ensemble(networks) if len(networks) > 1 else networks[0])
    train(taught)
    return out


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Two teachers, a network that both teach, and one that this one teaches."""
    out = tmp_path_factory.mktemp("runs")
    one, two = _train(out / "one"), _train(out / "two", seed=1)
    taught = _train(out / "taught", two, one)
    made = {"one": one, "two": two, "taught": taught, "last": _train(out / "last", taught)}
    for number, run in enumerate(made.values()):
        file = run / "environment.json"
        said = json.loads(file.read_text()) | {"command": ["sphynx", "train", f"design-{min(number, 2)}.json"]}
        file.write_text(json.dumps(said))
    return made


def _pack(out: Path, run: Path, *teachers: Path, commands: Path | None = None) -> Chain:
    pack(run, "small", out, teachers=teachers, commands=commands, makes="runs/last")
    chain = chain_of(load_card("small", out))
    assert chain is not None
    return chain


def test_teachers_are_found_by_the_hashes_of_their_weights(runs: dict[str, Path], tmp_path: Path) -> None:
    chain = _pack(tmp_path, runs["last"], runs["one"], runs["two"], runs["taught"])
    digest = {name: weights_digest(load_model(run)) for name, run in runs.items()}
    assert [training.weights for training in chain.trainings] == [digest[n] for n in ("two", "one", "taught", "last")]
    assert [training.taught_by for training in chain.trainings] == [
        (), (), (digest["two"], digest["one"]), (digest["taught"],),
    ]  # fmt: skip
    last = chain.trainings[-1]
    result = json.loads((runs["last"] / "result.json").read_text())
    assert (last.accuracy, last.minutes, last.device) == (result["accuracy"], result["minutes"], result["device"])
    assert last.commit and last.packages["torch"] == str(torch.__version__)
    assert [words[-1] for words in chain.commands] == ["design-1.json", "design-0.json", "design-2.json"]  # each once
    card = load_card("small", tmp_path)
    assert len(card["data"]["data_content"]) == 16 and find_unknowns(card) == []
    assert Chain.from_json(json.loads(json.dumps(card["chain"]))) == chain


def test_a_card_names_no_folders_of_the_machine(runs: dict[str, Path], tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(runs["one"], run)
    said = json.loads((run / "environment.json").read_text())
    words = ["train", "/home/me/design.json", "--data=/home/me/cells", "--out", "runs/one", "--set", "epochs=1"]
    (run / "environment.json").write_text(json.dumps(said | {"command": ["sphynx", *words]}))
    commands = tmp_path / "run.commands"
    commands.write_text("sphynx train design.json --out runs/one\n")
    pack(run, "small", tmp_path / "models", commands=commands, makes="runs/one")
    words = ["train", "design.json", "--data=cells", "--out", "runs/one", "--set", "epochs=1"]
    assert load_card("small", tmp_path / "models")["provenance"]["command"] == ["sphynx", *words]


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        (("one", "taught"), "was taught by 2 networks of hash"),
        ((), "was taught by 1 network of hash"),
    ],
)
def test_a_teacher_that_is_not_given_is_missed(
    given: Sequence[str], fault: str, runs: dict[str, Path], tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=fault):
        _pack(tmp_path, runs["last"], *(runs[name] for name in given))
    assert model_names(tmp_path) == []


def _without_weights(run: Path, out: Path) -> Path:
    shutil.copytree(run, out)
    (out / MODEL).unlink()
    return out


def test_teachers_need_no_weights_where_they_wrote_the_hash_themselves(runs: dict[str, Path], tmp_path: Path) -> None:
    whole = _pack(tmp_path / "whole", runs["last"], runs["one"], runs["two"], runs["taught"])
    copies = [_without_weights(runs[name], tmp_path / name) for name in ("one", "two", "taught")]
    assert _pack(tmp_path / "models", runs["last"], *copies) == whole


def test_a_hash_of_the_file_is_named_as_such(runs: dict[str, Path], tmp_path: Path) -> None:
    copies = [_without_weights(runs[name], tmp_path / name) for name in ("one", "two")]
    for run in copies:
        described = json.loads((run / "result.json").read_text())
        del described["weights"]
        (run / "result.json").write_text(json.dumps(described))
    with pytest.raises(InputError, match="neither its weights nor a hash of them"):
        _pack(tmp_path / "models", runs["taught"], *copies)
    for run in copies:
        (run / f"{MODEL}.sha256").write_text(f"{run.name}'s  {MODEL}\n")
    chain = _pack(tmp_path / "models", runs["taught"], *copies)
    assert chain.trainings[-1].taught_by == ("file:one's", "file:two's")
    config = json.loads((runs["taught"] / "config.json").read_text())
    assert chain.trainings[-1].teacher_weights == config["teacher_weights"]


def test_a_run_that_taught_nobody_is_refused(runs: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="taught neither this network nor its teachers"):
        _pack(tmp_path, runs["one"], runs["two"])


def test_a_teacher_without_a_commit_is_refused(runs: dict[str, Path], tmp_path: Path) -> None:
    file = runs["one"] / "environment.json"
    before = file.read_text()
    file.write_text(json.dumps({**json.loads(before), "commit": "0123456789ab-dirty"}))
    try:
        with pytest.raises(InputError, match="but of 0123456789ab-dirty"):
            _pack(tmp_path, runs["taught"], runs["one"], runs["two"])
    finally:
        file.write_text(before)


def test_commands_are_read_from_a_file(runs: dict[str, Path], tmp_path: Path) -> None:
    file = tmp_path / "commands"
    file.write_text(COMMANDS)
    chain = _pack(tmp_path / "models", runs["one"], commands=file)
    assert chain.needs == ("stripes: made by the test",)
    assert chain.commands[1] == ("python", "-m", "reproduction.diagnosis", "teachers", "packed", "-o", "runs")


@pytest.mark.parametrize(
    "line",
    [
        "rm -r data",
        "python -m http.server",
        "python -m reproduction2.run",
        "python -m",
        "python -c pass",
        "sphynx",
        "sphynx infer scans --server elsewhere:7443",
        "'python -m reproduction' -cpass reproduction.diagnosis",  # which was run as `python -cpass` once
        "sphynx train a.json --ray elsewhere:10001",
        "python -m reproduction.reproduce --ra=elsewhere:10001",
        "sphynx train /home/me/design.json",
        "sphynx train a.json --out=/tmp/run",
        "sphynx train a.json -o/tmp/run",
        "sphynx train a.json -qo/etc/x",
        "sphynx train a.json -qo../x",
        "sphynx train a.json -qo=/etc/x",
        "sphynx train a.json -vqo~/x",
        "sphynx data get cifar100",
        "sphynx train ../a.json",
        "sphynx train ~/a.json",
        "sphynx train a.json --teacher run,/home/me/run",
    ],
)
def test_a_chain_only_makes_networks_and_only_in_its_folder(line: str) -> None:
    with pytest.raises(
        InputError, match=r"is neither a verb|is none of the verbs|names a path outside|runs on a cluster"
    ):
        Chain((), (tuple(shlex.split(line)),), "run", ())
    with pytest.raises(InputError, match="is not a path below"):
        Chain((), (), "/run", ())


@pytest.mark.parametrize("file", sorted((Path(__file__).parents[2] / "reproduction").rglob("*.commands")), ids=str)
def test_chains_of_the_clone_can_be_packed(file: Path, runs: dict[str, Path], tmp_path: Path) -> None:
    chain = _pack(tmp_path, runs["one"], commands=file)
    assert chain.needs and chain.commands[-1][-1].startswith("runs/")


@pytest.mark.parametrize("name", model_names())
def test_shipped_cards_have_a_chain_or_say_what_is_not_known(name: str) -> None:
    card = load_card(name)
    commit = card["provenance"]["commit"]
    clean = bool(commit) and not commit.endswith("-dirty")
    assert (chain_of(card) is not None) == (clean and not find_unknowns(card))
