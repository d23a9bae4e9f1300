"""One thread for the trainings of these tests, and finished runs to report on."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from sphynx.run.progress import QUIET
from sphynx.run.work import Work
from sphynx.search.placement.candidates import placements
from sphynx.search.placement.place import place
from sphynx.search.placement.recipe import load_placement_recipe
from sphynx.search.recipe import load_recipe
from sphynx.search.search import search_cells
from sphynx.space.design import Design
from sphynx.space.published_cells import SPHYNX
from sphynx.space.tally import Shape
from sphynx.train.loop import train
from tests.torch_threads import torch_threads
from tests.train.small import data, job


@pytest.fixture(autouse=True, scope="session")
def one_thread() -> Iterator[None]:
    with torch_threads(1):
        yield


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A training, a placement search and a cell search, all of them real."""
    folder = tmp_path_factory.mktemp("runs")
    train(job(folder / "first", held_out=0.2))
    design = Design(SPHYNX, 2, 3, (0, 1), Shape(1, 4, 4), 3)
    recipe = load_placement_recipe("smoke", {"batch_size": 8})
    place(design, data(), recipe, placements(3, 2), folder / "places", Work(voice=QUIET))
    cells = load_recipe("smoke", {"batch_size": 8, "epochs": 1})
    search_cells(data(), "random", cells, folder / "cells", Work(voice=QUIET))
    return folder
