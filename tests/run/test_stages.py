"""Stages of a run: what counts as work, who may continue it, and the time of interrupted attempts."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from sphynx.errors import InputError
from sphynx.record import Record
from sphynx.run.folder import RunFolder
from sphynx.run.stages import Stages


@dataclass(frozen=True)
class Done(Record):
    x: int = 0


def test_a_checkpoint_of_an_unfinished_stage_is_work(tmp_path: Path) -> None:
    stages = Stages(tmp_path, {"seed": 0}, resume=False)
    with pytest.raises(KeyboardInterrupt):
        stages.run("one", Done, lambda: _save_and_stop(tmp_path / "one"))
    with pytest.raises(InputError, match="already contains a run") as refused:
        Stages(tmp_path, {"seed": 0}, resume=False)
    assert "Give `resume=True`" in refused.value.remedy
    with pytest.raises(InputError, match="another seed"):
        Stages(tmp_path, {"seed": 1}, resume=True)


def test_a_run_is_not_continued_with_other_data(tmp_path: Path) -> None:
    Stages(tmp_path, {"seed": 0}, resume=False, data="old").run("one", Done, Done)
    with pytest.raises(InputError, match="the data differ from those that the run was started with"):
        Stages(tmp_path, {"seed": 0}, resume=True, data="new")
    assert Stages(tmp_path, {"seed": 0}, resume=True, data="old").finished("one")


def _save_and_stop(folder: Path) -> Done:
    RunFolder(folder).save_checkpoint({"epoch": 1})
    raise KeyboardInterrupt


def test_a_folder_in_which_a_stage_runs_is_not_started_anew(tmp_path: Path) -> None:
    stages, log = Stages(tmp_path, {"seed": 0}, resume=False), tmp_path / "stages.json"

    def work() -> Done:
        before = log.read_text()
        with pytest.raises(InputError, match="another process"):
            Stages(tmp_path, {"seed": 1}, resume=False)
        with pytest.raises(InputError, match="another process"):
            Stages(tmp_path, {"seed": 0}, resume=True).run("one", Done, Done)
        assert log.read_text() == before
        return Done()

    stages.run("one", Done, work)


def test_stages_count_the_time_of_interrupted_attempts(tmp_path: Path) -> None:
    stages = Stages(tmp_path, {"seed": 0}, resume=False)
    with pytest.raises(ValueError, match="stop"):
        stages.run("one", Done, lambda: (_ for _ in ()).throw(ValueError("stop")))
    again = Stages(tmp_path, {"seed": 0}, resume=True)
    assert not again.finished("one") and again.run("one", Done, lambda: Done(1)) == Done(1)
    assert Stages(tmp_path, {"seed": 0}, resume=True).run("one", Done, Done) == Done(1)
    with pytest.raises(InputError, match="already contains a run"):
        Stages(tmp_path, {"seed": 0}, resume=False)
    with pytest.raises(InputError, match="another seed"):
        Stages(tmp_path, {"seed": 1}, resume=True)
