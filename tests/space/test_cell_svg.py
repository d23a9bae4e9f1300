"""Cell drawings are well-formed, show every edge, and keep labels apart."""

from itertools import combinations
from xml.etree import ElementTree

import pytest
from hypothesis import given

from sphynx.space.cell_svg import LABELS, LETTER_WIDTH, cell_svg
from sphynx.space.genotype import OPERATIONS, Genotype
from sphynx.space.published_cells import GENOTYPES
from tests.space.strategies import genotypes

SVG = "{http://www.w3.org/2000/svg}"


@given(genotypes())
def test_every_edge_is_drawn_and_labelled(genotype: Genotype) -> None:
    picture = ElementTree.fromstring(cell_svg(genotype.normal, title="<normal> & more"))
    texts = [text.text or "" for text in picture.iter(f"{SVG}text")]
    labels = [LABELS[edge.operation] for edges in genotype.normal for edge in edges]
    assert sorted(text for text in texts if text in LABELS.values()) == sorted(labels)
    assert len(list(picture.iter(f"{SVG}path"))) == 3 * len(genotype.normal)
    assert "<normal> & more" in texts


def test_every_operation_has_a_label() -> None:
    assert {operation for names in OPERATIONS.values() for operation in names} <= set(LABELS)


@pytest.mark.parametrize("genotype", GENOTYPES.values(), ids=lambda genotype: genotype.name)
def test_labels_of_published_cells_do_not_cover_each_other(genotype: Genotype) -> None:
    for cell in (genotype.normal, genotype.reduce):
        picture = ElementTree.fromstring(cell_svg(cell, title="cell"))
        labels = [text for text in picture.iter(f"{SVG}text") if text.get("class") == "label"]
        areas = [
            (float(text.get("x", "")), float(text.get("y", "")), LETTER_WIDTH * len(text.text or "")) for text in labels
        ]
        for (x, y, wide), (other_x, other_y, other_wide) in combinations(areas, 2):
            assert abs(x - other_x) * 2 >= wide + other_wide or abs(y - other_y) >= 11
