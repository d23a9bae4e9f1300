"""Sphynx: design networks that are cheap to run privately, and run them that way.

    import sphynx

    design = sphynx.plan("25.6k", image=(3, 32, 32), classes=100).design
    print(design.relus, design.parameters)

    with sphynx.Client("inference.example:7443", keys="keys/alice") as client:
        print(client.infer("cat.jpg").label)

docs/python.md goes through all of it. A name is looked up when it is first used, so that importing the package takes
no torch and no numpy, and a client never needs torch.
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

from sphynx.errors import (
    INSTALL_DESIGN,
    ConnectionLostError,
    HandshakeError,
    InputError,
    InterruptedWorkError,
    MissingPartError,
    PeerGaveUpError,
    SphynxError,
)
from sphynx.version import __version__

# Before torch is loaded: its threads then sleep while they wait instead of spinning, which on a machine that does other
# work too makes a CPU training step up to ten times shorter.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

if TYPE_CHECKING:
    from sphynx.api import aio
    from sphynx.api.asking import Client
    from sphynx.api.compiled import Compiled
    from sphynx.api.compiling import compile_network
    from sphynx.api.data import open_data
    from sphynx.api.designing import design_network
    from sphynx.api.exporting import export_network
    from sphynx.api.inspecting import inspect_network
    from sphynx.api.models import list_models, load_card, load_design
    from sphynx.api.networks import evaluate_network, load_network
    from sphynx.api.planning import LatencyPlan, plan
    from sphynx.api.reducing import reduce_network
    from sphynx.api.searching import allocate_relus, place_reduce_cells, search_cells
    from sphynx.api.serving import Server
    from sphynx.api.training import train_network
    from sphynx.compiler.check import Check
    from sphynx.compiler.inspection import Inspection
    from sphynx.compiler.precision import Precision
    from sphynx.compiler.settings import CompileSettings
    from sphynx.data.images import Data
    from sphynx.design.results import DesignResult
    from sphynx.design.stream_results import StreamDesignResult
    from sphynx.network.build import build_network
    from sphynx.network.trained import TrainedNetwork
    from sphynx.program.cost.deployment import Deployment
    from sphynx.program.cost.estimate import Estimate
    from sphynx.program.inputs import Input
    from sphynx.program.ir import Program
    from sphynx.program.judgement import Judgement
    from sphynx.program.outputs import Output
    from sphynx.reduce.results import ReduceResult
    from sphynx.reduce.settings import ReduceSettings
    from sphynx.run.update import Update
    from sphynx.search.allocation.allocate import AllocationResult
    from sphynx.search.placement.place import PlacementResult
    from sphynx.search.seeds import SearchSummary
    from sphynx.service import keys
    from sphynx.service.prediction import Prediction
    from sphynx.service.settings import ClientSettings, Limits, ServerSettings
    from sphynx.space.design import Design
    from sphynx.space.genotype import Genotype
    from sphynx.space.planner import PlanList
    from sphynx.space.published_cells import find_cells
    from sphynx.space.reduced import ReducedDesign
    from sphynx.space.stream import StreamDesign
    from sphynx.space.tally import Shape
    from sphynx.train.recipe import Recipe
    from sphynx.train.results import TrainSummary

__all__ = [
    "AllocationResult",
    "Check",
    "Client",
    "ClientSettings",
    "CompileSettings",
    "Compiled",
    "ConnectionLostError",
    "Data",
    "Deployment",
    "Design",
    "DesignResult",
    "Estimate",
    "Genotype",
    "HandshakeError",
    "Input",
    "InputError",
    "Inspection",
    "InterruptedWorkError",
    "Judgement",
    "LatencyPlan",
    "Limits",
    "MissingPartError",
    "Output",
    "PeerGaveUpError",
    "PlacementResult",
    "PlanList",
    "Precision",
    "Prediction",
    "Program",
    "Recipe",
    "ReduceResult",
    "ReduceSettings",
    "ReducedDesign",
    "SearchSummary",
    "Server",
    "ServerSettings",
    "Shape",
    "SphynxError",
    "StreamDesign",
    "StreamDesignResult",
    "TrainSummary",
    "TrainedNetwork",
    "Update",
    "__version__",
    "aio",
    "allocate_relus",
    "build_network",
    "compile_network",
    "design_network",
    "evaluate_network",
    "export_network",
    "find_cells",
    "inspect_network",
    "keys",
    "list_models",
    "load_card",
    "load_design",
    "load_network",
    "open_data",
    "place_reduce_cells",
    "plan",
    "reduce_network",
    "search_cells",
    "train_network",
]

# Where each name is defined. A test holds this equal to the imports above, which type checkers and editors read.
_DEFINED_IN = {
    "AllocationResult": "sphynx.search.allocation.allocate",
    "Check": "sphynx.compiler.check",
    "Client": "sphynx.api.asking",
    "ClientSettings": "sphynx.service.settings",
    "CompileSettings": "sphynx.compiler.settings",
    "Compiled": "sphynx.api.compiled",
    "Data": "sphynx.data.images",
    "Deployment": "sphynx.program.cost.deployment",
    "Design": "sphynx.space.design",
    "DesignResult": "sphynx.design.results",
    "StreamDesignResult": "sphynx.design.stream_results",
    "Estimate": "sphynx.program.cost.estimate",
    "Genotype": "sphynx.space.genotype",
    "Inspection": "sphynx.compiler.inspection",
    "Judgement": "sphynx.program.judgement",
    "LatencyPlan": "sphynx.api.planning",
    "Limits": "sphynx.service.settings",
    "PlacementResult": "sphynx.search.placement.place",
    "PlanList": "sphynx.space.planner",
    "Precision": "sphynx.compiler.precision",
    "Prediction": "sphynx.service.prediction",
    "Program": "sphynx.program.ir",
    "Input": "sphynx.program.inputs",
    "Output": "sphynx.program.outputs",
    "Recipe": "sphynx.train.recipe",
    "ReduceResult": "sphynx.reduce.results",
    "ReduceSettings": "sphynx.reduce.settings",
    "ReducedDesign": "sphynx.space.reduced",
    "SearchSummary": "sphynx.search.seeds",
    "Server": "sphynx.api.serving",
    "ServerSettings": "sphynx.service.settings",
    "Shape": "sphynx.space.tally",
    "StreamDesign": "sphynx.space.stream",
    "TrainSummary": "sphynx.train.results",
    "TrainedNetwork": "sphynx.network.trained",
    "Update": "sphynx.run.update",
    "aio": "sphynx.api",  # a module
    "allocate_relus": "sphynx.api.searching",
    "build_network": "sphynx.network.build",
    "compile_network": "sphynx.api.compiling",
    "design_network": "sphynx.api.designing",
    "evaluate_network": "sphynx.api.networks",
    "export_network": "sphynx.api.exporting",
    "find_cells": "sphynx.space.published_cells",
    "inspect_network": "sphynx.api.inspecting",
    "keys": "sphynx.service",  # a module
    "list_models": "sphynx.api.models",
    "load_card": "sphynx.api.models",
    "load_design": "sphynx.api.models",
    "load_network": "sphynx.api.networks",
    "open_data": "sphynx.api.data",
    "place_reduce_cells": "sphynx.api.searching",
    "plan": "sphynx.api.planning",
    "reduce_network": "sphynx.api.reducing",
    "search_cells": "sphynx.api.searching",
    "train_network": "sphynx.api.training",
}


def __getattr__(name: str) -> Any:
    if name not in _DEFINED_IN:
        raise AttributeError(f"module 'sphynx' has no attribute {name!r}")
    try:
        module = import_module(_DEFINED_IN[name])
        found = getattr(module, name) if hasattr(module, name) else import_module(f".{name}", _DEFINED_IN[name])
    except ModuleNotFoundError as error:
        package = (error.name or "").split(".")[0]
        if package in ("", "sphynx"):
            raise
        raise MissingPartError(f"sphynx.{name} needs the package {package}", remedy=INSTALL_DESIGN) from error
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
