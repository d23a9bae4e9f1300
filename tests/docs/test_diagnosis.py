"""The commands of docs/diagnosis.md, as they are written there, on made-up pictures, smaller and for one epoch."""

import json
import re
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from tools.pack_model import pack

from sphynx.api.rebuilding import Rebuilt, rebuild_model
from sphynx.data.images import Data
from sphynx.data.open import open_data
from sphynx.data.packed import save_packed
from sphynx.errors import InputError, SphynxError
from sphynx.program.folder import load_program
from sphynx.zoo.chain import chain_of
from sphynx.zoo.shipped import load_card
from tests.docs.test_getting_started import BLOCK, ROOT, SMALLER, Shell, shell
from tests.docs.xrays import write_xrays

__all__ = ["shell"]

PAGE = ROOT / "docs" / "diagnosis.md"
COMMANDS = ROOT / "reproduction" / "diagnosis.commands"
NAME = "stream-chest-xray-11k"
SMALL = {
    "--image-size 128": "--image-size 32",
    "--relu-budget 11264": "--relu-budget 1k",
    "--set held_out=0.15": " ".join(
        f"--set {value}" for value in ("held_out=0.25", "epochs=1", "batch_size=8", "norm_batches=2", "warmup_epochs=0")
    ),
    "show resnet18": "show resnet18 --channels 4",
    "serve compiled/xray": SMALLER["serve compiled/digits"].replace("digits", "xray"),
}
PAGE_OPENED = re.compile(r"http://127\.0\.0\.1:\d+/\S+")


@pytest.mark.slow
def test_the_page_leads_from_xrays_to_a_private_answer(shell: Shell) -> None:
    write_xrays(shell.folder / "xrays")
    lines = [line for block in BLOCK.findall(PAGE.read_text()) for line in block.splitlines()]
    assert all(any(written in line for line in lines) for written in SMALL)
    for line in lines:
        for written, smaller in SMALL.items():
            line = line.replace(written, smaller)
        if line.startswith("sphynx app"):
            open_and_close(line, shell)
        else:
            shell.do(line)
    program = load_program(shell.folder / "compiled" / "xray")
    assert program.image == (1, 32, 32) and program.class_names[1] == "normal"
    assert {file.name for file in (shell.folder / "pictures").iterdir()} == {
        "confusion.svg",
        "roc.svg",
        "reliability.svg",
    }
    said = {line.split()[1]: ran.stdout for line, ran in shell.said}
    assert "sensitivity" in said["eval"] and "not sure" in said["eval"]
    result = json.loads((shell.folder / "runs" / "xray" / "result.json").read_text())
    assert result["temperature"] > 0 and -1 <= result["held_out_mcc"] <= 1
    assert "reliability" in (shell.folder / "report.html").read_text()


def open_and_close(line: str, opened: Shell) -> None:
    page = subprocess.Popen(
        f"exec {line}", shell=True, cwd=opened.folder, env=opened.environment, stdout=subprocess.PIPE, text=True
    )
    assert page.stdout is not None
    try:
        assert PAGE_OPENED.search(page.stdout.readline())
    finally:
        page.terminate()
        page.communicate()


def test_the_chain_of_the_shipped_network_is_the_clone_s() -> None:
    chain = chain_of(load_card(NAME))
    assert chain is not None
    lines = COMMANDS.read_text().splitlines()
    assert [f"# {need}" for need in chain.needs] + [shlex.join(words) for words in chain.commands] == lines
    assert chain.needs[0].startswith("xrays-128: ") and chain.commands[-1][-1] == chain.makes
    taught = chain.trainings[-1]
    assert len(taught.taught_by) == 5 and taught.relus == load_card(NAME)["relus"] == 11_264


def smaller(words: Sequence[str]) -> list[str]:
    """A command of the chain for pictures of 32 pixels and one epoch."""
    instead = {
        "128": "32", "held_out=0.05": "held_out=0.25",
        "9x9/4 32:48: 16:96:20 8:128:48 4:192:96x2": "5x5/2 16:16: 8:16:4",
        "epochs=240": "epochs=1", "view_epochs=60": "view_epochs=1",
    }  # fmt: skip
    settings = ("epochs=1", "batch_size=8", "norm_batches=2", "warmup_epochs=0")
    added = [word for value in settings for word in ("--set", value)] if words[1] == "train" else []
    added += ["--channels", "4"] if words[2] == "resnet18" else []
    return [*(instead.get(word, word) for word in words), *added]


