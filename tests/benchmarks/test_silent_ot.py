"""The comparison of both extensions runs; parameters of silent OT cost an attacker what the docs say."""

from __future__ import annotations

import pytest
from benchmarks import lpn_attacks, silent_ot

from sphynx.core import silent
from sphynx.core.silent import SHAPE, Shape


def test_both_extensions_are_measured(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(silent_ot, "SOFTSPOKEN_OTS", 1 << 12)
    monkeypatch.setattr(silent, "SHAPE", Shape(secret=320, trees=16, depth=6))
    silent_ot.main(["stream-cifar100-25k"])
    out = capsys.readouterr().out
    assert "SoftSpoken, k = 4" in out
    assert "silent, trees checked" in out
    assert "in `up`, an image" in out


def test_a_network_has_the_ots_that_its_documentation_counts() -> None:
    ots = silent_ot.count_ots("stream-cifar100-25k")
    assert round((ots.down + ots.up) / 1e6, 2) == 1.46


def test_dense_guessing_costs_what_the_published_estimator_says() -> None:
    # eprint 2022/712's script for (n, k, t) = (2^20, 163840, 512): 174.03
    assert lpn_attacks.information_set_bits(Shape(163_840, 512, 11)) == pytest.approx(174.03, abs=0.1)


def test_the_algebraic_attack_solves_long_batches_at_degree_two_without_a_guess() -> None:
    # More products of two samples of a block than products of two unknowns: linear algebra alone.
    blocks, block, unknowns = 4971, 2048, 124_000
    assert blocks * block * (block - 1) // 2 > unknowns * (unknowns - 1) // 2
    found = lpn_attacks.algebraic(Shape(unknowns, blocks, 11))
    assert (found.degree, found.guessed) == (2, 0)
    assert found.bits < 90


def test_guesses_in_some_blocks_cost_the_algebraic_attack_less_than_in_all() -> None:
    found = lpn_attacks.algebraic(SHAPE)
    assert 0 < found.blocks < SHAPE.trees
    assert found.bits < 160


def test_every_attack_on_the_shape_in_use_costs_more_than_128_bits() -> None:
    assert lpn_attacks.information_set_bits(SHAPE) > 280
    assert lpn_attacks.algebraic(SHAPE).bits == pytest.approx(155.4, abs=0.1)
    assert lpn_attacks.sparse_core_bits(SHAPE, 48_438) > 172  # the core that docs/security/silent-ot.md found


def test_peeling_leaves_a_part_with_as_many_samples_as_unknowns() -> None:
    shape = Shape(secret=320, trees=4, depth=11)  # the ratio of samples and unknowns in use, a 256th of the size
    size = lpn_attacks.core_size(shape)
    assert 0.54 * shape.secret < size < 0.64 * shape.secret


@pytest.mark.slow
def test_the_core_of_the_shape_in_use() -> None:
    assert lpn_attacks.core_size(SHAPE) == 48_438
