"""In a terminal a verb ends with the command that usually comes next; each is one that there is."""

from __future__ import annotations

import ast
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from sphynx import cli
from sphynx.api.models import list_models, load_card
from sphynx.cli.output import called_as
from sphynx.cli.plan import STREAMS_ARE_BETTER
from sphynx.cli.verbs import verbs
from sphynx.units import bytes_text, percent, rate_text, seconds_text, short_number

VERBS = {context.command_path.removeprefix("sphynx "): context for _, _, context in verbs()}


def said_next() -> list[list[str]]:
    """The literal words of every call, X for the others."""
    calls = [
        node
        for file in Path(cli.__file__).parent.glob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "say_next"
    ]
    return [[str(word.value) if isinstance(word, ast.Constant) else "X" for word in call.args] for call in calls]


@pytest.mark.parametrize("words", said_next(), ids=" ".join)
def test_every_next_command_is_one_that_there_is(words: list[str]) -> None:
    assert words[0] == "sphynx"
    if words[1] == "X":  # of keys: serve or infer
        return
    verb = next(one for one in (" ".join(words[1:3]), words[1]) if one in VERBS)
    known = {option for parameter in VERBS[verb].command.params for option in parameter.opts}
    assert {word for word in words if word.startswith("-")} <= known


def test_a_terminal_is_told_the_next_command_and_a_pipe_is_not(tmp_path: Path) -> None:
    def run(*words: str) -> str:
        screen, terminal = pty.openpty()
        command = [sys.executable, "-m", "sphynx.cli.main", *words]
        subprocess.run(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=terminal, check=True)
        os.close(terminal)
        told = os.read(screen, 4096).decode()
        os.close(screen)
        return told.split("Next: sphynx ")[1].strip()

    issue = run("keys", "init", "authority")
    assert issue == "keys issue server --server 127.0.0.1 --keys authority"
    assert run(*issue.split()) == "serve COMPILED --keys authority/server"
    command = [sys.executable, "-m", "sphynx.cli.main", "keys", "issue", "alice", "--client", "--keys", "authority"]
    assert subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stderr == ""


def test_plan_compares_the_families_by_the_shipped_networks() -> None:
    for relus in ("25k", "51k"):
        cards = {name: load_card(name) for name in list_models() if name.endswith(f"cifar100-{relus}")}
        accuracies = [
            f"{100 * cards[f'{kind}-cifar100-{relus}']['evaluation']['accuracy']:.1f}" for kind in ("stream", "sphynx")
        ]
        assert f"{accuracies[0]} against {accuracies[1]} % at {relus.upper()}" in STREAMS_ARE_BETTER


def test_numbers_are_written_in_one_way() -> None:
    assert [seconds_text(value) for value in (1.16, 0.741, 5e-6, 12.34)] == ["1.16 s", "741 ms", "5 µs", "12.3 s"]
    assert [bytes_text(value) for value in (23.1e6, 747e3, 12, 3.8e9)] == ["23.1 MB", "747 kB", "12 B", "3.8 GB"]
    assert [rate_text(value) for value in (1e9, 1e8)] == ["1 Gbit/s", "100 Mbit/s"]
    assert [percent(0.6928), percent(0.6928, 1), percent(None)] == ["69.28 %", "69.3 %", "-"]
    assert [short_number(value) for value in (25_600, 2.3e6, 12)] == ["25.6K", "2.3M", "12"]


def test_a_program_that_the_shell_does_not_find_is_named_by_its_path(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "argv", [".venv/bin/sphynx", "demo"])
    monkeypatch.setenv("PATH", str(tmp_path))
    assert called_as() == ".venv/bin/sphynx"
    (tmp_path / "sphynx").touch(0o755)
    assert called_as() == "sphynx"