@pytest.mark.slow
def test_the_shipped_network_is_made_again_from_its_card(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a folder elsewhere, with Sphynx on a relative path, and after the first call was cut off."""
    write_xrays(tmp_path / "xrays")
    out = tmp_path / "rebuilt"
    out.mkdir()
    xrays = open_data(str(tmp_path / "xrays"), image_size=32, groups=r"person\d+|IM-\d+")
    assert isinstance(xrays, Data)
    save_packed(xrays, out / "xrays-128", 1 << 20)
    card = load_card(NAME)
    commands = [smaller(words) for words in card["chain"]["commands"]]

    def make(commands: list[list[str]]) -> Rebuilt:
        card["chain"]["commands"] = commands
        (tmp_path / "models" / NAME).mkdir(parents=True, exist_ok=True)
        (tmp_path / "models" / NAME / "card.json").write_text(json.dumps(card))
        return rebuild_model(NAME, out, tmp_path / "models")

    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("PYTHONPATH", "src")
    with pytest.raises(SphynxError, match="ended with exit code"):
        make([*commands[:-1], [*commands[-1], "--set", "epochs=none"]])
    teacher = out / "runs" / "teacher" / "seed-4" / "model.safetensors"
    trained = teacher.stat().st_mtime_ns
    made = make(commands)
    assert teacher.stat().st_mtime_ns == trained and made.accuracy_on_card == card["accuracy"]
    assert json.loads((out / "runs" / "xray" / "config.json").read_text())["seed"] == 4


# What keeps the experiments small.
CHANGED = {
    "width": 2, "budget": 1000,
    "taught": {"view_epochs": 1},
    "settings": {"epochs": 1, "held_out": 0.25, "batch_size": 8, "norm_batches": 2, "warmup_epochs": 0},
}  # fmt: skip


@pytest.mark.slow
def test_the_experiment_goes_through_all_its_stages(tmp_path: Path) -> None:
    from reproduction import diagnosis, judging

    write_xrays(tmp_path / "xrays")
    runs = tmp_path / "out"
    rest = [str(tmp_path / "xrays"), "-o", str(runs), "--image-size", "32", "--groups", r"person\d+|IM-\d+"]
    rest += ["--changed", json.dumps(CHANGED)]
    assert diagnosis.main(["teachers", *rest, "--minutes", "0"]) == 3  # no time: nothing begins
    assert diagnosis.main(["teachers", "candidates", *rest, "--jobs", "2"]) == 0
    chosen = json.loads((runs / "choice.json").read_text())
    assert sorted(chosen["held_out_mcc"]) == ["candidate-0", "candidate-1"]  # by SGD and by Muon
    assert diagnosis.main(["final", "judge", *rest, "--jobs", "2"]) == 0
    judged = json.loads((runs / "judgement.json").read_text())
    assert judged["low"] <= judged["difference"] <= judged["high"]
    assert len(judged["teacher-final"]["mcc"]["of_seeds"]) == len(judged["final"]["mcc"]["of_seeds"]) == 5

    assert judged["seeds"] == [0, 1, 2, 3, 4]
    later = ["final", "judge", *rest, "--jobs", "2", "--first-seed", "5"]
    later[later.index(str(runs))] = str(tmp_path / "later")
    (tmp_path / "later").mkdir()
    (tmp_path / "later" / "choice.json").write_text((runs / "choice.json").read_text())
    assert diagnosis.main([*later, "--beside", str(runs / "answers.npz")]) == 0
    both = json.loads((tmp_path / "later" / "judgement.json").read_text())
    assert both["seeds"] == list(range(10))
    assert both["final"]["mcc"]["of_seeds"][:5] == judged["final"]["mcc"]["of_seeds"]
    with pytest.raises(InputError, match="a seed is there twice"):
        judging.read_answers([runs / "answers.npz"] * 2)

    teachers = [runs / "teacher-final" / f"seed-{seed}" for seed in range(diagnosis.TEACHERS)]
    makes = "runs/diagnosis/final/seed-0"
    packed = pack(
        runs / "final" / "seed-0", "xray", tmp_path / "models", teachers=teachers, commands=COMMANDS, makes=makes
    )
    chain = chain_of(json.loads((packed / "card.json").read_text()))
    assert chain is not None and chain.makes == makes and len(chain.trainings) == 6
    assert chain.trainings[-1].taught_by == tuple(one.weights for one in chain.trainings[:-1])


@pytest.mark.slow
def test_every_patient_is_judged_by_networks_that_never_saw_the_fold(tmp_path: Path) -> None:
    from reproduction import fold_answers, judging, patient_folds
    from reproduction.gpu.state import unpack

    write_xrays(tmp_path / "xrays")
    rule = r"person\d+|IM-\d+"
    data = open_data(str(tmp_path / "xrays"), image_size=32, groups=rule)
    assert isinstance(data, Data) and data.train.groups is not None
    folds = patient_folds.deal(data, patient_folds.FOLDS)
    seen = [set(fold.test.groups.tolist()) for fold in folds if fold.test.groups is not None]
    assert sum(map(len, seen)) == len(set().union(*seen)) == len(data.train.groups.unique())
    for fold, patients in zip(folds, seen, strict=True):
        assert fold.train.groups is not None and patients.isdisjoint(fold.train.groups.tolist())

    runs, kept_there, elsewhere = tmp_path / "folds", tmp_path / "kept", tmp_path / "elsewhere"
    words = [str(tmp_path / "xrays"), "--image-size", "32", "--groups", rule]
    words += ["--changed", json.dumps({**CHANGED, "chosen": "candidate-0"}), "--jobs", "2"]
    assert patient_folds.main([*words, "-o", str(runs), "--keep", str(kept_there)]) == 0
    judged = json.loads((runs / "judgement.json").read_text())
    assert judged["low"] <= judged["difference"] <= judged["high"]
    assert len(judged["final"]["mcc"]["of_seeds"]) == patient_folds.STUDENTS
    with np.load(runs / "answers.npz") as kept:
        assert kept["final"].shape[:2] == (patient_folds.STUDENTS, len(data.train))
    experiment = json.loads((runs / "experiment.json").read_text())
    assert experiment["judgement"] == judged
    assert [len(fold) for fold in experiment["minutes"]["teacher-final"]] == [5] * patient_folds.FOLDS

    kept_answers = judging.read_answers([runs / "answers.npz"])
    again = fold_answers.judge_again(data, kept_answers)
    assert again[fold_answers.ALL] == judged
    theirs = again[fold_answers.MEAN]["teacher-final"]["accuracy"]["of_seeds"]
    mean = kept_answers["teacher-final"].mean(0).argmax(1)
    assert theirs == pytest.approx([(mean == kept_answers["labels"]).mean()])
    with pytest.raises(InputError, match="answers about"):
        fold_answers.main(["digits", str(runs / "answers.npz")])

    unpack(kept_there, elsewhere)
    (elsewhere / "judgement.json").unlink()
    assert patient_folds.main([*words, "-o", str(elsewhere)]) == 0
    assert json.loads((elsewhere / "judgement.json").read_text()) == judged
    assert not list(elsewhere.rglob("model.safetensors"))  # the folds were not trained again


def test_folds_that_earlier_calls_finished_are_packed_by_each(tmp_path: Path) -> None:
    from reproduction import patient_folds
    from reproduction.gpu.state import unpack

    fold, kept, elsewhere = tmp_path / "folds" / "fold-0", tmp_path / "kept", tmp_path / "elsewhere"
    fold.mkdir(parents=True)
    (fold / "answers.npz").touch()
    words = ["digits", "-o", str(tmp_path / "folds"), "--minutes", "0", "--keep", str(kept)]
    assert patient_folds.main([*words, "--changed", json.dumps({"budget": 600})]) == 3
    unpack(kept, elsewhere)
    assert (elsewhere / "fold-0" / "answers.npz").is_file() and not (elsewhere / "fold-1").exists()


@pytest.mark.parametrize("name", ["third", "fourth"])
def test_kept_judgements_follow_from_the_kept_logits(name: str) -> None:
    from reproduction import judging

    folder = ROOT / "results/diagnosis"
    kept = json.loads((folder / f"{name}.json").read_text())["judgement"]
    judged = judging.judge(judging.read_answers([folder / f"{name}-answers.npz"]), "final", "teacher-final")
    assert judged["not_inferior"] == kept["not_inferior"]
    for key in ("difference", "low", "high"):
        assert judged[key] == pytest.approx(kept[key])
    for network in ("final", "teacher-final"):
        for key in ("accuracy", "balanced_accuracy", "mcc"):
            assert judged[network][key]["of_seeds"] == pytest.approx(kept[network][key]["of_seeds"])
