"""Trained networks for the front door: as small as they can be, what they learned does not matter."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

import sphynx
from sphynx.network.trained import save_model, save_normalisation
from tests.service.authority import make_authority
from tests.service.tiny import save_tiny


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on digits: 8x8 grey images, ten classes, 128 ReLUs."""
    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("api") / "run"
    folder.mkdir()
    cells = sphynx.find_cells("sphynx")
    design = sphynx.Design(cells, 1, 2, (1,), sphynx.Shape(1, 8, 8), 10, conv_stack="single")
    save_model(folder, sphynx.build_network(design))
    save_normalisation(folder, sphynx.open_data("digits"))
    (folder / "config.json").write_text(json.dumps({"data": {"name": "digits"}}))
    return folder


@pytest.fixture(scope="session")
def compiled(run_folder: Path) -> sphynx.Compiled:
    return sphynx.compile_network(run_folder)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_authority(tmp_path_factory.mktemp("keys") / "keys")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> sphynx.Compiled:
    """32 ReLUs, 4x4 grey images, three classes."""
    folder = tmp_path_factory.mktemp("tiny") / "compiled"
    save_tiny(folder)
    return sphynx.Compiled.load(folder)


@pytest.fixture(scope="module")
def server(tiny: sphynx.Compiled, authority: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[sphynx.Server]:
    state = tmp_path_factory.mktemp("state")
    with sphynx.Server(tiny, keys=authority / "server", listen="127.0.0.1:0", state=state) as running:
        yield running
