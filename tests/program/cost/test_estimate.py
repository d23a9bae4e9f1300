"""Estimates against counting by hand, and what they must do when the link, the machine or the program changes."""

import json
import math
from dataclasses import replace

import pytest

from sphynx.compiler.latency import BUDGETS, design_estimate, largest_within
from sphynx.errors import InputError
from sphynx.program.backends import BACKENDS, Backend
from sphynx.program.cost.cost import square_cost, total_cost
from sphynx.program.cost.estimate import estimate, faster_backend
from sphynx.program.cost.link import LINKS, Link, parse_link, parse_links, parse_seconds
from sphynx.program.cost.rates import PARTS, REFERENCE, Rates
from sphynx.space.cell import cell
from sphynx.space.design import Design, default_reduce_positions
from sphynx.space.genotype import Genotype
from sphynx.space.planner import plan
from sphynx.space.tally import Shape
from tests.program.programs import small_program
from tests.protocol.random_programs import random_public_case

# What is planned does not depend on what cells compute: these are quick to cost.
CELLS = Genotype(cell("conv3 0, skip 1"), cell("skip 0, conv3 1"))
FREE = Link(0.0, float("inf"), "free")


@pytest.mark.parametrize(("backend", "relu_messages"), [("gc", 2), ("gmw", 4)])
def test_messages_cost_half_round_trips_and_their_host(backend: Backend, relu_messages: int) -> None:
    program = small_program()
    square = square_cost(12, 20, 36, 9, 4)
    messages = 2 + relu_messages + square.square_messages + square.truncation_messages  # 2: the image and the logits
    here = estimate(program, REFERENCE, FREE, backend).total
    far = estimate(program, REFERENCE, Link(1.0, math.inf, "far"), backend).total
    assert far.online_seconds - here.online_seconds == pytest.approx(messages / 2)
    hops = 1  # `link` feeds a linear map
    assert far.offline_seconds - here.offline_seconds == pytest.approx(3 + hops)
    waking = replace(REFERENCE, link_message_s=1.0)
    assert estimate(program, waking, FREE, backend).total == here
    assert estimate(program, waking, Link(1.0, math.inf, "far"), backend).total.online_seconds == pytest.approx(
        far.online_seconds + messages
    )
    slow_host = replace(REFERENCE, message_s=REFERENCE.message_s + 1.0)
    assert estimate(program, slow_host, FREE, backend).total.online_seconds - here.online_seconds == pytest.approx(
        messages
    )


@pytest.mark.parametrize("backend", BACKENDS)
def test_bytes_cost_their_transfer_and_their_encryption(backend: Backend) -> None:
    program, narrow = small_program(), Link(0.0, 1e3, "narrow")
    found, idle = estimate(program, REFERENCE, narrow, backend).total, replace(REFERENCE, cores=10**9)
    assert found.online_seconds == pytest.approx(8 * found.online_bytes / 1e3, rel=0.01)
    layers = estimate(program, idle, narrow, backend).layers
    assert layers[0].offline_seconds == pytest.approx(8 * layers[0].offline_bytes / 1e3)  # nothing before it
    for layer in layers[1:]:  # sending up and down go on at the same time
        assert layer.offline_seconds <= 8 * layer.offline_bytes / 1e3
    slow = replace(REFERENCE, byte_s=1.0)
    assert estimate(program, slow, FREE, backend).total.online_seconds == pytest.approx(found.online_bytes, rel=0.01)
    assert estimate(program, slow, FREE, backend).total.offline_seconds == pytest.approx(found.offline_bytes, rel=0.01)


def test_offline_bytes_are_the_costs() -> None:
    program, cost = small_program(), total_cost(small_program())
    found = estimate(program, REFERENCE, FREE, "gc").total
    ot_bytes = REFERENCE.ot_bytes * cost.gc_ots
    squares = REFERENCE.ot_bytes * (cost.square_ots + cost.truncation_ots) + cost.square_correction_bytes
    squares += cost.truncation_correction_bytes
    he_bytes = cost.he_upload_bytes + cost.he_reply_bytes
    assert found.offline_bytes == he_bytes + cost.gc_table_bytes + ot_bytes + squares
    assert cost.squares == 12 and found.online_bytes > cost.gc_online_bytes + cost.square_online_bytes


