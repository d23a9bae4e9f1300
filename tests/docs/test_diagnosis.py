"""The commands of docs/diagnosis.md, as they are written there, on made-up pictures, smaller and for one epoch."""

import json
import re
import subprocess
from pathlib import Path

import pytest
from tools.pack_model import pack

from sphynx.program.folder import load_program
from sphynx.zoo.chain import chain_of
from tests.docs.test_getting_started import BLOCK, ROOT, SMALLER, Shell, shell
from tests.docs.xrays import write_xrays

__all__ = ["shell"]

PAGE = ROOT / "docs" / "diagnosis.md"
COMMANDS = ROOT / "reproduction" / "diagnosis.commands"
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


def test_the_commands_of_the_experiment_are_those_of_the_page() -> None:
    """Cards of networks that came out of it quote them."""
    commands = COMMANDS.read_text().splitlines()
    assert all(f"\n    {line}\n" in PAGE.read_text() for line in commands if not line.startswith("#"))
    assert commands[0].startswith("# 4P/data: ") and len(commands) == 3


@pytest.mark.slow
def test_the_experiment_goes_through_all_its_stages(tmp_path: Path) -> None:
    from reproduction import diagnosis

    write_xrays(tmp_path / "xrays")
    changed = {
        "width": 2, "budget": 1000,
        "taught": {"view_epochs": 1},
        "settings": {"epochs": 1, "held_out": 0.25, "batch_size": 8, "norm_batches": 2, "warmup_epochs": 0},
    }  # fmt: skip
    runs = tmp_path / "out"
    rest = [str(tmp_path / "xrays"), "-o", str(runs), "--image-size", "32", "--groups", r"person\d+|IM-\d+"]
    rest += ["--changed", json.dumps(changed)]
    assert diagnosis.main(["teachers", *rest, "--minutes", "0"]) == 3  # no time: nothing begins
    assert diagnosis.main(["teachers", "candidates", *rest, "--jobs", "2"]) == 0
    chosen = json.loads((runs / "choice.json").read_text())
    assert sorted(chosen["held_out_mcc"]) == ["candidate-0", "candidate-1"]  # by SGD and by Muon
    assert diagnosis.main(["final", "judge", *rest, "--jobs", "2"]) == 0
    judged = json.loads((runs / "judgement.json").read_text())
    assert judged["low"] <= judged["difference"] <= judged["high"]
    assert len(judged["teacher-final"]["mcc"]["of_seeds"]) == len(judged["final"]["mcc"]["of_seeds"]) == 5

    teachers = [runs / "teacher-final" / f"seed-{seed}" for seed in range(diagnosis.FINAL_SEEDS)]
    makes = "runs/diagnosis/final/seed-0"
    packed = pack(
        runs / "final" / "seed-0", "xray", tmp_path / "models", teachers=teachers, commands=COMMANDS, makes=makes
    )
    chain = chain_of(json.loads((packed / "card.json").read_text()))
    assert chain is not None and chain.makes == makes and len(chain.trainings) == 6
    assert chain.trainings[-1].taught_by == tuple(one.weights for one in chain.trainings[:-1])
