"""The loss that training minimises: cross-entropy, the auxiliary head's share of it, and distillation.

    loss = l [CE(s, y) + a CE(s_aux, y)] + w d(s, t)        s, t: logits of student and teacher for the same x

The paper's distillation (Ba & Caruana 2014) is d = ||s - t||^2: summed over the classes as its formula is written
(`distillation_reduction = "mean"` averages over the classes instead), averaged over the batch. "kl" is Hinton's
T^2 KL(softmax(t / T) || softmax(s / T)), and "standardised" the same of z-scores, each image's logits less their mean
over their deviation (Sun et al. 2024): a student need not match how sure its teacher is, only how it ranks. The paper
does not say whether the auxiliary loss stays beside distillation; here it stays, and `auxiliary_weight = 0` removes it.
Label smoothing applies to the cross-entropies only.
With `balance = "weights"` the cross-entropies of a class count by n / (classes n_c), n_c of its n images.
`label_weight` l = 0 leaves the teacher's term alone. Student and teacher read the very same tensor x, augmented and
mixed up: d needs no labels and is defined for mixed images as for any others, while CE takes the mixed labels. Where
the teacher's logits are known (`train.views`), they are given with the batch.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from sphynx.network.builder import SphynxNetwork
from sphynx.train.recipe import Recipe

_LEAST_VARIANCE = 1e-12  # of logits that are all equal, as a head of zeros gives them


class Objective(nn.Module):
    """A module, so that it can be compiled or wrapped for several processes: (x, y[, t]) -> (loss, logits)."""

    def __init__(
        self,
        network: nn.Module,
        recipe: Recipe,
        teacher: nn.Module | None = None,
        class_weights: Tensor | None = None,
    ) -> None:
        super().__init__()
        self.network = network
        self.recipe = recipe
        self.class_weights = class_weights
        # In a list, the teacher is not a submodule: its weights are neither trained nor sent among processes.
        self._teacher = [] if teacher is None else [teacher.eval().requires_grad_(False)]

    def forward(self, x: Tensor, y: Tensor, taught: Tensor | None = None) -> tuple[Tensor, Tensor]:
        logits, auxiliary = self._logits(x)
        terms = []
        if self.recipe.label_weight > 0:
            labels = self._cross_entropy(logits, y)
            if auxiliary is not None:
                labels = labels + self.recipe.auxiliary_weight * self._cross_entropy(auxiliary, y)
            terms.append(self.recipe.label_weight * labels)
        if taught is None and self._teacher:
            with torch.no_grad():
                taught = self._teacher[0](x)
        if taught is not None:
            terms.append(self.recipe.distillation_weight * distillation_loss(logits, taught.float(), self.recipe))
        return sum(terms[1:], terms[0]), logits

    def _logits(self, x: Tensor) -> tuple[Tensor, Tensor | None]:
        if isinstance(self.network, SphynxNetwork):
            logits, auxiliary = self.network.forward_with_auxiliary(x)
            return logits.float(), None if auxiliary is None else auxiliary.float()
        return self.network(x).float(), None

    def _cross_entropy(self, logits: Tensor, y: Tensor) -> Tensor:
        return functional.cross_entropy(
            logits, y, weight=self.class_weights, label_smoothing=self.recipe.label_smoothing
        )


def weights_of_classes(labels: Tensor, classes: int) -> Tensor:
    """Weigh each class's loss so that all classes count alike in the end; 0 for a class without images."""
    counts = torch.bincount(labels.cpu(), minlength=classes).float()
    return torch.where(counts > 0, len(labels) / (classes * counts.clamp_min(1)), 0.0)


def distillation_loss(student: Tensor, teacher: Tensor, recipe: Recipe) -> Tensor:
    if recipe.distillation == "squared":
        squares = (student - teacher).square()
        return (squares.sum(1) if recipe.distillation_reduction == "sum" else squares.mean(1)).mean()
    if recipe.distillation == "standardised":
        student, teacher = _z_scores(student), _z_scores(teacher)
    temperature = recipe.distillation_temperature
    return temperature**2 * functional.kl_div(
        functional.log_softmax(student / temperature, dim=1),
        functional.log_softmax(teacher / temperature, dim=1),
        log_target=True,
        reduction="batchmean",
    )


def _z_scores(logits: Tensor) -> Tensor:
    centred = logits - logits.mean(1, keepdim=True)
    return centred / centred.square().mean(1, keepdim=True).add(_LEAST_VARIANCE).sqrt()