def test_twice_the_cores_halve_the_offline_work() -> None:
    one, two = (estimate(small_program(), replace(REFERENCE, cores=cores), FREE, "gc").total for cores in (1, 2))
    assert one.offline_seconds == pytest.approx(2 * two.offline_seconds)


def test_cores_that_wait_do_no_work_offline() -> None:
    program, two = small_program(), replace(REFERENCE, cores=2)

    def offline_s(busy: float) -> float:
        return estimate(program, replace(two, busy_cores=busy), FREE, "gmw").total.offline_seconds

    assert offline_s(0.0) == offline_s(2.0) == offline_s(3.0)  # not measured; more than there are
    assert offline_s(1.6) == pytest.approx(1.25 * offline_s(2.0))
    assert offline_s(0.5) == offline_s(1.0)  # other work had the rest


def test_weights_from_memory_and_used_coefficients_are_paid_for() -> None:
    program, cost = small_program(), total_cost(small_program())
    he = replace(REFERENCE.he_small, weight=1.0, used=0.5)
    found = estimate(program, replace(REFERENCE, he_small=he), FREE, "gmw").total.offline_seconds
    before = estimate(program, REFERENCE, FREE, "gmw").total.offline_seconds
    assert found - before == pytest.approx(cost.he_weights + cost.he_used / 2)
    layers = replace(REFERENCE, gmw=replace(REFERENCE.gmw, offline_layer=1.0))
    assert estimate(program, layers, FREE, "gmw").total.offline_seconds - before == pytest.approx(cost.relu_layers)


@pytest.mark.parametrize("part", PARTS)
def test_each_kind_of_layer_has_its_own_work_for_each_ot_and_layer(part: str) -> None:
    program = random_public_case(0).program if part == "gate" else small_program()
    cost = total_cost(program)
    ots, layers = getattr(cost, f"{part}_ots"), getattr(cost, f"{part}_layers")
    before = estimate(program, REFERENCE, FREE, "gmw").total.offline_seconds
    slow = Rates.from_json({**REFERENCE.to_json(), part: {"each": getattr(REFERENCE, part).each + 1.0, "layer": 0.5}})
    found = estimate(program, slow, FREE, "gmw").total.offline_seconds
    assert layers and found - before == pytest.approx(ots + layers / 2)


def test_offline_layers_are_worked_on_while_others_are_on_their_way() -> None:
    program, narrow = random_public_case(0).program, Link(0.0, 1e6, "narrow")
    idle = replace(REFERENCE, cores=10**9)
    work_s = estimate(program, REFERENCE, FREE, "gmw").total.offline_seconds
    sent_s = estimate(program, replace(idle, busy_cores=1e9), narrow, "gmw").total.offline_seconds
    found = estimate(program, REFERENCE, narrow, "gmw").total
    assert sent_s < narrow.transfer_s(found.offline_bytes)
    assert max(work_s, sent_s) < found.offline_seconds < work_s + sent_s


def test_long_messages_of_gates_are_work_of_both_parties() -> None:
    program = random_public_case(0).program
    bytes_each = total_cost(program).gate_correction_bytes
    slow = replace(REFERENCE, gate_byte_s=1.0)
    found, before = (estimate(program, rates, FREE, "gmw").total.offline_seconds for rates in (slow, REFERENCE))
    assert bytes_each > 0
    assert found - before == pytest.approx(2 * bytes_each)


@pytest.mark.parametrize("link", [*LINKS.values(), FREE, Link(0.0, 1e5, "narrow")], ids=lambda link: link.name)
def test_the_faster_backend_is_that_of_the_whole_estimate(link: Link) -> None:
    both = {backend: estimate(small_program(), REFERENCE, link, backend).total.online_seconds for backend in BACKENDS}
    assert both[faster_backend(small_program(), REFERENCE, link)] == min(both.values())


def test_of_many_images_bytes_and_work_outweigh_messages() -> None:
    link = Link(0.01, 1e9, "")
    assert [faster_backend(small_program(), REFERENCE, link, batch) for batch in (1, 1000)] == ["gc", "gmw"]


def test_few_messages_win_on_long_links_few_bytes_on_narrow_ones() -> None:
    assert estimate(small_program(), REFERENCE, LINKS["wan"]).backend == "gc"
    assert estimate(small_program(), REFERENCE, Link(0.0, 1e5, "narrow")).backend == "gmw"


