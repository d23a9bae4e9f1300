"""The page of rebuilt models: each beside its card."""

from __future__ import annotations

from docs.make_rebuilt import page

from sphynx.api.rebuilding import Rebuilt


def test_a_rebuilt_model_stands_beside_its_card() -> None:
    rebuilt = Rebuilt("tiny", 0.8621, 0.8670, 6.04, "NVIDIA H200", "0123456789abcdef")
    row = "| tiny | 86.70 % | 85.58 to 86.86 % | 86.21 % | -0.49 | 6.0 | NVIDIA H200 | 0123456789ab |\n"
    assert page({"tiny": (rebuilt, (0.8558, 0.8686, 0.8670))}).endswith(row)
    assert page({}).endswith("\nNone was yet.\n")
