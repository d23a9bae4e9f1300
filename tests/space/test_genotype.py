"""Genotypes: the JSON round trip, and faults named by node and edge."""

import json
from pathlib import Path

import pytest
from hypothesis import given

from sphynx.errors import InputError
from sphynx.space.cell import Edge, cell
from sphynx.space.genotype import Genotype
from sphynx.space.published_cells import GENOTYPES, PC_DARTS, SPHYNX, genotype_named, into_sphynx_space
from tests.space.strategies import genotypes


@given(genotypes())
def test_json_round_trip(genotype: Genotype) -> None:
    assert Genotype.from_json(json.loads(json.dumps(genotype.to_json()))) == genotype


def test_file_round_trip(tmp_path: Path) -> None:
    for genotype in GENOTYPES.values():
        genotype.save(tmp_path / "g.json")
        assert Genotype.load(tmp_path / "g.json") == genotype


def test_nodes_is_the_papers_n() -> None:
    assert SPHYNX.nodes == 7
    assert Genotype(cell("skip 0, skip 1", "conv3 0, conv3 2"), cell("skip 0, skip 1", "conv3 0, conv3 2")).nodes == 5


def broken(change: dict[str, object]) -> dict[str, object]:
    return {**SPHYNX.to_json(), **change}


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        ([], "not a JSON object"),
        (broken({"format": "sphynx-genotype/9"}), "this version reads"),
        (broken({"space": "macro"}), "unknown space 'macro'"),
        (broken({"normal": None}), "normal cell: it is missing"),
        (broken({"normal": {}}), "no intermediate node"),
        (broken({"normal": {"2": [["fly", 0], ["skip", 1]]}}), "normal cell, node 2, edge 0: unknown operation 'fly'"),
        (broken({"reduce": {"2": [["skip", 0]]}}), "reduce cell, node 2: it has 1 incoming edges"),
        (
            broken({"normal": {"2": [["skip", 3], ["skip", 1]], "3": [["skip", 0], ["skip", 1]]}}),
            "normal cell, node 2, edge 0: it comes from node 3, so the cell would have a cycle",
        ),
        (broken({"normal": {"2": [["skip", 2], ["skip", 1]]}}), "would have a cycle"),
        (broken({"normal": {"2": [["skip", 8], ["skip", 1]]}}), "there is no node 8"),
        (broken({"normal": {"2": [["skip", -1], ["skip", 1]]}}), "there is no node -1"),
        (broken({"normal": {"3": [["skip", 0], ["skip", 1]]}}), "node 2 is missing"),
        (broken({"normal": {"2": "skip"}}), "not a list of edges"),
        (broken({"normal": {"2": [["skip", True], ["skip", 1]]}}), "edge 0"),
        (broken({"normal": {"2": [["skip", 0], ["skip", 1]]}}), "1 intermediate nodes, the reduce cell 4"),
    ],
)
def test_faults_are_named(data: object, fault: str) -> None:
    with pytest.raises(InputError, match="(?s)" + fault.replace("(", r"\(")) as caught:
        Genotype.from_json(data)
    assert caught.value.remedy


def test_all_faults_at_once() -> None:
    data = broken({"normal": {"2": [["fly", 0], ["swim", 5]]}, "reduce": {"2": [["skip", 0]]}})
    with pytest.raises(InputError) as caught:
        Genotype.from_json(data)
    for part in ("'fly'", "'swim'", "node 5", "reduce cell, node 2"):
        assert part in str(caught.value)


def test_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        Genotype.load(tmp_path / "none.json")
    (tmp_path / "bad.json").write_text("{")
    with pytest.raises(InputError, match="not valid JSON"):
        Genotype.load(tmp_path / "bad.json")
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="cannot be read"):
        Genotype.load(tmp_path / "binary.json")
    with pytest.raises(InputError, match="cannot be read"):
        Genotype.load(tmp_path)


def test_conversion_follows_the_papers_rules() -> None:
    converted = into_sphynx_space(PC_DARTS)
    assert converted.space == "sphynx"
    assert converted.reduce[0] == (Edge("conv5", 1), Edge("avg_pool", 0))
    assert converted.normal[1] == (Edge("conv3", 0), Edge("dil3", 1))
    assert into_sphynx_space(SPHYNX) is SPHYNX


def test_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(InputError, match="'nope'") as caught:
        genotype_named("nope")
    assert "pc-darts" in caught.value.remedy
