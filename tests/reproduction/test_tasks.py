import os
import signal
from pathlib import Path

import pytest
from reproduction import tasks
from reproduction.task_minutes import TaskMinutes
from reproduction.tasks import Task, run_tasks


def test_tasks_wait_for_what_they_need_and_are_not_done_again(tmp_path: Path) -> None:
    first, second, third = (tmp_path / name for name in ("first", "second", "third"))
    found = {
        "third": Task(lambda: third.write_text(second.read_text() + "3"), third, ("second",), quick=True),
        "second": Task(lambda: second.write_text(first.read_text() + "2"), second, ("first",)),
        "first": Task(lambda: first.write_text("1"), first),
    }
    assert not run_tasks(found, ["second"], jobs=2, seconds=60, logs=tmp_path / "logs")
    assert not run_tasks(found, ["first", "second", "third"], jobs=2, seconds=-1, logs=tmp_path / "logs")
    for _ in range(2):
        assert run_tasks(found, ["first", "second", "third"], jobs=2, seconds=60, logs=tmp_path / "logs")
        assert third.read_text() == "123"
        first.write_text("another")


def test_a_failed_task_keeps_back_what_needs_it_and_says_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    judged: list[str] = []
    found = {
        "bad": Task(lambda: 1 // 0, tmp_path / "bad"),
        "after": Task(lambda: judged.append("after"), tmp_path / "after", ("bad",)),
        "judge": Task(lambda: judged.append("judge"), tmp_path / "judge", ("bad",), quick=True),
    }
    assert not run_tasks(found, list(found), jobs=1, seconds=60, logs=tmp_path / "logs")
    assert judged == ["judge"] and "ZeroDivisionError" in capsys.readouterr().out


def test_at_the_end_of_the_time_what_runs_may_save(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "LEAST_SECONDS", 0.0)

    def save_when_asked() -> None:
        try:
            signal.pause()
        except KeyboardInterrupt:
            (tmp_path / "saved").touch()
            raise

    found = {"long": Task(save_when_asked, tmp_path / "long")}
    assert not run_tasks(found, ["long"], jobs=1, seconds=2, logs=tmp_path / "logs")
    assert (tmp_path / "saved").is_file()


def test_what_is_left_takes_as_long_as_its_like_took(tmp_path: Path) -> None:
    minutes = TaskMinutes(tmp_path / "minutes.json", needed={"views"})
    assert minutes.left(["snl-50k", "views"], 2, {}) == (0.0, 2)
    minutes.add("views", 1.0, finished=True)
    assert minutes.left(["snl-50k", "snl-25k"], 2, {}) == (0.0, 2)
    minutes.add("snl-50k", 1.5, finished=False)
    minutes.add("snl-50k", 2.5, finished=True)
    minutes.add("snl-25k", 1.0, finished=False)
    again = TaskMinutes(tmp_path / "minutes.json", needed={"views"})
    assert again.left(["snl-25k", "senet-25k"], 2, {"snl-25k": 1.0}) == (4.0, 0)  # 2 and 4 minutes side by side
    assert again.left(["snl-25k", "senet-25k"], 1, {}) == (7.0, 0)


def test_a_killed_queue_leaves_what_was_kept_and_nothing_that_runs(tmp_path: Path) -> None:
    pipe_out, pipe_in = os.pipe()

    def write_and_wait() -> None:
        os.write(pipe_in, b"x")
        signal.pause()

    queue = os.fork()
    if not queue:
        found = {
            "short": Task((tmp_path / "short").touch, tmp_path / "short"),
            "long": Task(write_and_wait, tmp_path / "long", ("short",)),
        }
        run_tasks(
            found, list(found), jobs=1, seconds=60, logs=tmp_path / "logs", keep=lambda: (tmp_path / "kept").touch()
        )
        os._exit(0)
    os.close(pipe_in)
    assert os.read(pipe_out, 1) == b"x" and (tmp_path / "kept").is_file()
    os.kill(queue, signal.SIGKILL)
    os.waitpid(queue, 0)
    assert os.read(pipe_out, 1) == b""  # nobody has its other end any more


def test_a_queue_that_is_told_to_stop_lets_its_tasks_save(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "TOLD_SECONDS", 0.0)

    def save_when_asked() -> None:
        try:
            os.kill(os.getppid(), signal.SIGTERM)
            signal.pause()
        except KeyboardInterrupt:
            (tmp_path / "saved").touch()
            raise

    before = signal.getsignal(signal.SIGTERM)
    found = {"long": Task(save_when_asked, tmp_path / "long")}
    assert not run_tasks(found, ["long"], jobs=1, seconds=60, logs=tmp_path / "logs")
    assert (tmp_path / "saved").is_file() and signal.getsignal(signal.SIGTERM) == before


def test_tasks_may_save_where_keeping_fails(tmp_path: Path) -> None:
    pipe_out, pipe_in = os.pipe()

    def save_when_asked() -> None:
        try:
            os.write(pipe_in, b"x")
            signal.pause()
        except KeyboardInterrupt:
            (tmp_path / "saved").touch()
            raise

    def end_beside_it() -> None:
        os.read(pipe_out, 1)
        (tmp_path / "short").touch()

    def keep() -> None:
        raise OSError("no space is left")

    found = {
        "long": Task(save_when_asked, tmp_path / "long"),
        "short": Task(end_beside_it, tmp_path / "short"),
    }
    with pytest.raises(OSError, match="no space"):
        run_tasks(found, list(found), jobs=2, seconds=60, logs=tmp_path / "logs", keep=keep)
    assert (tmp_path / "saved").is_file()
