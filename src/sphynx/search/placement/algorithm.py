"""Choose where the reduce cells go: the Sphynx paper's Algorithm 1.

Each candidate placement i is a whole network f_i with its own weights (the stem is shared). F = sum_i g_i f_i with a
one-hot g drawn for each batch by Gumbel-max from beta_hat = softmax(beta): only the drawn network runs. The paper
alternates a step on w with a batch of one half of the training images and a step on beta with a batch of the other.
beta's gradient is the straight-through Gumbel-softmax one (in the paper's relaxation, log g_i is log beta_hat_i); since
f_k does not depend on beta, the loss's gradient at the gate g_k is <dL/dF, f_k>, and one forward pass gives it.
tau shapes this gradient only. At the end the most likely placement is taken, without noise.

Adam moves a parameter by about its rate per step, whatever the gradient's size. So a schedule that has fewer steps than
the paper's (600 epochs of half CIFAR-100 in batches of 64) raises beta's rate in proportion, up to `beta_rate_limit`.

`estimator` says how beta's gradient is taken:

    paper      as above. With tau from 1000 it is about 1e-5 until the last hundredth of the schedule (docs/search.md)
    released   as in the authors' code: the drawn candidate runs and two others, drawn uniformly. F is the first's
               output, and every one's gate gets its gradient <dL/dF, f_i>, so that beta compares networks. beta is also
               one of the parameters of the weights' SGD: its gradient on the training batch, at the draw that trains
               the weights, is clipped with theirs (beta's own part of the norm, about a thousandth, is left out).
               tau changes once per epoch. In <dL/dF, f_i> the drawn candidate has about 0, as its scale is learned, and
               a rival whose errors are its own a gain: uniform rivals hold back whatever is drawn often. With `rivals`
               "likely", ours, likely candidates are compared with one another.
    losses     compares the candidates' held-out losses (`running_losses`): ours, for short schedules
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from sphynx.search.captured import Captures, optimiser_tensors, use_rate
from sphynx.search.gumbel import HardSample, gumbel_beside_others, gumbel_max, linear
from sphynx.search.objective import Batch, TaughtLoss
from sphynx.search.placement.recipe import PlacementRecipe
from sphynx.search.placement.running_losses import RunningLosses
from sphynx.search.weight_steps import give_gradients, make_optimiser, memory_format

COMPARED = 3  # candidates that the released code evaluates in a step

PAPER_STEPS = 600 * (25_000 // 64)


class PlacementSearch:
    """Learns beta over `networks`, one per candidate, that may share modules (`shared`, the stem)."""

    def __init__(
        self,
        networks: Sequence[nn.Module],
        shared: nn.Module,
        recipe: PlacementRecipe,
        *,
        steps: int,
        generator: torch.Generator,
        loss: TaughtLoss = functional.cross_entropy,  # of the weights' steps; beta's are of labels
    ) -> None:
        self.networks, self.recipe, self.generator, self.loss = networks, recipe, generator, loss
        self.steps, self.done, self.epoch = steps, 0, 0
        common = list(shared.parameters())
        self.device = next(networks[0].parameters()).device
        self._half = bool(recipe.autocast) and self.device.type == "cuda"
        self.learning_rate = torch.tensor(recipe.learning_rate, device=self.device)
        ids = {id(parameter) for parameter in common}
        self.weights = [[*(p for p in network.parameters() if id(p) not in ids), *common] for network in networks]
        optimiser_of = partial(make_optimiser, recipe, rate=self.learning_rate)
        own = [optimiser_of(weights[: len(weights) - len(common)]) for weights in self.weights]
        of_shared = [optimiser_of(common)] if common else []
        self.optimisers = [[optimiser, *of_shared] for optimiser in own]
        self._captures = Captures(bool(recipe.cuda_graphs) and self.device.type == "cuda")
        # beta stays on the host: see `gumbel`.
        self.beta = nn.Parameter(recipe.beta_init * torch.randn(len(networks), generator=generator))
        self.running_losses = RunningLosses(len(networks)) if recipe.estimator == "losses" else None
        self.beta_optimiser = torch.optim.Adam(
            [self.beta],
            lr=scaled_beta_rate(recipe, steps),
            betas=(recipe.beta_betas[0], recipe.beta_betas[1]),
            weight_decay=recipe.beta_weight_decay,
        )
        # The released code hands beta to the weights' optimiser as well; on the host, where beta is.
        self.beta_rate = torch.tensor(recipe.learning_rate)
        self.beta_sgd = make_optimiser(recipe, [self.beta], self.beta_rate) if recipe.estimator == "released" else None

    def start_epoch(self, epoch: int) -> None:
        self.epoch = epoch
        self.beta_rate.fill_(self.recipe.rate(epoch))

    @property
    def tau(self) -> float:
        recipe = self.recipe
        share = self.done / max(self.steps - 1, 1)
        if recipe.tau_by == "epoch":
            share = self.done * recipe.epochs // max(self.steps, 1) / max(recipe.epochs - 1, 1)
        return linear(recipe.tau_start, recipe.tau_end, min(share, 1.0))

    @property
    def beta_hat(self) -> Tensor:
        return self.beta.detach().softmax(dim=0)

    def step(self, train: tuple[Tensor, ...], held_out: Batch) -> Tensor:
        """Lines 3 to 8 of Algorithm 1; the loss on the training batch, left on the device."""
        self.learning_rate.fill_(self.recipe.warmed(self.epoch, self.done, self.steps))
        if self.beta_sgd is not None:
            loss = self._joint_step(self.beta_sgd, train)
            self._comparing_step(held_out)
        else:
            with torch.no_grad():
                chosen = gumbel_max(self.beta[None], self.tau, self.generator).chosen[0]
            loss = self._weight_step(chosen, train)[0]
            self._beta_step(held_out)
        self.done += 1
        return loss

    def _weight_step(self, chosen: int, batch: tuple[Tensor, ...]) -> Tensor:
        return self._captures.run(
            ("weights", chosen), partial(self._train_weights, chosen), batch, partial(self._tensors, chosen)
        )

    def _train_weights(self, chosen: int, x: Tensor, *targets: Tensor) -> Tensor:
        """The loss and the norm of its gradient before it was clipped."""
        weights = self.weights[chosen]
        loss = self.loss(self._logits(chosen, x), *targets)
        give_gradients(weights, torch.autograd.grad(loss, weights))
        norm = torch.nn.utils.clip_grad_norm_(weights, self.recipe.gradient_clip)
        for optimiser in self.optimisers[chosen]:
            optimiser.step()
        return torch.stack([loss.detach(), norm])

    def _joint_step(self, beta_sgd: torch.optim.Optimizer, batch: tuple[Tensor, ...]) -> Tensor:
        """One SGD step of the drawn candidate's weights and of beta, by one draw and one clip; the loss."""
        sample = self._compare()
        gates = self._gates(sample.chosen, (batch[0], batch[1]))
        loss_and_norm = self._weight_step(sample.chosen[0], batch)
        kept = (self.recipe.gradient_clip / (loss_and_norm[1] + 1e-6)).clamp(max=1.0)  # as `clip_grad_norm_` has it
        self._give_beta(beta_sgd, sample, gates * kept)
        return loss_and_norm[0]

    def _comparing_step(self, batch: Batch) -> None:
        sample = self._compare()
        self._give_beta(self.beta_optimiser, sample, self._gates(sample.chosen, batch))

    def _compare(self) -> HardSample:
        return gumbel_beside_others(self.beta, COMPARED, self.tau, self.generator, self.recipe.rivals)

    def _give_beta(self, optimiser: torch.optim.Optimizer, sample: HardSample, gates: Tensor) -> None:
        optimiser.zero_grad()
        sample.soft.backward(gates.cpu())
        if self.done >= self.recipe.beta_warmup * self.steps:
            optimiser.step()

    def _gate_gradient(self, chosen: int, x: Tensor, y: Tensor) -> Tensor:
        with torch.no_grad():
            logits = self._logits(chosen, x)
        gate = torch.ones((), device=self.device, requires_grad=True)
        return torch.autograd.grad(functional.cross_entropy(gate * logits, y), gate)[0]

    @torch.no_grad()
    def _held_out_loss(self, chosen: int, x: Tensor, y: Tensor) -> Tensor:
        return functional.cross_entropy(self._logits(chosen, x), y)

    def _tensors(self, chosen: int) -> list[Tensor]:
        """The tensors that a step on this candidate changes."""
        return [
            *self.weights[chosen],
            *self.networks[chosen].buffers(),
            *optimiser_tensors(*self.optimisers[chosen]),
        ]

    def _beta_step(self, batch: Batch) -> None:
        sample = gumbel_max(self.beta[None], self.tau, self.generator)
        chosen = sample.chosen[0]
        measure = self._gate_gradient if self.running_losses is None else self._held_out_loss
        measured = self._captures.run(
            ("beta", chosen), partial(measure, chosen), batch, partial(self._tensors, chosen)
        ).cpu()
        self.beta_optimiser.zero_grad()
        if self.running_losses is None:
            sample.soft.backward(measured.reshape(1))
        else:
            self.running_losses.record(chosen, float(measured))
            self.beta.grad = self.running_losses.gradient(self.beta_hat)
        if self.done >= self.recipe.beta_warmup * self.steps:
            self.beta_optimiser.step()

    def _gates(self, candidates: Sequence[int], batch: Batch) -> Tensor:
        """The loss's gradient at each one's gate, where the output is the first one's."""
        first = candidates[0]
        slope = self._captures.run(
            ("slope", first), partial(self._slope, first), batch, partial(self._tensors, first)
        ).clone()
        gates = []
        for candidate in candidates:
            output = self._captures.run(
                ("output", candidate), partial(self._output, candidate), batch[:1], partial(self._tensors, candidate)
            )
            gates.append((slope * output).sum())
        return torch.stack(gates)

    def _slope(self, chosen: int, x: Tensor, y: Tensor) -> Tensor:
        """dL/dF at F = f_chosen."""
        output = self._output(chosen, x).requires_grad_()
        return torch.autograd.grad(functional.cross_entropy(output, y), output)[0]

    @torch.no_grad()
    def _output(self, chosen: int, x: Tensor) -> Tensor:
        return self._logits(chosen, x)

    def _logits(self, chosen: int, x: Tensor) -> Tensor:
        with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self._half, cache_enabled=False):
            x = x.contiguous(memory_format=memory_format(self.recipe))
            return self.networks[chosen](x).float()

    def _all_optimisers(self) -> list[torch.optim.SGD]:
        shared = self.optimisers[0][1:]
        return [*(optimisers[0] for optimisers in self.optimisers), *shared]

    def state_dict(self) -> dict[str, Any]:
        return {
            "networks": [network.state_dict() for network in self.networks],
            "optimisers": [optimiser.state_dict() for optimiser in self._all_optimisers()],
            "beta": self.beta.detach(),
            "beta_optimiser": self.beta_optimiser.state_dict(),
            "beta_sgd": None if self.beta_sgd is None else self.beta_sgd.state_dict(),
            "running_losses": None if self.running_losses is None else self.running_losses.state_dict(),
            "done": self.done,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        for network, saved in zip(self.networks, state["networks"], strict=True):
            network.load_state_dict(saved)
        for optimiser, saved in zip(self._all_optimisers(), state["optimisers"], strict=True):
            optimiser.load_state_dict(saved)
            use_rate(optimiser, self.learning_rate)
        with torch.no_grad():
            self.beta.copy_(state["beta"])
        self.beta_optimiser.load_state_dict(state["beta_optimiser"])
        if self.beta_sgd is not None:
            self.beta_sgd.load_state_dict(state["beta_sgd"])
            use_rate(self.beta_sgd, self.beta_rate)
        if self.running_losses is not None:
            self.running_losses.load_state_dict(state["running_losses"])
        self.done = state["done"]


def scaled_beta_rate(recipe: PlacementRecipe, steps: int) -> float:
    rate = recipe.beta_learning_rate * max(1.0, PAPER_STEPS / max(steps, 1))
    return min(rate, max(recipe.beta_rate_limit, recipe.beta_learning_rate))
