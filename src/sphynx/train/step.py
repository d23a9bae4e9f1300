"""One training step, eager or as a CUDA graph, that never waits for the device.

Learning rate and drop probability are device tensors, which a captured graph reads anew; loss, hits and the first step
with a NaN are summed on the device and read once per epoch.

    graph      the whole step (forward, backward, clipping, update, sums) is captured once and replayed
    compile    the same, with the network's blocks compiled before (`network.regions`)
    eager      operation by operation; CPU, and several processes
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from sphynx.network.backend import fast_convolutions, tensor_float32
from sphynx.network.regions import compile_regions
from sphynx.train.average import Average
from sphynx.train.muon import KERNEL_DIMENSIONS, Muon
from sphynx.train.recipe import Recipe

_WARMUP_STEPS = 3
_NONE_BAD = -1


class Step:
    """`step(x, y)` trains on one batch; a teacher's logits may be given with it. `module` is the objective, perhaps
    wrapped for several processes.

    `average` is that of the network within, updated after each step.
    """

    def __init__(
        self,
        module: nn.Module,
        recipe: Recipe,
        device: torch.device,
        *,
        eager: bool = False,
        average: Average | None = None,
    ) -> None:
        self.module = module
        self.average = average
        self.recipe = recipe
        self.device = device
        self.parameters = [p for p in module.parameters() if p.requires_grad]
        self.learning_rate = torch.tensor(recipe.learning_rate, device=device)
        self.optimizer = build_optimizer(self.parameters, recipe, self.learning_rate)
        self.sums = torch.zeros(3, dtype=torch.float64, device=device)  # loss, hits, images
        self.steps = torch.zeros((), dtype=torch.int64, device=device)  # in this epoch
        self.first_bad = torch.full((), _NONE_BAD, dtype=torch.int64, device=device)
        how = "eager" if eager else recipe.acceleration
        self._graph: _Graph | None = None
        self._captures = device.type == "cuda" and how != "eager"
        if how == "compile" and self._captures:
            compile_regions(module)
        if device.type == "cuda":
            torch.backends.cudnn.benchmark = True  # shapes never change: measure the convolutions once
        self._half = uses_half_precision(recipe, device)
        self._format = torch.channels_last if uses_channels_last(recipe, device) else torch.contiguous_format
        self._half_weights = _HalfWeights(module) if self._half and self._captures else None

    def __call__(self, x: Tensor, *targets: Tensor) -> None:
        if not self._captures:
            with fast_convolutions(self.device):
                self._run(x.contiguous(memory_format=self._format), *targets)
            return
        if self._graph is None:
            self._graph = _Graph(self, x.contiguous(memory_format=self._format), *targets)
        self._graph.replay(x, *targets)

    def read(self) -> tuple[float, float, int | None]:
        """Mean loss, accuracy, and the first step of the epoch with a NaN, if any. Waits for the device."""
        loss, hits, images = self.sums.tolist()
        bad = int(self.first_bad)
        images = max(images, 1)
        return loss / images, hits / images, None if bad == _NONE_BAD else bad

    def start_epoch(self) -> None:
        self.sums.zero_()
        self.steps.zero_()
        self.first_bad.fill_(_NONE_BAD)

    def state_dict(self) -> dict[str, Any]:
        return {
            "optimizer": self.optimizer.state_dict(),
            "sums": self.sums,
            "steps": self.steps,
            "first_bad": self.first_bad,
            "average": None if self.average is None else self.average.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.optimizer.load_state_dict(state["optimizer"])
        for group in self.optimizer.param_groups:
            group["lr"] = self.learning_rate  # loading put a copy there, which nobody would update
        for name in ("sums", "steps", "first_bad"):
            getattr(self, name).copy_(state[name])
        if self.average is not None:
            self.average.load_state_dict(state["average"])

    def _run(self, x: Tensor, *targets: Tensor) -> None:
        with single_precision(self.recipe):
            self._learn(x, *targets)

    def _learn(self, x: Tensor, *targets: Tensor) -> None:
        y = targets[0]
        self.optimizer.zero_grad(set_to_none=True)
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self._half, cache_enabled=False):
            if self._half_weights is None:
                loss, logits = self.module(x, *targets)
            else:
                loss, logits = self._half_weights.call(x, *targets)
        loss.backward()
        if self._half_weights is not None:
            self._half_weights.pass_gradients_on()
        norm = nn.utils.clip_grad_norm_(self.parameters, self.recipe.grad_clip or math.inf)
        self.optimizer.step()
        if self.average is not None:
            self.average.update()
        with torch.no_grad():
            labels = y if y.ndim == 1 else y.argmax(1)
            hits = (logits.argmax(1) == labels).sum()
            self.sums += torch.stack([loss.double() * len(x), hits.double(), torch.full_like(hits, len(x)).double()])
            bad = ~torch.isfinite(loss + norm) & (self.first_bad == _NONE_BAD)
            self.first_bad.copy_(torch.where(bad, self.steps, self.first_bad))
            self.steps += 1


class _HalfWeights:
    """bf16 copies of all convolution and linear weights, made by a few multi-tensor kernels.

    Autocast would cast each weight and each gradient by a kernel of its own: some 200 launches a step in a network of
    many small layers. The arithmetic is the same.
    """

    def __init__(self, module: nn.Module) -> None:
        self._module = module
        weights = {name: p for name, p in module.named_parameters() if p.requires_grad and p.ndim > 1}
        self._full: list[Tensor] = list(weights.values())
        self._by_name = {name: p.detach().to(torch.bfloat16).requires_grad_() for name, p in weights.items()}
        self._half = list(self._by_name.values())

    def call(self, *batch: Tensor) -> Any:
        for weight in self._half:
            weight.grad = None
        with torch.no_grad():
            torch._foreach_copy_(self._half, self._full)
        return torch.func.functional_call(self._module, self._by_name, batch)

    def pass_gradients_on(self) -> None:
        full_gradients, half_gradients = [], []
        for full, half in zip(self._full, self._half, strict=True):
            if half.grad is not None:
                full.grad = torch.empty_like(full)
                full_gradients.append(full.grad)
                half_gradients.append(half.grad)
        torch._foreach_copy_(full_gradients, half_gradients)


class _Graph:
    """Captures `step._run` on static inputs. Warm-up trains for real, so everything it touched is put back."""

    def __init__(self, step: Step, *batch: Tensor) -> None:
        self.batch = [tensor.clone(memory_format=torch.preserve_format) for tensor in batch]
        before = _Snapshot(step)
        side = torch.cuda.Stream(step.device)
        side.wait_stream(torch.cuda.current_stream(step.device))
        with torch.cuda.stream(side):
            for _ in range(_WARMUP_STEPS):
                step._run(*self.batch)
        torch.cuda.current_stream(step.device).wait_stream(side)
        # Gradients made during capture live in the graph's memory: replays overwrite them, never add to old ones.
        step.optimizer.zero_grad(set_to_none=True)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            step._run(*self.batch)
        before.restore(step)

    def replay(self, *batch: Tensor) -> None:
        for ours, given in zip(self.batch, batch, strict=True):
            ours.copy_(given)
        self.graph.replay()


class _Snapshot:
    """Weights, batch norm's statistics, the optimizer's state, sums and the random state, to be put back in place."""

    def __init__(self, step: Step) -> None:
        self._pairs = [(tensor, tensor.detach().clone()) for tensor in self._tensors(step)]
        self._moments = {id(t): t.clone() for t in _optimizer_tensors(step.optimizer)}
        self._random = torch.cuda.get_rng_state(step.device)

    def restore(self, step: Step) -> None:
        with torch.no_grad():
            for tensor, value in self._pairs:
                tensor.copy_(value)
            # State that appeared during warm-up (momentum, step counts) starts from zero, as its first step would.
            for tensor in _optimizer_tensors(step.optimizer):
                saved = self._moments.get(id(tensor))
                tensor.copy_(torch.zeros_like(tensor) if saved is None else saved)
        torch.cuda.set_rng_state(self._random, step.device)

    @staticmethod
    def _tensors(step: Step) -> list[Tensor]:
        own = [step.sums, step.steps, step.first_bad]
        averaged = [] if step.average is None else step.average.tensors()
        return [*step.module.parameters(), *step.module.buffers(), *own, *averaged]


def _optimizer_tensors(optimizer: torch.optim.Optimizer) -> list[Tensor]:
    return [value for state in optimizer.state.values() for value in state.values() if isinstance(value, Tensor)]


def uses_half_precision(recipe: Recipe, device: torch.device) -> bool:
    return recipe.precision == "bf16" or (recipe.precision == "auto" and device.type == "cuda")


def single_precision(recipe: Recipe) -> AbstractContextManager[None]:
    """Compute what is in fp32 as the recipe asks; with bf16 nothing of weight is."""
    named = recipe.precision in ("fp32", "tf32")
    return tensor_float32(allowed=recipe.precision == "tf32") if named else nullcontext()


def uses_channels_last(recipe: Recipe, device: torch.device) -> bool:
    """Tensor cores, which fp32 does not use, read channels last; elsewhere torch's own layout is at least as fast."""
    on_tensor_cores = device.type == "cuda" and recipe.precision != "fp32"
    return recipe.memory_format == "channels_last" or (recipe.memory_format == "auto" and on_tensor_cores)


