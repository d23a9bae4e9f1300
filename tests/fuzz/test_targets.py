"""Each parser: what was found before, good inputs, and a few hundred changes of them, the same ones in every run."""

from __future__ import annotations

import pytest

from sphynx.data import picture
from tests.data.test_picture import resized_whole
from tests.fuzz.picture_target import CostlyError
from tests.fuzz.search import FoundError, search
from tests.fuzz.targets import CORPUS, TARGETS

EXECUTIONS = {
    "weights": 60,
    "bundle": 100,
    "onnx": 40,
    "program": 100,
    "program-file": 60,
    "image": 100,
    "exported": 100,
}


pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:PIL")  # of metadata that it skips


@pytest.mark.parametrize("name", TARGETS)
def test_what_is_not_used_is_refused(name: str) -> None:
    found = search(TARGETS[name], seed=1, executions=EXECUTIONS.get(name, 300), steered=False)
    assert found.used or name == "frames"  # whose stream always ends in a refusal


def test_kept_inputs_are_small_and_belong_to_a_target() -> None:
    assert {folder.name for folder in CORPUS.iterdir()} <= set(TARGETS)
    assert sum(file.stat().st_size for file in CORPUS.rglob("*") if file.is_file()) < 64 << 10


def test_a_change_of_a_good_input_reaches_further_than_noise() -> None:
    """Otherwise the search above proves little: a parser's first check would refuse everything."""
    steered = search(TARGETS["program"], seed=3, executions=60)
    assert steered.lines > 150 and steered.used > 0


def test_a_picture_that_costs_too_much_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small file of a pixel's width once took gigabytes: all of it was resized before it was cut."""
    monkeypatch.setattr(picture, "cover", lambda read, width, height, _: resized_whole(read, width, height))
    with pytest.raises(FoundError) as found:
        search(TARGETS["image"], seed=4, executions=3000, steered=False)
    assert isinstance(found.value.__cause__, CostlyError) and len(found.value.data) < 1 << 17
