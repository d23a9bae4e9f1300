"""The smallest request that a design pipeline is tested with."""

import dataclasses
from pathlib import Path
from typing import Any

import torch

from sphynx.design.pipeline import Pipeline
from sphynx.design.request import Request
from sphynx.run.progress import QUIET
from sphynx.run.work import Work
from sphynx.search.placement.recipe import load_placement_recipe
from sphynx.search.recipe import load_recipe as load_search_recipe
from sphynx.train.recipe import load_recipe
from tests.train.small import data

CPU = torch.device("cpu")
TRAINING = load_recipe("smoke", {"epochs": 1, "batch_size": 16, "crop": False, "auxiliary_weight": 0.0})


def request(**changes: Any) -> Request:
    """48 ReLUs: C = 1, D = 3 on images of 4x4."""
    asked = Request(
        relu_budget=48,
        search=load_search_recipe("smoke", {"epochs": 1, "nodes": 4, "batch_size": 12}),
        placing=load_placement_recipe("smoke", {"epochs": 1, "batch_size": 12}),
        training=TRAINING,
        comparison=TRAINING,
        strategy="gdas",
    )
    return dataclasses.replace(asked, **changes)


def pipeline(out: Path, *, resume: bool = False, **changes: Any) -> Pipeline:
    return Pipeline(request(**changes), data(), out, Work(device=CPU, resume=resume, voice=QUIET))
