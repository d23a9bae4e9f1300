"""Plans of the check meet their bounds: strict enough, and rarely a refusal by chance, for as many images as are
refused together. Those of all shipped networks are the table of docs/security/malicious-client.md."""

import re
from dataclasses import replace
from math import log2
from pathlib import Path

import numpy as np
import pytest
from tests.protocol.random_programs import random_case

from sphynx.compiler.derive import derive_weights
from sphynx.errors import SphynxError
from sphynx.program.folder import load_program
from sphynx.protocol.runnable import MAX_LOG2_OFF_BY_ONE, log2_off_by_one
from sphynx.protocol.verify.plan import BUNDLE_IMAGES, SECURITY_BITS, plan_check, product_bytes
from sphynx.service.settings import Limits
from sphynx.zoo.shipped import folder_of, model_names

PAGE = Path(__file__).parents[3] / "docs" / "security" / "malicious-client.md"
QUICK = "stream-cifar100-12k"  # the others take a minute


def told(name: str) -> tuple[str, ...]:
    """The cells of a network's row."""
    row = re.search(rf"^\| {name} \|(.*)\|$", PAGE.read_text(), re.M)
    assert row is not None
    return tuple(cell.strip() for cell in row[1].split("|"))


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name == QUICK else pytest.mark.slow) for name in model_names()]
)
def test_plans_of_shipped_networks_are_those_of_the_page(name: str) -> None:
    folder = folder_of(name)
    program = load_program(folder / "program")
    weights = derive_weights(folder, folder / "program", program)
    plan = plan_check(program, weights)
    refused = log2_off_by_one(plan.wide(program), weights)  # the larger of an image alone and one of a group
    assert plan.ring_bits in range(40, 49) and plan.security_bits(program) >= SECURITY_BITS
    assert refused + log2(BUNDLE_IMAGES) <= MAX_LOG2_OFF_BY_ONE
    found = (
        str(program.ring_bits),
        str(plan.ring_bits),
        str(plan.functionals),
        str(plan.security_bits(program)),
        f"2^{refused:.1f}",
        f"2^{refused + log2(BUNDLE_IMAGES):.1f}",
        f"{product_bytes(program, plan) / 1e6:.1f}",
    )
    assert found == told(name)


def test_a_server_takes_no_larger_bundles_than_are_planned_for() -> None:
    assert Limits().batch == BUNDLE_IMAGES


def test_the_widest_ring_is_that_of_the_pages() -> None:
    """Weights of zeros are never off by one: nothing but the strictness limits their ring."""
    case = random_case(1)
    weights = {name: np.zeros_like(values) for name, values in case.weights.items()}

    def is_planned(ring_bits: int) -> bool:
        try:
            plan_check(replace(case.program, ring_bits=ring_bits), weights)
        except SphynxError:
            return False
        return True

    widest = max(filter(is_planned, range(case.program.ring_bits, 64)))
    for page in (PAGE, PAGE.parents[2] / "SECURITY.md"):
        assert re.findall(r"rings? of more than (\d+) bits", page.read_text()) == [str(widest)]


def test_more_images_need_a_narrower_ring() -> None:
    """Each plan refuses all of its images together as rarely as one image may be refused, until there is none."""
    case, rings = random_case(1), []
    for doublings in (0, 17, 23):
        plan = plan_check(case.program, case.weights, images=2**doublings)
        assert log2_off_by_one(plan.wide(case.program), case.weights) + doublings <= MAX_LOG2_OFF_BY_ONE
        rings.append(plan.ring_bits)
    assert rings == sorted(set(rings), reverse=True)
    with pytest.raises(SphynxError, match="no ring is wide enough"):
        plan_check(case.program, case.weights, images=2**30)
