"""The paper's counts: a row agrees, or is known to be inconsistent in the paper, with its reason."""

from reproduction.tables import PaperRow, parameter_rows, relu_count_rows


def test_disagreements_are_exactly_the_known_ones() -> None:
    rows = relu_count_rows()
    differing = {row.network for row in rows if not row.agrees}
    expected = {
        *(
            f"PC-DARTS, reduce node 3 = sep5 1, sep5 2, C={C} D={D}"
            for C, D in ((36, 20), (5, 10), (5, 5), (2, 4), (1, 4))
        ),
        "the first normal cell alone, DARTS (second-order cells), C=5",
        "C=5 D=6 reduce (0, 1)",
        "C=15 D=15 reduce (2, 6)",
        "VGG11, width 64 (+ 4,591,104 max-pool comparisons)",
        "C=12 D=8 reduce (1, 3)",
        *(f"PC-DARTS variant, C={C}, ReLUs shared" for C in (1, 2, 3, 4)),
    }
    assert differing == expected
    assert all(row.note for row in rows if not row.agrees)


def test_darts_column_to_the_last_relu() -> None:
    ours = [row.ours for row in relu_count_rows() if row.network.startswith("DARTS")]
    assert ours == [7_796_736, 523_520, 231_680, 73_216, 36_608]


def test_the_text_s_first_cell_lies_between_two_of_ours() -> None:
    (row,) = (row for row in relu_count_rows() if "first normal cell" in row.network)
    assert row.ours == 17 * 5 * 32 * 32 < row.paper < 19 * 5 * 32 * 32
    assert "97,280" in row.note


def test_pc_darts_column_to_the_last_relu() -> None:
    ours = [row.ours for row in relu_count_rows() if "sep5 1, skip 2" in row.network]
    assert ours == [8_073_216, 591_360, 314_880, 107_520, 53_760]


def test_parameter_table_agrees() -> None:
    rows = parameter_rows()
    assert len(rows) == 6
    assert all(row.agrees for row in rows)
    assert [round(row.ours / 2**20, 3) for row in rows[:3]] == [2.754, 3.414, 3.458]


def test_a_verdict_can_fail() -> None:
    assert PaperRow("t", "n", "25.6K", 25_600).agrees
    assert PaperRow("t", "n", "25.5K", 25_599).verdict == "equal (cut)"
    assert not PaperRow("t", "n", "25.6K", 25_700).agrees
    assert not PaperRow("t", "n", "2.75M", 2_888_015).agrees
