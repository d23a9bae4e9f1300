"""The saver: what was handed over is what is saved, whatever happens to the tensors after."""

from pathlib import Path

import pytest
import torch

from sphynx.errors import InterruptedWorkError
from sphynx.run.folder import RunFolder
from sphynx.run.saver import Saver, copied


def test_a_checkpoint_holds_the_state_of_its_moment(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    weights = torch.zeros(1000)
    with Saver(folder) as saver:
        for epoch in range(5):
            weights.fill_(epoch)
            saver.save({"epoch": epoch, "weights": weights})
            weights.fill_(-1)
        saver.wait()
        state = folder.load_checkpoint()
    assert state is not None and state["epoch"] == 4 and bool((state["weights"] == 4).all())


def test_no_checkpoint_is_due_while_saving_takes_more_than_its_share(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [100.0]
    monkeypatch.setattr("sphynx.run.saver.time.monotonic", lambda: clock[0])

    def slow(*_: object) -> None:
        clock[0] += 2.0

    monkeypatch.setattr(RunFolder, "save_checkpoint", slow)
    with Saver(RunFolder(tmp_path)) as saver:
        assert saver.due
        saver.save({"epoch": 1})
        saver.wait()
        assert not saver.due
        clock[0] = 119.9
        assert not saver.due
        clock[0] = 120.0
        assert saver.due


def test_an_interrupted_block_still_finishes_its_save(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), Saver(RunFolder(tmp_path)) as saver:
        saver.save({"epoch": 1})
        raise KeyboardInterrupt
    assert RunFolder(tmp_path).load_checkpoint() == {"epoch": 1}


def test_a_failed_save_is_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(RunFolder, "save_checkpoint", full)
    with pytest.raises(OSError, match="No space left"), Saver(RunFolder(tmp_path)) as saver:
        saver.save({"epoch": 1})


def test_an_interrupt_whose_save_failed_does_not_say_that_the_work_is_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(RunFolder, "save_checkpoint", full)
    with pytest.raises(OSError, match="No space left"), Saver(RunFolder(tmp_path)) as saver:
        saver.save({"epoch": 1})
        raise InterruptedWorkError()


def test_copies_keep_their_kinds() -> None:
    tensor = torch.ones(2, requires_grad=True)
    value = {"a": [tensor, (1, "x")], "b": None}
    copy = copied(value)
    assert copy["a"][1] == (1, "x") and copy["b"] is None
    assert torch.equal(copy["a"][0], tensor) and copy["a"][0].data_ptr() != tensor.data_ptr()
    assert not copy["a"][0].requires_grad