def width_multiple(recipe: Recipe, device: torch.device) -> int:
    """The number that widths should be multiples of for tensor cores (see `network.widen`)."""
    return 8 if device.type == "cuda" and uses_half_precision(recipe, device) else 1


def build_optimizer(parameters: list[nn.Parameter], recipe: Recipe, rate: Tensor) -> torch.optim.Optimizer:
    """`rate` is a device tensor that the fused kernels read; on the CPU torch reads it as a number."""
    fused = rate.device.type == "cuda"
    if recipe.optimizer == "muon":
        return _build_muon(parameters, recipe, rate)
    groups: list[Any] = list(parameters)
    if recipe.decay_on == "kernels":
        groups = _spare_vectors(parameters)
    if recipe.optimizer == "adamw":
        betas = (recipe.momentum, 0.999)
        return torch.optim.AdamW(groups, rate, betas, weight_decay=recipe.weight_decay, fused=fused, capturable=fused)
    return torch.optim.SGD(
        groups,
        rate,
        momentum=recipe.momentum,
        weight_decay=recipe.weight_decay,
        nesterov=recipe.nesterov,
        fused=fused,
    )


def _build_muon(parameters: list[nn.Parameter], recipe: Recipe, rate: Tensor) -> Muon:
    kernels = [p for p in parameters if p.ndim == KERNEL_DIMENSIONS]
    rest = [p for p in parameters if p.ndim != KERNEL_DIMENSIONS]
    decayed = {"momentum": recipe.momentum, "nesterov": recipe.nesterov, "weight_decay": recipe.weight_decay}
    groups = _spare_vectors(rest) if recipe.decay_on == "kernels" else [{"params": rest}]
    factor = recipe.kernel_learning_rate / recipe.learning_rate
    own = {"params": kernels, "kernels": True, "momentum": recipe.kernel_momentum, "rate_factor": factor}
    return Muon([own, *({**decayed, **group} for group in groups)], rate)


def _spare_vectors(parameters: list[nn.Parameter]) -> list[dict[str, Any]]:
    """Groups in which weight decay spares biases and batch norm."""
    return [
        {"params": [p for p in parameters if p.ndim > 1]},
        {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0.0},
    ]
