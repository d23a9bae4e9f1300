"""A network from elsewhere in torch, as `space.graph` describes it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from sphynx.space.graph import INPUT, GraphDesign, GraphStep, GraphTerm


class GraphNetwork(nn.Module):
    """Reads normalised images. `relus` are the ReLUs that are no comparisons, in their order; `norms` stand before."""

    def __init__(self, design: GraphDesign) -> None:
        super().__init__()
        self.design = design
        relus = [step for step in design.steps if step.kind == "relu"]
        self.relus = nn.ModuleList(nn.ReLU() for _ in relus)
        self.norms = nn.ModuleList(nn.BatchNorm2d(step.shape.channels) for step in relus)
        self.weights = nn.ParameterList()
        self.biases = nn.ParameterList()
        self.sums = nn.ModuleList(Sum(step) for step in design.steps if step.kind == "sum")
        for step in design.steps:
            if step.kind == "linear":
                self.weights.extend(torch.randn(term.kernel) / _fan_in(term) ** 0.5 for term in step.terms)
                self.biases.append(torch.zeros(step.bias))

    def forward(self, x: Tensor) -> Tensor:
        tensors = {INPUT: x}
        weights, biases = iter(self.weights), iter(self.biases)
        relus, norms, sums = iter(self.relus), iter(self.norms), iter(self.sums)
        for step in self.design.steps:
            source = tensors[step.terms[0].source]
            if step.kind == "linear":
                made = next(biases)
                for term in step.terms:
                    made = made + _convolved(tensors[term.source], next(weights), step, term)
            elif step.kind == "sum":
                made = next(sums)([tensors[term.source] for term in step.terms])
            elif step.kind == "pool":
                made = _pooled(source, step)
            elif step.kind == "relu":
                made = next(relus)(next(norms)(source))
            else:
                made = torch.maximum(source, source.new_zeros(()))  # counted apart from ReLUs
            tensors[step.name] = made
        return made.flatten(1)

    @torch.no_grad()
    def settle(self, images: Tensor) -> None:
        """Give each norm the statistics of what comes in, and weights by which it changes nothing."""

        def identify(norm: nn.Module, given: tuple[Tensor, ...]) -> None:
            assert isinstance(norm, nn.BatchNorm2d) and norm.running_mean is not None and norm.running_var is not None
            mean, variance = given[0].mean((0, 2, 3)), given[0].var((0, 2, 3))
            norm.running_mean.copy_(mean)
            norm.running_var.copy_(variance)
            norm.weight.copy_((variance + norm.eps).sqrt())
            norm.bias.copy_(mean)

        hooks = [norm.register_forward_pre_hook(identify) for norm in self.norms]
        try:
            self.eval()(images)
        finally:
            for hook in hooks:
                hook.remove()


class Sum(nn.Module):
    """A sum of elements of its sources; its constants are not trained."""

    constants: Tensor | None

    def __init__(self, step: GraphStep) -> None:
        super().__init__()
        self.terms = step.terms
        self.register_buffer("constants", torch.zeros(step.bias) if step.bias else None)
        for name, index in self._indices():
            places = torch.tensor(index)
            self.register_buffer(f"places{name}", torch.tensor([max(place, 0) for place in index]), persistent=False)
            self.register_buffer(f"kept{name}", None if min(index) >= 0 else (places >= 0).float(), persistent=False)

    def forward(self, sources: Sequence[Tensor]) -> Tensor:
        parts = [self._taken(number, x) for number, x in enumerate(sources)]
        total = sum(parts[1:], parts[0])
        return total if self.constants is None else total + self.constants

    def _indices(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        for number, term in enumerate(self.terms):
            for axis, index in enumerate((term.channels, term.rows, term.columns), start=1):
                if index:
                    yield f"_{number}_{axis}", index

    def _taken(self, number: int, x: Tensor) -> Tensor:
        for axis in range(1, 4):
            places = getattr(self, f"places_{number}_{axis}", None)
            if places is not None:
                x = x.index_select(axis, places)
                kept = getattr(self, f"kept_{number}_{axis}")
                if kept is not None:
                    x = x * kept.to(x.dtype).view([-1 if own == axis else 1 for own in range(4)])
        factor = self.terms[number].factor
        return x if factor == 1 else factor * x


def _fan_in(term: GraphTerm) -> int:
    _, inputs, rows, columns = term.kernel
    return max(1, inputs * rows * columns)


def _convolved(x: Tensor, weight: Tensor, step: GraphStep, term: GraphTerm) -> Tensor:
    padding: list[int] = []
    for length, made, taps, before in zip(
        x.shape[:1:-1], step.shape[:0:-1], term.kernel[:1:-1], (term.left, term.top), strict=True
    ):
        read = (made - 1) * term.stride + term.dilation * (taps - 1) + 1
        padding += [before, read - before - length]
    padded = functional.pad(x, padding) if any(padding) else x
    return functional.conv2d(padded, weight, None, term.stride, 0, term.dilation, term.groups)


def _pooled(x: Tensor, step: GraphStep) -> Tensor:
    rows = [f * x[:, :, a:b].sum(2) for (a, b), f in zip(step.row_windows, step.row_factors, strict=True)]
    x = torch.stack(rows, 2)
    columns = [f * x[..., a:b].sum(3) for (a, b), f in zip(step.column_windows, step.column_factors, strict=True)]
    return torch.stack(columns, 3)
