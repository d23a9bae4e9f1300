"""Weights that a clone does not hold: fetched by name, and refused unless their hash is the listed one."""

import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from tools.fetch_weights import LIST, MODELS, fetch, list_weights, read_list

from sphynx.errors import InputError


@pytest.fixture
def released(tmp_path: Path) -> Path:
    for name in ("one", "two"):
        (tmp_path / "released" / name).mkdir(parents=True)
        (tmp_path / "released" / name / "model.safetensors").write_bytes(name.encode() * 1000)
    (tmp_path / "list").write_text(list_weights(tmp_path / "released"))
    return tmp_path / "released"


def test_the_list_has_the_weights_that_ship() -> None:
    assert LIST.read_text() == list_weights(MODELS), "write it again: python -m tools.fetch_weights --list"


def test_what_is_missing_is_fetched_from_a_folder_or_a_server(released: Path, tmp_path: Path) -> None:
    assert fetch(str(released), ["two"], tmp_path / "models", tmp_path / "list") == ["two"]
    handler = partial(SimpleHTTPRequestHandler, directory=str(released))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/"
        assert fetch(address, [], tmp_path / "models", tmp_path / "list") == ["one"]
        server.shutdown()
    assert list_weights(tmp_path / "models") == (tmp_path / "list").read_text()
    assert fetch("nowhere", [], tmp_path / "models", tmp_path / "list") == []


def test_other_weights_are_refused_and_not_kept(released: Path, tmp_path: Path) -> None:
    (released / "one" / "model.safetensors").write_bytes(b"other")
    with pytest.raises(InputError, match=f"not {read_list(tmp_path / 'list')['one']}"):
        fetch(str(released), ["one"], tmp_path / "models", tmp_path / "list")
    assert not list((tmp_path / "models" / "one").iterdir())
    with pytest.raises(InputError, match="is not in the list"):
        fetch(str(released), ["three"], tmp_path / "models", tmp_path / "list")
    with pytest.raises(InputError, match="cannot be read"):
        fetch(str(tmp_path / "nowhere"), ["one"], tmp_path / "models", tmp_path / "list")
    (tmp_path / "list").write_text(f"{'0' * 64}  ../../home/model.safetensors\n")
    with pytest.raises(InputError, match="is not a hash"):
        fetch(str(released), [], tmp_path / "models", tmp_path / "list")
