"""The commands of docs/diagnosis.md, as they are written there, on made-up pictures, smaller and for one epoch."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from sphynx.program.files import load_program
from tests.docs.test_getting_started import BLOCK, ROOT, SMALLER, Shell, shell
from tests.docs.xrays import write_xrays

__all__ = ["shell"]

PAGE = ROOT / "docs" / "diagnosis.md"
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


@pytest.mark.slow
def test_the_experiment_goes_through_all_its_stages(tmp_path: Path) -> None:
    from reproduction import diagnosis

    write_xrays(tmp_path / "xrays")
    changed = {
        "width": 2, "budget": 1000,
        "settings": {"epochs": 1, "batch_size": 8, "norm_batches": 2, "warmup_epochs": 0, "held_out": 0.25},
    }  # fmt: skip
    rest = [str(tmp_path / "xrays"), "-o", str(tmp_path / "out"), "--image-size", "32", "--groups", r"person\d+|IM-\d+"]
    rest += ["--changed", json.dumps(changed)]
    assert diagnosis.main(["teachers", *rest, "--minutes", "-1"]) == 3  # no time: nothing begins
    for stage in diagnosis.STAGES:
        assert diagnosis.main([stage, *rest, "--jobs", "2"]) == 0
    judged = json.loads((tmp_path / "out" / "judgement.json").read_text())
    assert judged["low"] <= judged["difference"] <= judged["high"]
    assert len(judged["teacher"]["mcc"]["of_seeds"]) == diagnosis.FINAL_SEEDS