def test_rates_survive_their_file() -> None:
    assert Rates.from_json(REFERENCE.to_json()) == REFERENCE


def test_what_is_not_limited_is_null_in_json() -> None:
    found = estimate(small_program(), REFERENCE, LINKS["loopback"], "gc").to_json()
    assert json.loads(json.dumps(found, allow_nan=False))["link"]["bits_per_s"] is None


def test_links_and_times_are_read() -> None:
    assert parse_link("20ms,300Mbit") == Link(0.02, 3e8, "20ms,300Mbit")
    assert parse_link("wan").round_trip_s == 0.04
    assert parse_seconds("1.5s") == 1.5 and parse_seconds("100ms") == pytest.approx(0.1)
    for text in ("", "20ms", "ms,1Gbit", "1ms,0Gbit", "1..2ms,1Gbit"):
        with pytest.raises(InputError):
            parse_link(text)
    for text in ("0ms", "fast", "3"):
        with pytest.raises(InputError):
            parse_seconds(text)


def test_more_time_allows_more_relus() -> None:
    template = Design(CELLS, 2, 3, (1, 2), Shape(1, 8, 8), 10, conv_stack="single")
    budgets = []
    for seconds in (0.012, 0.02):
        budget, _, found = largest_within(template, seconds, 0.05, REFERENCE, LINKS["lan"], "gc")
        assert found.total.online_seconds <= seconds
        budgets.append(budget)
    assert budgets[0] < budgets[1]
    with pytest.raises(InputError, match="no network fits"):
        largest_within(template, 1e-6, 0.05, REFERENCE, LINKS["lan"], "gc")


def test_a_latency_budget_between_the_networks_of_a_large_image() -> None:
    """At 96x96 there is one of 9,216 ReLUs for each C * D; between the first few no budget has a network."""
    template = Design(CELLS, 2, 3, (1, 2), Shape(3, 96, 96), 10, conv_stack="single")

    def online(channels: int, depth: int) -> float:
        places = default_reduce_positions(depth)
        design = replace(template, channels=channels, depth=depth, reduce_positions=places)
        return design_estimate(design, REFERENCE, LINKS["lan"], "gmw").total.online_seconds

    def largest(seconds: float, tolerance: float = 0.05) -> tuple[int, int]:
        chosen = largest_within(template, seconds, tolerance, REFERENCE, LINKS["lan"], "gmw")[1].chosen.design
        return chosen.channels, chosen.depth

    assert largest(online(1, 3)) == (1, 3)
    assert largest(online(1, 4)) == (1, 4)
    assert online(2, 3) < online(1, 5) and largest(online(2, 3)) == (2, 3)  # more ReLUs than the deeper one, and faster
    with pytest.raises(InputError, match=r"0\.0 % is too small"):
        largest(online(1, 3), tolerance=0.0)


@pytest.mark.slow
def test_a_slow_deep_network_does_not_end_the_search_for_wider_ones() -> None:
    """Small budgets of 33x33 leave only C = 1 and many cells, which wait for more messages than larger networks do."""
    template, link = Design(CELLS, 2, 3, (1, 2), Shape(3, 33, 33), 10, conv_stack="single"), LINKS["lan"]
    found = largest_within(template, 0.05, 0.05, REFERENCE, link, "gmw")[1].chosen
    for budget in (budget for budget in BUDGETS if found.relus < budget <= 2 * found.relus):
        try:
            larger = plan(template, budget, 0.05).chosen
        except InputError:
            continue
        if larger.relus > found.relus:
            assert design_estimate(larger.design, REFERENCE, link, "gmw").total.online_seconds > 0.05


def test_links_are_written_with_commas() -> None:
    links = parse_links("loopback,20ms,200mbit,wan")
    assert [link.name for link in links] == ["loopback", "20ms,200mbit", "wan"]
    assert (links[1].round_trip_s, links[1].bits_per_s) == (0.02, 2e8)
    for text in ("moon", "20ms", "lan,20ms", "20,200mbit", "20ms,fast", "-1ms,1gbit", "1ms,0gbit"):
        with pytest.raises(InputError, match="not a valid link"):
            parse_links(text)
