"""The table of files goes on where it stopped, and a file that cannot be had does not end it."""

import zipfile
from pathlib import Path

import numpy as np
import pytest
from benchmarks import zoo_files
from benchmarks.zoo_files import Entry, begun, is_made, keep, kept_rows, main

from tests.compiler.frontend.onnx_models import plain_cnn, write


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One wheel with a network and one with none, and a table of both."""
    network = write(plain_cnn(), tmp_path / "net.onnx")
    for name in ("with", "without"):
        with zipfile.ZipFile(tmp_path / f"{name}-1.0-py3-none-any.whl", "w") as wheel:
            wheel.writestr("about.txt", "a wheel")
            if name == "with":
                wheel.write(network, "models/net.onnx")
    entries = tuple(
        Entry(name, f"{name}==1.0", "net.onnx", "classes", (1, 8, 8), gigabytes=gigabytes)
        for name, gigabytes in (("without", 0), ("with", 0), ("large", 1000))
    )
    monkeypatch.setattr(zoo_files, "ENTRIES", entries)
    monkeypatch.setattr(zoo_files, "FILE", tmp_path / "files.json")
    return tmp_path


def test_every_file_gets_a_row_and_none_is_made_twice(
    wheels: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    limits: list[object] = []
    monkeypatch.setattr("resource.setrlimit", lambda *given: limits.append(given))
    monkeypatch.setattr("sys.argv", ["zoo_files", "--wheels", str(wheels), "--memory", "20"])
    main()
    rows = kept_rows()
    assert list(rows) == ["without", "with", "large"] and limits
    assert rows["with"].exact and rows["with"].relus and not rows["with"].blocker
    assert "holds no such file" in rows["without"].blocker and "1000 GB" in rows["large"].blocker
    capsys.readouterr()
    main()
    assert capsys.readouterr().out == ""


@pytest.mark.usefixtures("wheels")
def test_a_row_with_other_flags_is_made_again() -> None:
    entry = Entry("with", "with==1.0", "net.onnx", "classes", (1, 8, 8), ("--approximate",))
    keep(begun(entry))
    assert is_made(entry, kept_rows()["with"])
    assert not is_made(Entry("with", "with==1.0", "net.onnx", "classes", (1, 8, 8)), kept_rows()["with"])
    assert not is_made(entry, None)


def test_pictures_are_the_same_every_time() -> None:
    for draw in (zoo_files.smooth, zoo_files.words):
        assert np.array_equal(draw((3, 16, 24)), draw((3, 16, 24)))
