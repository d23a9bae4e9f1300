"""`sphynx models` on a run on digits, and the verbs that take a model where they take a run."""

import json
import shlex
from pathlib import Path

import pytest
from tools.command import command_line
from tools.pack_model import pack_run
from typer.testing import CliRunner

from sphynx.space.cell import cell
from sphynx.space.design import Design
from sphynx.space.genotype import Genotype
from sphynx.space.tally import Shape
from sphynx.units import percent
from tests.cli.test_training_verbs import FAST, Sphynx
from tests.cli.test_training_verbs import sphynx as sphynx  # a fixture

CELLS = Genotype(cell("conv3 0, skip 1"), cell("skip 0, avg_pool 1"))
DESIGN = Design(CELLS, 1, 2, (1,), Shape(1, 8, 8), 10, conv_stack="single", name="tiny")


def test_from_a_run_to_a_model_and_its_card(sphynx: Sphynx) -> None:
    DESIGN.save(Path("tiny.json"))
    run, models = "run", "models"
    one_epoch = [*FAST, "--epochs", "1", "--batch-size", "256"]
    assert sphynx("train", "tiny.json", "--data", "digits", "--out", run, *one_epoch).code == 0
    evaluated = sphynx("eval", run, "--data", "digits", "--device", "cpu", "--json").out
    Path("evaluation.json").write_text(evaluated)
    command = shlex.join(["sphynx", "train", "tiny.json", "--data", "digits", "--out", run, *one_epoch])
    Path("commands").write_text(f"# tiny.json: by hand\n{command}\n")
    pack = [run, "--name", "tiny-digits", "--folder", models, "--evaluation", "evaluation.json"]
    pack += ["--commands", "commands"]
    assert CliRunner().invoke(command_line(pack_run), pack).exit_code == 0

    listed = sphynx("models", "ls", "--folder", models).out
    assert "tiny-digits" in listed and "128" in listed and percent(json.loads(evaluated)["accuracy"]) in listed
    shown = sphynx("models", "show", "tiny-digits", "--folder", models).out
    for part in ("test accuracy", "evaluated again", "fp32", "ReLUs", "learning_rate 0.05", "seed", "made by"):
        assert part in shown
    card = json.loads(sphynx("models", "show", "tiny-digits", "--folder", models, "--json").out)
    assert card["evaluation"]["accuracy"] == json.loads(evaluated)["accuracy"]

    said = sphynx("models", "rebuild", "tiny-digits", "--folder", models).out
    assert "# tiny.json: by hand\n" in said and f"\n{command}\n" in said and "labels" in said
    missing = sphynx("models", "rebuild", "tiny-digits", "--folder", models, "-o", "elsewhere")
    assert missing.code == 2 and "it needs tiny.json: by hand" in missing.err
    Path("elsewhere").mkdir()
    DESIGN.save(Path("elsewhere/tiny.json"))
    rebuild = ["models", "rebuild", "tiny-digits", "--folder", models, "-o", "elsewhere", "--json"]
    made = json.loads(sphynx(*rebuild).out)
    assert made["accuracy"] == made["accuracy_on_card"] == card["accuracy"]  # same machine, torch and threads
    result = json.loads(Path("elsewhere/run/result.json").read_text())
    assert made["minutes"] == round(result["minutes"], 2) and made["device"] == result["device"]
    assert sphynx(*rebuild).code == 2  # there is a run already

    model = f"{models}/tiny-digits"
    again = json.loads(sphynx("eval", model, "--data", "digits", "--device", "cpu", "--json").out)
    assert again["accuracy"] == pytest.approx(card["accuracy"], abs=0.02)
    compiled = sphynx("compile", model, "-o", "compiled", "--json")
    assert json.loads(compiled.out)["relus"] == 128
    assert json.loads(sphynx("show", model, "--json").out)["relus"] == 128


def test_a_list_has_the_accuracy_of_the_last_evaluation(sphynx: Sphynx, tmp_path: Path) -> None:
    for name, evaluation in (("again", {"accuracy": 0.5}), ("once", None)):
        (tmp_path / name).mkdir()
        card = {"format": "sphynx-model/1", "name": name, "data": {"name": "digits"}, "relus": 8, "parameters": 9}
        (tmp_path / name / "card.json").write_text(json.dumps({**card, "accuracy": 0.75, "evaluation": evaluation}))
    again, once = sphynx("models", "ls", "--folder", str(tmp_path)).out.splitlines()[-3:-1]
    assert "again" in again and "50.00 %" in again and "once" in once and "75.00 %" in once


@pytest.mark.parametrize("verb", ["eval", "compile"])
def test_neither_a_run_nor_a_model(verb: str, sphynx: Sphynx) -> None:
    more = ["--data", "digits"] if verb == "eval" else ["-o", "compiled"]
    ran = sphynx(verb, "no-such-model", *more)
    assert ran.code == 2 and "no-such-model: there is no such folder, and no model of that name" in ran.err
