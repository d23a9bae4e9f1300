"""Deviations that may pass a check pass as often as predicted, and give the answers of an honest client only."""

from __future__ import annotations

from collections.abc import Callable
from math import comb, prod
from typing import Any

import numpy as np
import pytest
from tests.protocol.own_receiver import PARAMETER, OwnReceiver, Stake, Words
from tests.protocol.verify.attempts import Outcome, attempt, is_honest
from tests.protocol.verify.cheats import PROGRAM, WEIGHTS, Cheat, Random, commit

from sphynx.core import Prg, garbling, ot, rlwe
from sphynx.program.ir import INPUT
from sphynx.protocol import linear
from sphynx.protocol.channel import Channel
from sphynx.protocol.linear import MaskedTensors, ServerModel
from sphynx.protocol.linear_plan import Upload
from sphynx.protocol.verify import linear_check
from sphynx.protocol.verify.adjoint import Factors
from sphynx.protocol.verify.plan import CheckPlan, plan_check

K = PROGRAM.ring_bits
DELTA = 0x_A5_37
UNLIKELY = 1e-6
TIMES = 200


@pytest.fixture(scope="module")
def model() -> ServerModel:
    return ServerModel(PROGRAM, WEIGHTS, check=plan_check(PROGRAM, WEIGHTS))


def require_rate(passed: int, times: int, rate: float) -> None:
    """Neither as few nor as many are likely to pass by chance."""
    chances = [comb(times, n) * rate**n * (1 - rate) ** (times - n) for n in range(times + 1)]
    print(f"{passed} of {times} passed, {rate * times:.1f} expected")
    assert sum(chances[: passed + 1]) > UNLIKELY and sum(chances[passed:]) > UNLIKELY


# Few functionals: an error of 2^v passes if and only if the secret factor is a multiple of 2^(K - v).


def few_functionals(ring_bits: int) -> ServerModel:
    return ServerModel(PROGRAM, WEIGHTS, check=CheckPlan(ring_bits, 1))


def test_an_error_passes_if_its_secret_factor_is_divisible(monkeypatch: pytest.MonkeyPatch) -> None:
    model, place = few_functionals(K + 3), 1
    drawn: list[Factors] = []
    draw = linear_check.draw_factors

    def remembering(*arguments: Any) -> list[Factors]:
        made = draw(*arguments)
        drawn.extend(made)
        return made

    monkeypatch.setattr(linear_check, "draw_factors", remembering)
    for number in range(12):
        outcome = attempt(model, Cheat(changing(place, K + 1)), number)
        factor = int(drawn[-1].shares["last"].reshape(-1)[place])
        assert outcome.is_refused == (factor % 2**2 != 0)
        assert outcome.is_refused or is_honest(model, outcome)  # circuits do not see it


def changing(place: int, bit: int) -> Callable[[pytest.MonkeyPatch, Random], None]:
    class _There:
        def integers(self, *_: int) -> int:
            return place

    deceive = commit("last", 0, lambda _: 1 << bit)
    return lambda patch, _: deceive(patch, _There())  # type: ignore[arg-type] # all that `commit` draws is a place


@pytest.mark.slow
@pytest.mark.parametrize("bit", [K - 1, K, K + 1])
def test_few_functionals_pass_at_the_predicted_rate(bit: int) -> None:
    """With K = k + 3 and one functional the least harmful error, in the highest bit of the ring, passes with 2^-4."""
    model = few_functionals(K + 3)
    outcomes = [attempt(model, Cheat(changing(1, bit)), number) for number in range(TIMES)]
    require_rate(sum(not one.is_refused for one in outcomes), TIMES, 2.0 ** (bit - (K + 3)))


# The OTs: a guess of some bits of the offset passes if it is right.


def receiving(**told: Any) -> Callable[[pytest.MonkeyPatch, Random], None]:
    """Use a receiver of our own, the first that is made: the server's would come later."""

    def deceive(patch: pytest.MonkeyPatch, _: Random) -> None:
        stakes = told.get("stakes", [])

        def receiver(_: int, pairs: Words, *__: object, **___: object) -> OwnReceiver:
            own = OwnReceiver(pairs, told.get("corrupted_sum"))
            own.stakes = stakes
            return own

        patch.setattr(ot, "OtReceiver", receiver)

    return deceive


def stake(tree: int, guess: int) -> Cheat:
    return Cheat(receiving(stakes=[Stake(tree, guess, (5,))]))


def corrupted(bit: int) -> Cheat:
    """Spoil the sum that a server reads whose offset has a zero there."""
    return Cheat(receiving(corrupted_sum=2 * bit))


