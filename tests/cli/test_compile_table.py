"""Blocks of linear maps that repeat are shown once; nothing is lost, and the table is narrow."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sphynx.cli.compile_table import LONGEST_BLOCK, WIDTH, Row, cost_line, fold, print_program, program_json
from sphynx.compiler.compile import compile_walk
from sphynx.compiler.frontend.onnx.file import read_network
from sphynx.compiler.precision import Precision
from sphynx.compiler.settings import CompileSettings
from sphynx.program.cost.deployment import Deployment
from tests.compiler.frontend.onnx_models import residual, write


def row(kind: str, bits: str = "20") -> Row:
    return Row(f"map of {kind}", "4x8x8", kind, 100, ord(kind[0]), bits)


def shown(kinds: str) -> list[tuple[str, int]]:
    return [(found.row.kernels, found.times) for found in fold([row(kind) for kind in kinds])]


def test_blocks_are_folded() -> None:
    assert shown("a") == [("a", 1)]
    assert shown("aaa") == [("a", 3)]
    assert shown("xababaY") == [("x", 1), ("a", 2), ("b", 2), ("a", 1), ("Y", 1)]
    assert shown("abcabcabc") == [("a", 3), ("b", 3), ("c", 3)]
    bits = fold([row("a", bits) for bits in ("sum", "21", "23", "22")])
    assert [found.bits for found in bits] == ["sum, 21-23"]
    assert [found.bits for found in fold([row("a", "21"), row("a", "21")])] == ["21"]


@given(st.text("ab", max_size=40))
def test_every_map_is_counted(kinds: str) -> None:
    found = fold([row(kind) for kind in kinds])
    assert sum(each.times for each in found) == len(kinds) and LONGEST_BLOCK > 1
    for kind in "ab":
        assert sum(each.times for each in found if each.row.kernels == kind) == kinds.count(kind)


def test_the_table_is_narrow_and_json_has_all(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    network = read_network(write(residual(), tmp_path / "network.onnx"))
    pixels = np.random.default_rng(0).integers(0, 256, (8, *network.image), np.uint8)
    program = compile_walk(
        network.trace, (0.0,) * 3, (1.0,) * 3, pixels, CompileSettings(precision=Precision(12, 12, 11))
    ).program
    print_program(program, "Compiled", [cost_line(program, Deployment()), "a note " * 40])
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= WIDTH
    assert "over lan" in " ".join(out.split()) and f"{program.relu_count:,} ReLUs" in out
    told = program_json(program, Deployment())
    assert [each["name"] for each in told["maps"]] == [step.name for step in program.linears]
    assert told["estimate"]["online_seconds"] > 0 and told["relus"] == program.relu_count
