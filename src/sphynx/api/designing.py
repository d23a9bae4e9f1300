"""From data and a ReLU budget to a trained network, in one call. Stage by stage: `searching`, `training`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sphynx.api.data import as_data
from sphynx.config import Keywords
from sphynx.data.images import Data
from sphynx.design.family import Orders, better_family, read_orders
from sphynx.design.pipeline import Pipeline
from sphynx.design.results import DesignResult
from sphynx.design.settings import DesignSettings
from sphynx.design.stream_pipeline import StreamPipeline
from sphynx.design.stream_results import StreamDesignResult
from sphynx.run.work import open_work


@Keywords(DesignSettings).function
def design_network(data: Data | str | Path, settings: DesignSettings) -> DesignResult | StreamDesignResult:
    """Run the whole method: from a plan to a trained network, `load_network(out)`. The family decides how.

    Cells: plan, cells, reduce cells, training, comparison. Cells are the published ones unless a `strategy` searches
    for them; found ones are ranked together with `random_cells` random ones. `reduce_at` is "search", "fixed" (D/3 and
    2D/3) or positions. `compare` is the recipe of the networks with other cells: "same", "none" or a name.

    Stream: plan, teachers, allocation, views, training. `teacher` is "auto", which trains `teachers` wide ResNets, or
    trained runs, models' names or networks; `allocation` is "planned" or "search".

    `settings` are values of the stages' recipes, {"training.epochs": 4}. `time_budget`, seconds or "15m", scales the
    epochs.

        >>> result = sphynx.design_network("digits", relu_budget="1k", out="runs/designed")  # doctest: +SKIP
        >>> result.accuracy, result.reduce_positions  # doctest: +SKIP
    """
    with open_pipeline(data, read_orders(settings)) as (pipeline, _):
        return pipeline.run()


@contextmanager
def open_pipeline(
    data: Data | str | Path, orders: Orders
) -> Iterator[tuple[Pipeline | StreamPipeline, tuple[str, ...]]]:
    """The stages before the first one runs: what they will do can be shown before they do it. With notes on what was
    chosen for the caller, or is done otherwise than asked."""
    settings, cells, stream = orders.settings, orders.cells, orders.stream
    with open_work(settings) as work:
        images, notes, out = as_data(data), tuple[str, ...](), Path(settings.out)
        if cells is not None and stream is not None:
            family, why = better_family(orders.budget, images)
            notes, cells = (why,), cells if family == "cells" else None
        if cells is not None:
            request = cells.request(images)
            yield Pipeline(request, images, out, work), (*notes, *cells.notes)
        elif stream is not None:
            yield StreamPipeline(stream.request(images), images, out, work), notes
