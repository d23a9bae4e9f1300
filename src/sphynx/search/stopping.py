"""When to stop a search that goes wrong: too many skips (DARTS+, Liang et al. 2019), or a Hessian whose dominant
eigenvalue grows (Zela et al. 2020): both signs that the relaxed optimum is one that will not survive discretisation.

Note that the paper's own published normal cell has four skips.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from sphynx.search.recipe import SearchRecipe
from sphynx.search.supernet.cellspace import count_operation
from sphynx.space.genotype import Genotype


def cells_without_convolution(genotype: Genotype) -> list[str]:
    """A search that collapsed: DARTS does, also by the Sphynx paper's own recipe on CIFAR-100 (docs/results.md)."""
    cells = {"normal": genotype.normal, "reduce": genotype.reduce}
    free = {"skip", "avg_pool"}
    return [name for name, cell in cells.items() if all(edge.operation in free for node in cell for edge in node)]


def too_many_skips(genotype: Genotype, recipe: SearchRecipe) -> bool:
    return recipe.max_skips is not None and count_operation(genotype.normal, "skip") > recipe.max_skips


def eigenvalue_grew(eigenvalues: Sequence[float], recipe: SearchRecipe) -> bool:
    """Return whether the mean over the last `hessian_window` epochs outgrew the mean that many epochs earlier."""
    window = recipe.hessian_window
    if len(eigenvalues) < 2 * window:
        return False
    now = sum(eigenvalues[-window:]) / window
    before = sum(eigenvalues[-2 * window : -window]) / window
    return now > 0 and before / now < recipe.hessian_ratio


def dominant_eigenvalue(
    loss: Callable[[], Tensor], parameters: Sequence[Tensor], *, iterations: int, generator: torch.Generator
) -> float:
    """The eigenvalue of the loss's Hessian that is largest in size, by power iteration with exact Hessian products."""
    gradients = torch.autograd.grad(loss(), parameters, create_graph=True, allow_unused=True)
    used = [(p, g) for p, g in zip(parameters, gradients, strict=True) if g is not None and g.requires_grad]
    if not used:
        return 0.0
    vector = [torch.randn(p.shape, generator=generator).to(p.device) for p, _ in used]
    value = torch.zeros(())
    for _ in range(iterations):
        norm = torch.sqrt(sum(((v * v).sum() for v in vector), torch.zeros((), device=vector[0].device)))
        vector = [v / norm.clamp_min(1e-30) for v in vector]
        product = torch.autograd.grad(
            [g for _, g in used], [p for p, _ in used], grad_outputs=vector, retain_graph=True, allow_unused=True
        )
        filled = [torch.zeros_like(v) if h is None else h for h, v in zip(product, vector, strict=True)]
        value = sum(((v * h).sum() for v, h in zip(vector, filled, strict=True)), torch.zeros((), device=norm.device))
        vector = filled
    return float(value)
