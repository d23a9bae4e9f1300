"""Stages of a run: what counts as work, who may continue it, and the time of interrupted attempts."""

from pathlib import Path
from typing import Any

import pytest

from sphynx.errors import InputError
from sphynx.run.folder import RunFolder
from sphynx.run.stages import Stages


def test_a_checkpoint_of_an_unfinished_stage_is_work(tmp_path: Path) -> None:
    stages = Stages(tmp_path, {"seed": 0}, resume=False)
    with pytest.raises(KeyboardInterrupt):
        stages.run("one", lambda: _save_and_stop(tmp_path / "one"))
    with pytest.raises(InputError, match="holds a run"):
        Stages(tmp_path, {"seed": 0}, resume=False)
    with pytest.raises(InputError, match="another seed"):
        Stages(tmp_path, {"seed": 1}, resume=True)


def _save_and_stop(folder: Path) -> dict[str, Any]:
    RunFolder(folder).save_checkpoint({"epoch": 1})
    raise KeyboardInterrupt


def test_a_folder_in_which_a_stage_runs_is_not_started_anew(tmp_path: Path) -> None:
    stages, log = Stages(tmp_path, {"seed": 0}, resume=False), tmp_path / "stages.json"

    def work() -> dict[str, Any]:
        before = log.read_text()
        with pytest.raises(InputError, match="another process"):
            Stages(tmp_path, {"seed": 1}, resume=False)
        with pytest.raises(InputError, match="another process"):
            Stages(tmp_path, {"seed": 0}, resume=True).run("one", dict)
        assert log.read_text() == before
        return {}

    stages.run("one", work)


def test_stages_count_the_time_of_interrupted_attempts(tmp_path: Path) -> None:
    stages = Stages(tmp_path, {"seed": 0}, resume=False)
    with pytest.raises(ValueError, match="stop"):
        stages.run("one", lambda: (_ for _ in ()).throw(ValueError("stop")))
    again = Stages(tmp_path, {"seed": 0}, resume=True)
    assert not again.finished("one") and again.run("one", lambda: {"x": 1}) == {"x": 1}
    assert Stages(tmp_path, {"seed": 0}, resume=True).run("one", dict) == {"x": 1}
    with pytest.raises(InputError, match="holds a run"):
        Stages(tmp_path, {"seed": 0}, resume=False)
    with pytest.raises(InputError, match="another seed"):
        Stages(tmp_path, {"seed": 1}, resume=True)
