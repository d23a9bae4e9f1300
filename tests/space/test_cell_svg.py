"""Cell drawings are well-formed and show every edge."""

from xml.etree import ElementTree

from hypothesis import given

from sphynx.space.cell_svg import LABELS, cell_svg
from sphynx.space.genotype import OPERATIONS, Genotype
from tests.space.strategies import genotypes

SVG = "{http://www.w3.org/2000/svg}"


@given(genotypes())
def test_every_edge_is_drawn_and_labelled(genotype: Genotype) -> None:
    picture = ElementTree.fromstring(cell_svg(genotype.normal, title="<normal> & more"))
    texts = [text.text for text in picture.iter(f"{SVG}text")]
    labels = [LABELS[edge.operation] for edges in genotype.normal for edge in edges]
    assert sorted(text for text in texts if text in LABELS.values()) == sorted(labels)
    assert len(list(picture.iter(f"{SVG}path"))) == 3 * len(genotype.normal)
    assert "<normal> & more" in texts


def test_every_operation_has_a_label() -> None:
    assert {operation for names in OPERATIONS.values() for operation in names} <= set(LABELS)
