"""The blocks of docs/python.md and of the README, run as they are written, in one folder from top to bottom.

Two things are smaller than on the page: trainings have one or two epochs, and servers listen where a port is free.
"""

from __future__ import annotations

import re
import socket
import subprocess
from pathlib import Path

from tests.warm_process import Warm

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(python|sh)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def run(command: list[str], folder: Path, environment: dict[str, str]) -> str:
    ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, f"{command[-1]}\n{ran.stdout}{ran.stderr}"
    return ran.stdout


def test_the_page_from_top_to_bottom(tmp_path: Path, warm: Warm) -> None:
    blocks = BLOCK.findall((ROOT / "docs" / "python.md").read_text())
    assert [kind for kind, _ in blocks].count("python") == 5
    for text in (text for kind, text in blocks if kind == "sh"):
        run(["bash", "-e", "-c", text], tmp_path, warm.environment)
    script = "\n".join(text for kind, text in blocks if kind == "python")
    assert run([str(warm.programs / "python"), "-c", script], tmp_path, warm.environment).count("steps") == 2


def test_the_readme(tmp_path: Path, warm: Warm) -> None:
    shell, python = (text for _, text in BLOCK.findall((ROOT / "README.md").read_text()))
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    assert "&\n" in shell  # the server is just starting when it is asked
    shell = shell.replace("-o runs/digits ", "-o runs/digits --set training.epochs=1 ")
    shell = shell.replace("sphynx serve", f"sphynx serve --listen {address} --metrics 127.0.0.1:0")
    shell = shell.replace("sphynx infer", f"sphynx infer --server {address}")
    shown = run(["bash", "-e", "-c", f"trap 'kill %1' EXIT\n{shell}"], tmp_path, warm.environment)
    assert re.search(r"digit\.png\W+\d\W+\d+\.\d\d %", shown)
    python = python.replace('compare="none")', 'compare="none", settings={"training.epochs": 1})')
    relus, accuracy, label, probability, seconds = run(
        [str(warm.programs / "python"), "-c", python], tmp_path, warm.environment
    ).split()
    assert int(relus) == 512 and 0 < float(accuracy) <= 1 and label.isdigit()
    assert 0 < float(probability) <= 1 and float(seconds) > 0
