"""A notebook shows both cells, the counts, and names that cannot inject markup."""

from dataclasses import replace

from sphynx.space.account import relu_count
from sphynx.space.design import Design
from sphynx.space.published_cells import SPHYNX


def test_a_design_shows_its_counts_and_cells() -> None:
    design = Design(SPHYNX, 5, 5, (0, 1))
    shown = design._repr_html_()
    assert f"{relu_count(design):,}" in shown
    assert shown.count("<svg") == 2
    assert SPHYNX._repr_html_() in shown


def test_names_are_escaped() -> None:
    assert "<script>" not in replace(SPHYNX, name="<script>")._repr_html_()
