"""DARTS (Liu, Simonyan, Yang 2019): a softmax over the operations of each edge, learned by gradient on held-out data.

First order takes the gradient at the present w. Second order takes it at w after one more step of training,
w' = w - xi (grad_w L_train + momentum + decay), whose dependence on alpha adds -xi * d2 L_train / d alpha d w * v with
v = grad_w' L_held_out; the product is a central difference along v with epsilon = 0.01 / |v| (the paper's equation 8).
`unrolled` takes the gradient at w' without that product, which is what the Sphynx paper's released code comes to: it
writes the difference as `(p - n) / 2. * eps`, and so multiplies by epsilon where it should divide.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn

from sphynx.search.captured import optimiser_tensors
from sphynx.search.objective import Batch
from sphynx.search.strategies.strategy import strongest
from sphynx.search.supernet.cellspace import KINDS, Kind
from sphynx.search.supernet.mixture import Mixture, Mixtures
from sphynx.search.supernet.weights import SharedWeights
from sphynx.space.genotype import Genotype

DIFFERENCE = 0.01  # epsilon * |v|
Order = Literal["first", "unrolled", "second"]
NAMES: dict[Order, str] = {"first": "darts", "unrolled": "darts-unrolled", "second": "darts-2nd"}


class Darts:
    is_relaxed = True

    def __init__(self, shared: SharedWeights, generator: torch.Generator, *, order: Order = "first") -> None:
        self.name, self.shared, self.order = NAMES[order], shared, order
        self.space = shared.network.space
        recipe = shared.recipe
        self.warmup_epochs = int(recipe.warmup * recipe.epochs)
        shape = (len(self.space.edges), len(self.space.candidates))
        self.alpha: dict[Kind, nn.Parameter] = {
            kind: initial_parameter(shape, recipe.architecture_init, generator, shared.device) for kind in KINDS
        }
        self.optimiser = torch.optim.Adam(
            self.parameters(),
            lr=recipe.architecture_learning_rate,
            betas=(recipe.architecture_betas[0], recipe.architecture_betas[1]),
            weight_decay=recipe.architecture_weight_decay,
            capturable=shared.device.type == "cuda",
        )
        self.epoch = 0

    def parameters(self) -> list[nn.Parameter]:
        """Everything that Adam learns on held-out data."""
        return list(self.alpha.values())

    def tensors(self) -> list[Tensor]:
        """The tensors that a step changes besides w."""
        return [*self.parameters(), *optimiser_tensors(self.optimiser)]

    def start_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def mixtures(self) -> Mixtures:
        return {kind: Mixture(weights=alpha.softmax(dim=-1)) for kind, alpha in self.alpha.items()}

    def held_out_loss(self, batch: Batch) -> Tensor:
        """The loss that the architecture minimises; differentiable in its parameters."""
        mixtures = self.mixtures()
        loss = self.shared.loss(batch, mixtures)
        if self.shared.cost:
            loss = loss + self.shared.cost.of({kind: alpha.softmax(dim=-1) for kind, alpha in self.alpha.items()})
        return loss

    def step(self, train: Batch, held_out: Batch) -> Tensor:
        if self.epoch >= self.warmup_epochs:
            parameters = self.parameters()
            gradients: Sequence[Tensor | None]
            if self.order == "first":
                gradients = torch.autograd.grad(self.held_out_loss(held_out), parameters, allow_unused=True)
            else:
                gradients = self._unrolled_gradients(train, held_out)
            for parameter, gradient in zip(parameters, gradients, strict=True):
                parameter.grad = gradient
            self.optimiser.step()
        with torch.no_grad():
            mixtures = self.mixtures()
        return self.shared.update(train, mixtures)

    def finish_epoch(self, held_out: Iterable[Batch], *, last: bool) -> None:
        del held_out, last  # everything is learned in the steps

    def strengths(self) -> dict[Kind, Tensor]:
        return {kind: alpha.detach().softmax(dim=-1) for kind, alpha in self.alpha.items()}

    def genotype(self) -> Genotype:
        raw = self.shared.recipe.ranked_by == "alpha"
        compared = {kind: alpha.detach() for kind, alpha in self.alpha.items()} if raw else self.strengths()
        return strongest(self.space, compared, self.name)

    def state_dict(self) -> dict[str, Any]:
        return {"parameters": [p.detach() for p in self.parameters()], "optimiser": self.optimiser.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        with torch.no_grad():
            for parameter, saved in zip(self.parameters(), state["parameters"], strict=True):
                parameter.copy_(saved)
        self.optimiser.load_state_dict(state["optimiser"])

    def _unrolled_gradients(self, train: Batch, held_out: Batch) -> list[Tensor | None]:
        weights, alphas = self.shared.parameters, self.parameters()
        rate = self.shared.learning_rate
        before = [w.detach().clone() for w in weights]
        self._move(weights, self._training_direction(train), -rate)
        if self.order == "unrolled":
            at_next = torch.autograd.grad(self.held_out_loss(held_out), alphas, allow_unused=True)
            self._restore(weights, before)
            return list(at_next)
        gradients = torch.autograd.grad(self.held_out_loss(held_out), [*alphas, *weights], allow_unused=True)
        direct, vector = gradients[: len(alphas)], _fill(gradients[len(alphas) :], weights)
        norm = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(v) for v in vector]))
        epsilon = DIFFERENCE / norm.clamp_min(1e-12)
        sides = []
        for sign in (1, -1):
            self._restore(weights, before)
            self._move(weights, vector, sign * epsilon)
            sides.append(torch.autograd.grad(self.shared.loss(train, self.mixtures()), alphas, allow_unused=True))
        self._restore(weights, before)
        return [
            None if d is None or up is None or down is None else d - rate * (up - down) / (2 * epsilon)
            for d, up, down in zip(direct, *sides, strict=True)
        ]

    def _training_direction(self, train: Batch) -> list[Tensor]:
        """The direction that one step of SGD with momentum and decay subtracts from w, per unit of learning rate."""
        weights, recipe = self.shared.parameters, self.shared.recipe
        gradients = torch.autograd.grad(self.shared.loss(train, self.mixtures()), weights, allow_unused=True)
        direction = []
        for w, gradient in zip(weights, _fill(gradients, weights), strict=True):
            momentum = self.shared.optimiser.state.get(w, {}).get("momentum_buffer")
            step = gradient + recipe.weight_decay * w.detach()
            direction.append(step if momentum is None else step + recipe.momentum * momentum)
        return direction

    @staticmethod
    @torch.no_grad()
    def _move(weights: Sequence[Tensor], direction: list[Tensor], length: float | Tensor) -> None:
        torch._foreach_add_(list(weights), list(torch._foreach_mul(direction, length)))

    @staticmethod
    @torch.no_grad()
    def _restore(weights: Sequence[Tensor], values: list[Tensor]) -> None:
        torch._foreach_copy_(list(weights), values)


def initial_parameter(
    shape: tuple[int, ...], scale: float, generator: torch.Generator, device: torch.device
) -> nn.Parameter:
    """scale x standard normal, drawn on the host, so that a seed means the same on every device."""
    return nn.Parameter((scale * torch.randn(shape, generator=generator)).to(device))


def _fill(gradients: Iterable[Tensor | None], like: Iterable[Tensor]) -> list[Tensor]:
    return [torch.zeros_like(w) if g is None else g for g, w in zip(gradients, like, strict=True)]
