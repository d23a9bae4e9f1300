"""Hard samples with a gradient: Gumbel-max forward, Gumbel-softmax backward (Jang et al. 2017; Maddison et al. 2017).

A sample is one-hot, so the branch that was drawn counts exactly 1 in the forward pass and the others need not be
computed. The caller scales its branch by a gate of 1 on the device, and hands the loss's gradient at that gate back:
`sample.soft.backward(gate.grad)` is the straight-through estimator, with no gradient from branches that were not run
(as in GDAS and in the Sphynx paper, which train the sampled network only). Sampling and parameters live on the host, so
the device is waited for once per architecture step (for the gate's gradient), never to learn which branch to run.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from sphynx.search.choices import Rivals


@dataclass(frozen=True)
class HardSample:
    chosen: list[int]  # one per row; of one row, several
    soft: Tensor  # the relaxed probability of each that was chosen, differentiable in the logits


def gumbel_max(logits: Tensor, tau: float, generator: torch.Generator) -> HardSample:
    """logits: rows x choices, on the host. tau shapes `soft` only: the argmax does not depend on it."""
    noisy = _noisy(logits, generator)
    chosen = noisy.argmax(dim=-1, keepdim=True)
    return HardSample(chosen.flatten().tolist(), (noisy / tau).softmax(dim=-1).gather(-1, chosen).flatten())


def gumbel_beside_others(
    logits: Tensor, count: int, tau: float, generator: torch.Generator, rivals: Rivals = "uniform"
) -> HardSample:
    """Draw one of a row of logits by Gumbel-max, then up to `count - 1` of the others: each as likely as the next, or
    by their own probabilities, without replacement."""
    noisy = _noisy(logits, generator)
    first = int(noisy.argmax())
    likely = rivals == "likely"
    order = noisy.argsort(descending=True) if likely else torch.randperm(len(noisy), generator=generator)
    chosen = [first, *(choice for choice in order.tolist() if choice != first)][:count]
    return HardSample(chosen, (noisy / tau).softmax(dim=-1)[chosen])


def _noisy(logits: Tensor, generator: torch.Generator) -> Tensor:
    return logits.log_softmax(dim=-1) - torch.empty_like(logits).exponential_(generator=generator).log()


def linear(start: float, end: float, share: float) -> float:
    return start + (end - start) * share