@pytest.fixture
def known_offset(monkeypatch: pytest.MonkeyPatch) -> None:
    offset = np.frombuffer(DELTA.to_bytes(16, "little"), np.uint64).reshape(1, 2)
    monkeypatch.setattr(garbling, "random_delta", lambda _: offset.copy())


@pytest.mark.usefixtures("known_offset")
def test_a_guess_of_the_offset_passes_if_it_is_right(model: ServerModel) -> None:
    assert is_honest(model, attempt(model, stake(1, 0x3), 0))
    assert attempt(model, stake(1, 0x5), 0).is_refused


@pytest.mark.usefixtures("known_offset")
def test_a_corrupted_sum_of_a_tree_passes_if_it_is_not_read(model: ServerModel) -> None:
    assert is_honest(model, attempt(model, corrupted(5), 0))
    assert attempt(model, corrupted(6), 0).is_refused


@pytest.mark.slow
def test_guesses_of_four_bits_pass_at_the_predicted_rate(model: ServerModel) -> None:
    outcomes = [attempt(model, stake(7, 0xA), number) for number in range(TIMES)]
    require_honest_rate(model, outcomes, 2.0**-PARAMETER)
    assert all(one.offset is not None and one.offset >> 7 * PARAMETER & 15 == 0xA for one in passing(outcomes))


@pytest.mark.slow
def test_corrupted_sums_pass_at_the_predicted_rate(model: ServerModel) -> None:
    outcomes = [attempt(model, corrupted(1 + number % 127), number) for number in range(TIMES)]
    require_honest_rate(model, outcomes, 0.5)


def passing(outcomes: list[Outcome]) -> list[Outcome]:
    return [one for one in outcomes if not one.is_refused]


def require_honest_rate(model: ServerModel, outcomes: list[Outcome], rate: float) -> None:
    require_rate(len(passing(outcomes)), len(outcomes), rate)
    assert all(is_honest(model, one) for one in passing(outcomes))


# Uploads of r + epsilon: the reply is W r, or one more with the probability of W epsilon.

FINE_BITS = 8
SMALL = (1, -2, 4, 8)  # the weights of the pixel that is changed


def fractional_upload(parts: int) -> tuple[Callable[[pytest.MonkeyPatch, Random], None], Prg]:
    """Upload the first pixel's mask and `parts` / 256: as the same secret key encrypts in a wider ring."""
    seed = np.random.default_rng().bytes(16)
    fine = rlwe.LinearClient(rlwe.Params.for_ring(40 + FINE_BITS), Prg.fixed_seed_for_tests(seed), 1)

    def deceive(patch: pytest.MonkeyPatch, _: Random) -> None:
        honest = linear._send_upload

        def send(channel: Channel, client: rlwe.LinearClient, tensors: MaskedTensors, upload: Upload) -> None:
            if upload.tensor != INPUT:
                return honest(channel, client, tensors, upload)
            words = tensors.shifted(upload) << np.uint64(FINE_BITS)
            words.reshape(-1)[0] += np.uint64(parts)
            with channel.section("offline", linear.upload_section(upload)):
                return channel.send(fine.encrypt(upload.layout, words))

        patch.setattr(linear, "_send_upload", send)

    return deceive, Prg.fixed_seed_for_tests(seed)


@pytest.fixture(scope="module")
def small_weights() -> ServerModel:
    first = WEIGHTS["first/0"].copy()
    first[:, 0, 0, 0] = SMALL
    return ServerModel(PROGRAM, WEIGHTS | {"first/0": first}, check=CheckPlan(40, 4))


def try_fractions(model: ServerModel, parts: int, times: int) -> list[Outcome]:
    outcomes = []
    for number in range(times):
        deceive, prg = fractional_upload(parts)
        outcomes.append(attempt(model, Cheat(deceive), number, prg))
    return outcomes


def test_a_fraction_of_nothing_passes_and_a_whole_does_not(small_weights: ServerModel) -> None:
    require_honest_rate(small_weights, try_fractions(small_weights, 0, 2), 1.0)
    assert not passing(try_fractions(small_weights, 2**FINE_BITS, 2))


@pytest.mark.slow
@pytest.mark.parametrize("parts", [4, 16])
def test_fractional_uploads_pass_at_the_predicted_rate(parts: int, small_weights: ServerModel) -> None:
    rate = prod(1 - abs(weight) * parts / 2**FINE_BITS for weight in SMALL)
    require_honest_rate(small_weights, try_fractions(small_weights, parts, TIMES), rate)
