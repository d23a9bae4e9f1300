"""A latency as the budget of a reduction: as many ReLUs as fit, more for more time, refused where nothing fits."""

import pytest

import sphynx
from sphynx.api.reduction_budgets import relus_within
from sphynx.compiler.latency import design_estimate
from sphynx.errors import InputError
from sphynx.network.build import build_network
from sphynx.network.trained import TrainedNetwork
from sphynx.program.cost.link import LINKS, parse_link
from sphynx.program.cost.rates import REFERENCE
from sphynx.reduce.methods.stream import nearest_stream
from sphynx.reduce.settings import Backend, Method
from sphynx.space.reference import ResNet18Design
from sphynx.space.tally import Shape

DESIGN = ResNet18Design(width=8, image=Shape(3, 32, 32), classes=10, stem="small")
SLOW = parse_link("0.1ms,10Mbit")  # bytes decide, not rounds


def original() -> TrainedNetwork:
    return TrainedNetwork("original", build_network(DESIGN), (0.5,) * 3, (0.25,) * 3)


@pytest.mark.parametrize(("method", "backend"), [("stream", "gmw"), ("channels", "gmw"), ("safenet", "gc")])
def test_more_time_allows_more_relus(method: Method, backend: Backend) -> None:
    whole = design_estimate(DESIGN, REFERENCE, SLOW, backend).total.online_seconds
    seconds = [share * whole for share in (0.75, 0.95)]
    less, more = (relus_within(original(), method, own, SLOW, backend, REFERENCE) for own in seconds)
    assert 0 < less < more < DESIGN.relus * (1 if method != "stream" else 100)
    if method == "stream":
        stream = nearest_stream(more, DESIGN.image, DESIGN.classes)
        assert design_estimate(stream, REFERENCE, SLOW, backend).total.online_seconds <= seconds[1]


def test_a_time_that_nothing_meets_is_refused() -> None:
    with pytest.raises(InputError, match="even with a few ReLUs"):
        relus_within(original(), "channels", 1e-4, LINKS["wan"], "gmw", REFERENCE)


def test_one_budget_is_needed() -> None:
    for budgets in ({}, {"relu_budget": 10, "latency_budget": "1s"}):
        with pytest.raises(InputError, match="one budget"):
            sphynx.reduce_network("runs/none", None, out="runs/nowhere", **budgets)  # type: ignore[arg-type]
