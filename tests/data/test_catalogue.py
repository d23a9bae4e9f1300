"""Fetching by name: hashes are checked, and without a network the error says which file to put where."""

import functools
import hashlib
import http.server
import shutil
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sphynx.data import catalogue
from sphynx.data.catalogue import CATALOGUE, check_hash, get
from sphynx.data.open import open_data
from sphynx.errors import InputError, SphynxError
from tests.data.layouts import write_tiny_imagenet


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SPHYNX_DATA", str(tmp_path))
    return tmp_path


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """A folder and the address that serves it."""
    folder = tmp_path_factory.mktemp("served")
    handler = functools.partial(QuietHandler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as httpd:
        thread = threading.Thread(target=httpd.serve_forever)
        thread.start()
        yield folder, f"http://127.0.0.1:{httpd.server_address[1]}"
        httpd.shutdown()
        thread.join()


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


def test_a_download_is_checked_and_unpacked(
    home: Path, server: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pooch")
    folder, address = server
    write_tiny_imagenet(folder / "source" / "tiny-imagenet-200")
    archive = Path(shutil.make_archive(str(folder / "tiny-imagenet-200"), "zip", folder / "source"))
    md5 = hashlib.md5(archive.read_bytes()).hexdigest()
    entry = CATALOGUE["tiny-imagenet"]

    def published_as(checksum: str) -> None:
        file = catalogue.RemoteFile(f"{address}/tiny-imagenet-200.zip", checksum)
        monkeypatch.setitem(CATALOGUE, "tiny-imagenet", replace(entry, files=(file,)))

    published_as("0" * 32)
    with pytest.raises(InputError, match="hash"):
        get("tiny-imagenet")
    assert list(home.glob("*.zip")) == []
    published_as(md5)
    assert get("tiny-imagenet") == home / "tiny-imagenet-200"
    assert sorted(path.name for path in home.iterdir()) == ["tiny-imagenet-200", "tiny-imagenet-200.zip"]
    assert open_data("tiny-imagenet").classes == 2


def test_check_hash(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"abc")
    check_hash(file, hashlib.md5(b"abc").hexdigest())
    with pytest.raises(InputError, match=r"/f: its hash is 900150983cd24fb0d6963f7d28e17f72, not 0+"):
        check_hash(file, "0" * 32)


def test_a_wrong_file_in_place_is_refused(home: Path) -> None:
    (home / "cifar-100-python.tar.gz").write_bytes(b"half a download")
    with pytest.raises(InputError, match=r"cifar-100-python\.tar\.gz: its hash is"):
        get("cifar100")


def test_without_a_network_it_says_what_to_put_where(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pooch = pytest.importorskip("pooch")

    def unreachable(*_: Any, **__: Any) -> None:
        raise ConnectionError("no route")

    monkeypatch.setattr(pooch, "retrieve", unreachable)
    with pytest.raises(SphynxError, match=r"https://www.cs.toronto.edu.* cannot be reached") as caught:
        get("cifar10")
    assert str(home / "cifar-10-python.tar.gz") in caught.value.remedy


def test_a_name_that_was_not_fetched(home: Path) -> None:
    with pytest.raises(InputError, match=str(home)) as caught:
        open_data("fashion-mnist")
    assert "sphynx data get fashion-mnist" in caught.value.remedy
    with pytest.raises(InputError, match="'mnist' is not a known data set"):
        get("mnist")


def test_a_good_file_in_place_needs_no_network(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = b"the real file"
    entry = CATALOGUE["cifar10"]
    file = catalogue.RemoteFile(entry.files[0].url, hashlib.md5(content).hexdigest())
    monkeypatch.setitem(CATALOGUE, "cifar10", replace(entry, files=(file,)))
    (home / file.name).write_bytes(content)
    assert get("cifar10") == home / "cifar-10-python.tar.gz"
