"""The page on networks from elsewhere names the torchvision that fits the torch that the project is tested with."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_named_torchvision_fits_the_pinned_torch() -> None:
    """torchvision's releases follow torch's: 0.21 came with 2.6, 0.28 with 2.13."""
    pinned = re.search(r"^torch==2\.(\d+)\.\d+$", (ROOT / "constraints.txt").read_text(), re.M)
    assert pinned is not None
    page = (ROOT / "docs" / "bring-a-network.md").read_text()
    assert set(re.findall(r"torchvision==0\.(\d+)", page)) == {str(int(pinned[1]) + 15)}
    assert f"fits torch 2.{pinned[1]}." in page
