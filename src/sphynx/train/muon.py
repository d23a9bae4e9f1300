"""Muon for convolutions (Jordan et al. 2024, kellerjordan.github.io/posts/muon), SGD with momentum for the rest.

A kernel W is read as a matrix [out, in k k], and its update is the nearest matrix whose singular values are all alike:

    M <- m M + G            X = (G + m M) / |G + m M|        Nesterov; |.| is Frobenius's norm
    X <- a X + (b A + c A A) X,  A = X X^T                   a few times: singular values of X go to about 1
    W <- sqrt(out) W / |W| - rate X

Batch norm after a convolution makes W's length idle, so W is kept at sqrt(out), which is X's length where
out <= in k k: a step turns it by about `rate`, whatever the gradient's size. Weight decay would do nothing. The stem's
kernel and those of reductions are kernels like others; vectors and the head, whose length counts, learn by SGD.

Kernels of one shape are multiplied together, in bf16 on a GPU. Nothing is read back to the host and rates are device
tensors, so that a CUDA graph may hold a step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import sqrt
from typing import Any, overload

import torch
from torch import Tensor

KERNEL_DIMENSIONS = 4  # [out, in, k, k]
STEPS = 4  # singular values of 1/100 of the norm come out at about 1
COEFFICIENTS = (3.4445, -4.7750, 2.0315)  # Jordan's: fast rather than exact, values end between 0.7 and 1.2
_LEAST_NORM = 1e-12


class Muon(torch.optim.Optimizer):
    """Each group says whether it is of kernels: {"params": [...], "kernels": True, "rate_factor": 0.1}.

    `rate` is that of SGD; kernels learn by `rate_factor` times it.
    """

    def __init__(self, groups: Iterable[dict[str, Any]], rate: Tensor) -> None:
        usual = {"momentum": 0.0, "nesterov": True, "weight_decay": 0.0, "kernels": False, "rate_factor": 1.0}
        super().__init__(groups, {"lr": rate, **usual})

    @overload
    def step(self, closure: None = None) -> None: ...
    @overload
    def step(self, closure: Callable[[], float]) -> float: ...
    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:
        with torch.enable_grad():
            loss = None if closure is None else closure()
        for group in self.param_groups:
            learning = [p for p in group["params"] if p.grad is not None]
            if learning:
                (_turn_kernels if group["kernels"] else _descend)(learning, self._momenta(learning), group)
        return loss

    def _momenta(self, parameters: list[Tensor]) -> list[Tensor]:
        for parameter in parameters:
            if not self.state[parameter]:
                self.state[parameter]["momentum_buffer"] = torch.zeros_like(parameter)
        return [self.state[parameter]["momentum_buffer"] for parameter in parameters]


def _descend(parameters: list[Tensor], momenta: list[Tensor], group: dict[str, Any]) -> None:
    gradients = [p.grad for p in parameters if p.grad is not None]
    if group["weight_decay"]:
        gradients = list(torch._foreach_add(gradients, parameters, alpha=group["weight_decay"]))
    steps = _with_momentum(gradients, momenta, group)
    torch._foreach_mul_(steps, group["lr"])
    torch._foreach_sub_(parameters, steps)


def _turn_kernels(kernels: list[Tensor], momenta: list[Tensor], group: dict[str, Any]) -> None:
    steps = _with_momentum([p.grad for p in kernels if p.grad is not None], momenta, group)
    lengths = list(torch._foreach_norm(kernels))
    torch._foreach_clamp_min_(lengths, _LEAST_NORM)
    torch._foreach_div_(lengths, [sqrt(len(kernel)) for kernel in kernels])
    torch._foreach_div_(kernels, lengths)
    rate = group["lr"] * group["rate_factor"]
    of_shape: dict[torch.Size, list[int]] = {}
    for number, kernel in enumerate(kernels):
        of_shape.setdefault(kernel.shape, []).append(number)
    for shape, numbers in of_shape.items():
        alike = torch.stack([steps[number] for number in numbers])
        turned = (orthogonalised(alike.flatten(2)).to(alike.dtype) * rate).unflatten(2, shape[1:])
        torch._foreach_sub_([kernels[number] for number in numbers], list(turned.unbind()))


def _with_momentum(gradients: list[Tensor], momenta: list[Tensor], group: dict[str, Any]) -> list[Tensor]:
    """As torch's SGD has it: the momentum is a sum, and Nesterov's looks one step ahead."""
    torch._foreach_mul_(momenta, group["momentum"])
    torch._foreach_add_(momenta, gradients)
    if group["nesterov"]:
        return list(torch._foreach_add(gradients, momenta, alpha=group["momentum"]))
    return [momentum.clone() for momentum in momenta]


def orthogonalised(matrices: Tensor) -> Tensor:
    """Return U V^T of each [rows, columns] = U S V^T, roughly: with singular values about 1 in place of 1."""
    x = matrices.to(torch.bfloat16) if matrices.is_cuda else matrices
    if tall := x.shape[-2] > x.shape[-1]:
        x = x.mT
    x = x / x.norm(dim=(-2, -1), keepdim=True).clamp_min(_LEAST_NORM)
    a, b, c = COEFFICIENTS
    for _ in range(STEPS):
        gram = x @ x.mT
        slope = torch.baddbmm(gram, gram, gram, beta=b, alpha=c)
        x = torch.baddbmm(x, slope, x, beta=a)
    return x.mT if tall else x
