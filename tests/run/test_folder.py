"""Run folders: what is saved is what is read, and no kill leaves a folder without a complete checkpoint."""

import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from sphynx.errors import InputError, MissingPartError, SphynxError
from sphynx.record import fingerprint
from sphynx.run.environment import describe_environment, source_hash
from sphynx.run.folder import RunFolder
from tests.warm_process import Warm


def test_checkpoint_round_trip(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    assert folder.load_checkpoint() is None and not folder.has_checkpoint
    state = {"weights": {"a": torch.randn(3, 2)}, "epoch": 4, "random": torch.get_rng_state(), "best": None}
    folder.save_checkpoint(state)
    loaded = folder.load_checkpoint()
    assert loaded is not None and loaded["epoch"] == 4 and loaded["best"] is None
    assert torch.equal(loaded["weights"]["a"], state["weights"]["a"])  # type: ignore[index]
    assert sorted(p.name for p in (tmp_path / "run").iterdir()) == ["checkpoint.pt", "figures"]


def test_a_checkpoint_is_for_its_owner_as_the_weights_are(tmp_path: Path) -> None:
    (tmp_path / "checkpoint.pt.new").touch(mode=0o644)  # as a killed run of an older version leaves it
    folder = RunFolder(tmp_path)
    folder.save_checkpoint({"weights": torch.zeros(3)})
    folder.write_json("result.json", {})
    assert (tmp_path / "checkpoint.pt").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "result.json").stat().st_mode & 0o777 == 0o666 & ~_umask()


def _umask() -> int:
    os.umask(mask := os.umask(0))
    return mask


def test_a_disk_that_takes_no_more_leaves_the_old_checkpoint_and_says_so(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.save_checkpoint({"epoch": 1})
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    try:
        with pytest.raises(OSError, match="File too large") as refused:
            folder.save_checkpoint({"epoch": 2, "weights": torch.zeros(100_000)})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert refused.value.filename == str(tmp_path / "checkpoint.pt")
    assert folder.load_checkpoint() == {"epoch": 1}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint.pt", "figures"]


HOLDS_A_FOLDER = """
import sys
from pathlib import Path
from sphynx.run.folder import RunFolder
with RunFolder(Path(sys.argv[1])).alone():
    print("holds it", flush=True)
    sys.stdin.read()
"""


def test_a_folder_has_one_run_at_a_time(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    other = subprocess.Popen(
        [sys.executable, "-c", HOLDS_A_FOLDER, str(folder.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with other:
        assert other.stdout is not None and other.stdout.readline() == "holds it\n"
        with pytest.raises(InputError, match="run: another process is running"), folder.alone():
            pass
        with RunFolder(tmp_path / "another").alone():
            other.kill()
    for _ in range(2):  # freed by whatever ended the other one, and by ourselves
        with folder.alone():
            pass


def test_a_checkpoint_of_something_else_is_refused(tmp_path: Path) -> None:
    RunFolder(tmp_path, belongs_to="one").save_checkpoint({"epoch": 1})
    with pytest.raises(InputError, match=r"checkpoint\.pt: the checkpoint belongs to another design"):
        RunFolder(tmp_path, belongs_to="two").load_checkpoint()
    assert RunFolder(tmp_path, belongs_to="one").load_checkpoint() == {"epoch": 1}


def test_damaged_and_foreign_checkpoints_are_named(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.save_checkpoint({"weights": torch.randn(1000)})
    path = tmp_path / "checkpoint.pt"
    content = path.read_bytes()
    for damaged in (b"", b"nonsense", content[: len(content) // 2]):
        path.write_bytes(damaged)
        with pytest.raises(SphynxError, match=r"checkpoint\.pt"):
            folder.load_checkpoint()
    torch.save([1, 2], path)
    with pytest.raises(InputError, match="not a checkpoint"):
        folder.load_checkpoint()


def test_a_doctored_checkpoint_runs_nothing(tmp_path: Path) -> None:
    marker = tmp_path / "ran"

    class Evil:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return os.system, (f"touch {marker}",)

    torch.save({"format": "sphynx-checkpoint/1", "state": Evil()}, tmp_path / "checkpoint.pt")
    with pytest.raises(SphynxError, match="cannot be read"):
        RunFolder(tmp_path).load_checkpoint()
    assert not marker.exists()


@pytest.mark.parametrize("moment", ["os.fsync", "pathlib.Path.replace"])
def test_kill_in_the_middle_of_a_save_keeps_the_one_before(moment: str, tmp_path: Path, warm: Warm) -> None:
    """A real process that is killed (-9) before its second checkpoint's bytes are flushed, or before its rename."""
    code = f"""
import os, pathlib, signal, sys, torch
from sphynx.run.folder import RunFolder
folder = RunFolder(sys.argv[1])
folder.save_checkpoint({{"epoch": 1, "weights": torch.ones(100_000)}})
def killed(*_):
    os.kill(os.getpid(), signal.SIGKILL)
{moment} = killed
folder.save_checkpoint({{"epoch": 2, "weights": torch.zeros(100_000)}})
"""
    command = [str(warm.programs / "python"), "-c", code, str(tmp_path)]
    ran = subprocess.run(command, env=warm.environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 128 + signal.SIGKILL, ran.stderr
    state = RunFolder(tmp_path).load_checkpoint()
    assert state is not None and state["epoch"] == 1 and bool((state["weights"] == 1).all())


def test_a_worker_that_was_forked_does_not_keep_the_folder(tmp_path: Path) -> None:
    """As those that decode streamed images are, and may outlive their training."""
    folder = RunFolder(tmp_path / "run")
    wakes, wake = os.pipe()
    with folder.alone():
        worker = os.fork()
        if not worker:
            os.close(wake)
            os.read(wakes, 1)
            os._exit(0)
    try:
        with folder.alone():
            pass
    finally:
        os.close(wake)
        os.waitpid(worker, 0)
        os.close(wakes)


def test_metrics_survive_a_line_that_was_cut_off(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.append_metrics({"epoch": 1, "loss": 0.5})
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"epoch": 2, "lo')
    assert folder.read_metrics() == [{"epoch": 1, "loss": 0.5}]
    folder.keep_metrics([])
    assert folder.read_metrics() == []


def test_json_files(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.write_json("result.json", {"accuracy": 0.5})
    assert folder.read_json("result.json") == {"accuracy": 0.5}
    with pytest.raises(InputError, match=r"other\.json"):
        folder.read_json("other.json")
    (tmp_path / "result.json").write_text("{")
    with pytest.raises(InputError, match="not JSON"):
        folder.read_json("result.json")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot create the run folder"):
        RunFolder(tmp_path / "file" / "run")


def test_tensorboard_without_its_package_is_a_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(MissingPartError, match="need the package tensorboard"):
        RunFolder(tmp_path, tensorboard=True)


def test_fingerprints_tell_values_apart_not_orders_of_keys() -> None:
    assert fingerprint({"a": 1, "b": [2.5]}) == fingerprint({"b": [2.5], "a": 1})
    assert fingerprint({"a": 1}) != fingerprint({"a": 2})


def test_the_environment_names_its_source() -> None:
    environment = describe_environment()
    assert environment["source_sha256"] == source_hash() and environment["threads"] == torch.get_num_threads()
