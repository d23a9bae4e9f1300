"""From data and a ReLU budget to a trained network, in one call. Stage by stage: `searching`, `training`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sphynx.api.data import as_data
from sphynx.config import Keywords
from sphynx.data.images import Data
from sphynx.design.ordering import Order
from sphynx.design.pipeline import Pipeline
from sphynx.design.results import DesignResult
from sphynx.design.settings import DesignSettings
from sphynx.run.work import open_work


@Keywords(DesignSettings).function
def design_network(data: Data | str | Path, settings: DesignSettings) -> DesignResult:
    """Run the whole method: plan, cells, reduce cells, training, comparison. `load_network(out)` is the result.

    Cells are the published ones unless a `strategy` searches for them; found ones are ranked together with
    `random_cells` random ones. `reduce_at` is "search", "fixed" (D/3 and 2D/3) or positions. `compare` is the recipe of
    the networks with other cells: "same", "none" or a name. `settings` are values of the stages' recipes,
    {"training.epochs": 4}. `time_budget`, seconds or "15m", scales the epochs.

        >>> result = sphynx.design_network("digits", relu_budget="1k", out="runs/designed")  # doctest: +SKIP
        >>> result.accuracy, result.reduce_positions  # doctest: +SKIP
    """
    with open_pipeline(data, Order(settings)) as pipeline:
        return pipeline.run()


@contextmanager
def open_pipeline(data: Data | str | Path, order: Order) -> Iterator[Pipeline]:
    """The stages before the first one runs: what they will do can be shown before they do it."""
    with open_work(order.settings) as work:
        images = as_data(data)
        yield Pipeline(order.request(images), images, Path(order.settings.out), work)
