"""A trained network becomes one with fewer ReLUs, within a budget."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sphynx.api.data import as_data
from sphynx.api.given_networks import Normalisation, open_given
from sphynx.api.networks import known_data, load_network
from sphynx.config import Keywords, read_settings
from sphynx.data.images import Data
from sphynx.design.request import long_enough, recipe_for
from sphynx.errors import InputError
from sphynx.network.build import is_network
from sphynx.network.trained import TrainedNetwork
from sphynx.reduce.reduction import AUTO as AUTO_METHODS
from sphynx.reduce.reduction import reduce_trained
from sphynx.reduce.results import ReduceResult
from sphynx.reduce.settings import Method, ReduceSettings, ReductionSettings
from sphynx.run.progress import Voice
from sphynx.run.settings import AUTO
from sphynx.run.work import open_work
from sphynx.space.artifact import is_foreign
from sphynx.space.planner import parse_relu_budget
from sphynx.train.recipe import Recipe, load_recipe
from sphynx.units import seconds_text

if TYPE_CHECKING:
    from torch import nn

TRAINING = "training."


@Keywords(ReductionSettings).function
def reduce_network(
    network: TrainedNetwork | nn.Module | str | Path, data: Data | str | Path | None, settings: ReductionSettings
) -> ReduceResult:
    """Take a trained network down to a budget of ReLUs, by distillation from itself; the labels of `data` are not used.
    A `latency_budget`, seconds or "200ms", takes as many ReLUs as are estimated to fit that time online.
    The network is a run folder, a name, what `load_network` gave, a torch module, or an ONNX or .pt2 file, whose
    images were normalised by `mean` and `std`. Of a file, `data` may be a folder of pictures without labels.
    `load_network(out)` is the result.

    `method` "auto" tries "stream" and "channels" and keeps the better; docs/reduce.md describes all. `settings` are
    values of the reduction (`ReduceSettings`), and, as in {"training.epochs": 20}, of the training that follows, whose
    `recipe` must distil; "auto" suits it to the data.

        >>> result = sphynx.reduce_network("runs/digits", "digits", relu_budget=300, out="runs/fewer")  # doctest: +SKIP
        >>> result.best.method, result.best.accuracy  # doctest: +SKIP
    """
    given, recipe = settings.settings, settings.recipe
    if (settings.relu_budget is None) == (settings.latency_budget is None):
        raise InputError(
            "a reduction needs one budget, in ReLUs or in seconds",
            where="`relu_budget`, `latency_budget`",
            remedy="Give `relu_budget` or `latency_budget`.",
        )
    budget = None if settings.relu_budget is None else parse_relu_budget(settings.relu_budget)
    own = {name: value for name, value in given.items() if not name.startswith(TRAINING)}
    values = {name.removeprefix(TRAINING): value for name, value in given.items() if name.startswith(TRAINING)}
    chosen = read_settings(ReduceSettings, {"method": settings.method}, given=own, where="reduction")
    if isinstance(recipe, str) and recipe != AUTO:
        load_recipe(recipe, values)  # its faults are told before the data are read, which can take long
    with open_work(settings) as work:
        trained, images = _open_inputs(network, data, Normalisation(settings.mean, settings.std))
        name, training = ("", recipe) if isinstance(recipe, Recipe) else _recipe(recipe, values, images)
        work.voice.say(f"recipe {name}, epochs: {training.epochs}", stage="reduce")
        return reduce_trained(
            trained,
            images,
            _budgets(trained, settings, chosen, work.voice) if budget is None else budget,
            chosen,
            training,
            Path(settings.out),
            seed=work.seed,
            device=work.device,
            resume=work.resume,
            voice=work.voice,
            views=None if settings.views is None else Path(settings.views),
        )


def _open_inputs(
    network: TrainedNetwork | nn.Module | str | Path, data: Data | str | Path | None, normalisation: Normalisation
) -> tuple[TrainedNetwork, Data]:
    if isinstance(network, str | Path):
        if is_foreign(network):
            return open_given(Path(network), _named(data, str(network)), normalisation)
        network = load_network(network)
    if isinstance(network, TrainedNetwork):
        images = known_data(network, data)
        if not isinstance(images, Data):
            raise InputError(
                "the data are streamed, but a reduction needs its images in memory",
                where=images.name,
                remedy="Give `data` that are not streamed.",
            )
        return network, images
    data = _named(data, type(network).__name__)
    if not is_network(network):
        return open_given(network, data, normalisation)
    images = as_data(data)
    return TrainedNetwork(network.design.name, network.eval(), images.mean, images.std), images


def _budgets(
    trained: TrainedNetwork, settings: ReductionSettings, chosen: ReduceSettings, voice: Voice
) -> dict[Method, int]:
    """The ReLUs that each method to try may leave for the latency."""
    from sphynx.api.rates import machine_rates
    from sphynx.api.reduction_budgets import relus_within
    from sphynx.program.cost.link import parse_link, parse_seconds

    if chosen.method == "cryptonas":
        raise InputError(
            "its networks are drawn at random for a number of ReLUs",
            where="`latency_budget`",
            remedy="Give `relu_budget`, or another `method`.",
        )
    seconds, link = parse_seconds(settings.latency_budget or 0.0), parse_link(settings.link)
    found: dict[Method, int] = {}
    for method in AUTO_METHODS if chosen.method == "auto" else (chosen.method,):
        found[method] = relus_within(trained, method, seconds, link, chosen.backend, machine_rates())
        voice.say(f"{method}: {found[method]:,} ReLUs for {seconds_text(seconds)} over {link.name}", stage="reduce")
    return found


def _named(data: Data | str | Path | None, where: str) -> Data | str | Path:
    if data is None:
        raise InputError("it does not name its training data", where=where, remedy="Give `data`.")
    return data


def _recipe(name: str, values: Mapping[str, Any], data: Data) -> tuple[str, Recipe]:
    """The recipe and its name. `auto` is the one that distils and suits the data."""
    if name != AUTO:
        return name, load_recipe(name, values)
    name = "distil-small" if recipe_for(data) == "small" else "distil"
    usual = load_recipe(name, values)
    return name, usual if "epochs" in values else long_enough(usual, len(data.train))
