"""One step of each strategy, against the formula of its paper."""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import pytest
import torch
from torch.func import functional_call
from torch.nn import functional

from sphynx.errors import InputError
from sphynx.search.objective import Batch, CostTerm, Objective
from sphynx.search.recipe import SearchRecipe, load_recipe
from sphynx.search.strategies import STRATEGIES, channel_divisor, name_of
from sphynx.search.strategies.darts import Darts
from sphynx.search.strategies.enas import Enas
from sphynx.search.strategies.gaea import Gaea
from sphynx.search.strategies.gdas import Gdas
from sphynx.search.strategies.pc_darts import PcDarts, softmax_per_node
from sphynx.search.supernet.cellspace import KINDS, count_operation
from sphynx.search.supernet.mixture import Mixture
from sphynx.search.supernet.weights import SharedWeights
from tests.search.planted import OBJECTIVE, LinearCells, Planted, plant_vectors


def problem(**values: Any) -> Planted:
    return plant_vectors(0, SearchRecipe(**{"learning_rate": 0.05, "weight_decay": 0.0, **values}))


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def test_second_order_darts_is_the_gradient_through_one_step_of_training() -> None:
    """Against differentiating w - xi grad_w L_train(w, alpha) outright."""
    planted = problem()
    darts = Darts(planted.shared, generator(), order="second")
    train, held_out = planted.batch(), planted.batch()
    network = planted.shared.network
    assert isinstance(network, LinearCells)
    named = dict(network.named_parameters())

    def loss(weights: Mapping[str, torch.Tensor], batch: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        out = functional_call(network, dict(weights), (batch[0], darts.mixtures()))
        return functional.mse_loss(out, batch[1])

    steps = torch.autograd.grad(loss(named, train), list(named.values()), create_graph=True)
    moved = {name: w - 0.05 * step for (name, w), step in zip(named.items(), steps, strict=True)}
    exact = torch.autograd.grad(loss(moved, held_out), darts.parameters())
    before = [w.detach().clone() for w in planted.shared.parameters]
    for gradient, expected in zip(darts._unrolled_gradients(train, held_out), exact, strict=True):
        assert gradient is not None
        assert torch.allclose(gradient, expected, rtol=2e-2, atol=1e-5)
    assert all(torch.equal(w, old) for w, old in zip(planted.shared.parameters, before, strict=True))
    first_order = torch.autograd.grad(loss(named, held_out), darts.parameters())
    assert not torch.allclose(first_order[0], exact[0], rtol=2e-2, atol=1e-5)


def test_the_released_codes_hessian_term_is_negligible() -> None:
    """It multiplies the difference by epsilon where equation 8 divides: a factor of epsilon squared."""
    planted = problem()
    train, held_out = planted.batch(), planted.batch()
    exact = Darts(planted.shared, generator(), order="second")
    unrolled = Darts(planted.shared, generator(), order="unrolled")
    before = [w.detach().clone() for w in planted.shared.parameters]
    full = exact._unrolled_gradients(train, held_out)
    at_next = unrolled._unrolled_gradients(train, held_out)
    assert all(torch.equal(w, old) for w, old in zip(planted.shared.parameters, before, strict=True))
    exact._move(planted.shared.parameters, exact._training_direction(train), -0.05)
    vector = torch.autograd.grad(exact.held_out_loss(held_out), planted.shared.parameters)
    epsilon = 0.01 / float(torch.linalg.vector_norm(torch.cat([v.flatten() for v in vector])))
    for gradient, direct in zip(full, at_next, strict=True):
        assert gradient is not None and direct is not None
        hessian_term = float((gradient - direct).abs().max())
        assert hessian_term > 0.001 * float(direct.abs().max())  # as it should be, it counts
        assert hessian_term * epsilon**2 < 1e-5 * float(direct.abs().max())  # as released, it does not


def test_raw_alpha_and_its_softmax_rank_edges_differently() -> None:
    """A softmax counts what else an edge has: here alpha says one edge, its softmax another."""
    planted = problem()
    darts = Darts(planted.shared, generator())
    names = []
    for ranked_by in ("softmax", "alpha"):
        darts.shared.recipe = dataclasses.replace(darts.shared.recipe, ranked_by=ranked_by)
        with torch.no_grad():
            for alpha in darts.alpha.values():
                alpha.copy_(torch.linspace(-1, 1, alpha.numel()).reshape(alpha.shape))
                alpha[0] = torch.tensor([-3.0] * (alpha.shape[1] - 1) + [-9.0])
                alpha[0, 0] = 0.5
        names.append(darts.genotype())
    assert names[0] != names[1]


def test_second_order_darts_counts_momentum_and_decay() -> None:
    planted = problem(weight_decay=0.1)
    darts = Darts(planted.shared, generator(), order="second")
    train = planted.batch()
    planted.shared.update(train, darts.mixtures())
    w = planted.shared.parameters[0]
    direction = darts._training_direction(train)[0]
    gradient = torch.autograd.grad(planted.shared.loss(train, darts.mixtures()), w)[0]
    momentum = planted.shared.optimiser.state[w]["momentum_buffer"]
    assert torch.allclose(direction, gradient + 0.1 * w.detach() + 0.9 * momentum)


def test_pc_darts_waits_until_w_is_warm_and_weighs_edges() -> None:
    planted = problem(epochs=10, pc_warmup=0.3, architecture_learning_rate=0.1)
    search = PcDarts(planted.shared, generator())
    start = [p.detach().clone() for p in search.parameters()]
    search.start_epoch(2)
    search.step(planted.batch(), planted.batch())
    assert all(torch.equal(p, old) for p, old in zip(search.parameters(), start, strict=True))
    search.start_epoch(3)
    search.step(planted.batch(), planted.batch())
    assert not any(torch.equal(p, old) for p, old in zip(search.parameters(), start, strict=True))
    edges = softmax_per_node(planted.space, search.edge_logits["normal"])
    sums = [edges[list(planted.space.incoming(target))].sum() for target in planted.space.intermediates]
    assert torch.allclose(torch.stack(sums), torch.ones(len(sums)))
    strengths = search.strengths()["normal"]
    assert torch.allclose(strengths.sum(dim=-1), edges, atol=1e-6)


@pytest.mark.parametrize("ranked_by", ["softmax", "alpha"])
def test_pc_darts_keeps_the_edges_that_its_nodes_weigh_most(ranked_by: str) -> None:
    planted = problem(ranked_by=ranked_by)
    search, space = PcDarts(planted.shared, generator()), planted.space
    last = space.intermediates[-1]
    with torch.no_grad():
        for kind in KINDS:
            search.alpha[kind].zero_()
            search.edge_logits[kind].copy_(torch.arange(len(space.edges)))  # the later its source, the stronger
    for cell in (search.genotype().normal, search.genotype().reduce):
        assert [edge.source for edge in cell[-1]] == [last - 2, last - 1]


def test_gaea_takes_the_exponentiated_gradient_step() -> None:
    planted = problem(gaea_learning_rate=0.7, gaea_channel_divisor=2)
    gaea = Gaea(planted.shared, generator())
    held_out = planted.batch()
    theta = {kind: value.detach().clone() for kind, value in gaea.theta.items()}
    leaf = {kind: value.clone().requires_grad_() for kind, value in theta.items()}
    mixtures = {kind: Mixture(weights=leaf[kind], edges=gaea.edge_theta[kind].detach()) for kind in KINDS}
    gradients = torch.autograd.grad(planted.shared.loss(held_out, mixtures), list(leaf.values()))
    gaea.step(planted.batch(), held_out)
    for kind, gradient in zip(KINDS, gradients, strict=True):
        expected = theta[kind] * torch.exp(-0.7 * gradient)
        expected = expected / expected.sum(dim=-1, keepdim=True)
        assert torch.allclose(gaea.theta[kind], expected, atol=1e-6)


def test_gdas_evaluates_one_operation_per_edge_and_cools() -> None:
    planted = problem(epochs=11, gdas_tau_start=10.0, gdas_tau_end=0.1)
    gdas = Gdas(planted.shared, generator())
    seen = []
    network = planted.shared.network
    original = LinearCells.forward

    class Watched(LinearCells):
        def forward(self, x: torch.Tensor, mixtures: Any) -> torch.Tensor:
            seen.append(mixtures)
            return original(self, x, mixtures)

    network.__class__ = Watched
    gdas.start_epoch(10)
    assert gdas.tau == pytest.approx(0.1)
    before = gdas.alpha["normal"].detach().clone()
    gdas.step(planted.batch(), planted.batch())
    assert not torch.equal(gdas.alpha["normal"], before)
    for mixtures in seen:
        assert all(len(columns) == 1 for kind in KINDS for columns in mixtures[kind].paths)


def test_enas_pushes_up_what_was_better_than_its_baseline() -> None:
    planted = problem(enas_hidden=8, enas_entropy_weight=0.0)
    enas = Enas(planted.shared, generator())
    batch = planted.batch()
    enas.baseline = -100.0  # everything is better than this
    state = enas.controller.generator.get_state()
    before = enas.controller().log_probability.detach()
    enas.controller.generator.set_state(state)
    enas._teach(batch)
    enas.controller.generator.set_state(state)
    assert enas.controller().log_probability > before
    assert enas.baseline is not None and enas.baseline > -100.0


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_strategy_continues_bit_for_bit(strategy: str) -> None:
    planted = problem()
    batches = [planted.batch() for _ in range(8)]
    start = copy.deepcopy(planted.shared.network)
    whole = _Run(strategy, planted.shared.network)
    whole.epoch(0, batches[:4])
    state = copy.deepcopy((whole.search.state_dict(), whole.shared.state_dict(), whole.generator.get_state()))
    whole.epoch(1, batches[4:])
    again = _Run(strategy, start)
    again.search.load_state_dict(state[0])
    again.shared.load_state_dict(state[1])
    again.generator.set_state(state[2])
    again.epoch(1, batches[4:])
    assert again.search.genotype() == whole.search.genotype()
    for one, other in zip(again.shared.parameters, whole.shared.parameters, strict=True):
        assert torch.equal(one, other)
    ours, theirs = again.search.strengths(), whole.search.strengths()
    assert all(torch.equal(ours[kind], theirs[kind]) for kind in KINDS)


class _Run:
    def __init__(self, strategy: str, network: Any) -> None:
        recipe = SearchRecipe(random_candidates=4, random_finalists=2, enas_derive_samples=2, pc_warmup=0.0)
        self.shared, self.generator = SharedWeights(network, recipe, OBJECTIVE), generator()
        self.search = STRATEGIES[strategy](self.shared, self.generator)

    def epoch(self, number: int, batches: list[Batch]) -> None:
        self.search.start_epoch(number)
        for train, held_out in zip(batches[::2], batches[1::2], strict=True):
            self.search.step(train, held_out)
        self.search.finish_epoch(batches[-2:], last=True)


def test_costs_are_averaged_over_edges_and_cells() -> None:
    planted = problem()
    objective = Objective(operation_costs={"dil3": 4.0, "skip": 1.0}, cost_weight=2.0)
    term = CostTerm(objective, planted.space, {"normal": 3, "reduce": 1}, torch.device("cpu"))
    all_dil3, all_zero = torch.zeros(5, 4), torch.zeros(5, 4)
    all_dil3[:, 0] = 1.0
    all_zero[:, 3] = 1.0
    assert float(term.of({"normal": all_dil3, "reduce": all_zero})) == pytest.approx(2.0 * 0.75)
    with pytest.raises(InputError, match="sep3"):
        CostTerm(
            Objective(operation_costs={"sep3": 1.0}, cost_weight=1.0), planted.space, {"normal": 1}, torch.device("cpu")
        )
    with pytest.raises(InputError, match="needs `costs`"):
        Objective(cost_weight=1.0)
    with pytest.raises(InputError, match="without a weight"):
        Objective(operation_costs={"skip": 1.0})
    for cost, weight in ((math.nan, 1.0), (math.inf, 1.0), (1.0, math.nan)):
        with pytest.raises(InputError, match="finite"):
            Objective(operation_costs={"skip": cost}, cost_weight=weight)


@pytest.mark.parametrize("strategy", ["darts", "gaea", "gdas", "random"])
def test_a_high_price_keeps_an_operation_out(strategy: str) -> None:
    recipe = SearchRecipe(
        learning_rate=0.01,
        architecture_learning_rate=0.1,
        gaea_learning_rate=1.0,
        random_candidates=300,
        random_finalists=30,
        architecture_weight_decay=0.0,
    )
    planted = plant_vectors(3, recipe)
    objective = Objective(OBJECTIVE.loss, OBJECTIVE.reward, {"dil3": 1.0}, cost_weight=300.0)
    shared = SharedWeights(planted.shared.network, recipe, objective)
    search = STRATEGIES[strategy](shared, generator())
    for _ in range(20):
        search.step(planted.batch(), planted.batch())
    search.finish_epoch([planted.batch()], last=True)
    genotype = search.genotype()
    assert count_operation(genotype.normal, "dil3") + count_operation(genotype.reduce, "dil3") == 0


def test_recipes_and_strategies_by_name() -> None:
    assert load_recipe("paper") == SearchRecipe(conv_stack="paper")
    assert {name: load_recipe(name).nodes for name in ("fast", "smoke")} == {"fast": 7, "smoke": 5}
    assert channel_divisor("pc-darts", SearchRecipe()) == 4
    assert channel_divisor("darts", SearchRecipe()) == 1
    with pytest.raises(InputError, match="no strategy"):
        channel_divisor("evolution", SearchRecipe())
    with pytest.raises(InputError, match="2 errors"):
        load_recipe("paper", {"epochs": 0, "warmup": 1.0})
    with pytest.raises(InputError, match="no search recipe of that name"):
        load_recipe("nonsense")


def test_a_strategy_of_ones_own_is_remembered_by_its_name() -> None:
    class Mine(Darts):
        pass

    class Named(Darts):
        name = "mine"

    assert (name_of("gdas"), name_of(Mine), name_of(Named)) == ("gdas", "Mine", "mine")
