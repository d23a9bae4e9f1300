"""A trained network with what belongs to it: how its inputs are normalised, its classes, the data it knows.

trained = load_trained(Path("runs/digits"))        a run folder or its weights file
logits = trained.module((pixels / 255 - mean) / std)

As files: design.json says what it is, model.safetensors holds its weights, normalisation.json the mean and deviation of
the channels (in units of the pixel range) that its inputs are normalised by, and the class names. `stored.py` reads
them. A loaded network is in single precision always.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor

from sphynx.data.images import DataFace, Statistics
from sphynx.data.source import DataSource, recorded_source
from sphynx.errors import InputError
from sphynx.network.build import AnyNetwork, build_network
from sphynx.network.stored import NORMALISATION, SCALE, load_normalisation, load_stored, misfit
from sphynx.space.artifact import CARD, CONFIGURATION, DESIGN, MODEL, refuse_untrained
from sphynx.space.files import AnyDesign, design_fingerprint

RESULT = "result.json"
_AUXILIARY = "auxiliary."
_LARGEST_BYTE = 127


@dataclass(frozen=True, eq=False)
class TrainedNetwork:
    """`module` is the torch module, for evaluation, in single precision on the CPU.

    >>> network = sphynx.load_network("runs/digits")
    >>> network.module.training, len(network.mean)
    (False, 1)
    """

    name: str  # a model's; otherwise as the run was given
    module: AnyNetwork
    mean: Statistics  # of each channel, in units of the pixel range; subtracted from pixel / 255
    std: Statistics  # and what that is divided by
    class_names: tuple[str, ...] = ()
    source: DataSource | None = None  # where its data were, if it says so
    is_model: bool = False  # packed, with a card; its program is named after it

    def __repr__(self) -> str:
        """One line, without the module's layers."""
        relus, design = self.design.account.total.relus, self.design
        return f"TrainedNetwork({self.name!r}: {design.image}, {design.classes} classes, {relus:,} ReLUs)"

    @property
    def design(self) -> AnyDesign:
        return self.module.design


def load_trained(path: Path) -> TrainedNetwork:
    refuse_untrained(path)
    mean, std = load_normalisation(path)
    is_model = (path / CARD).is_file()
    name = path.resolve().name if is_model else str(path)
    return TrainedNetwork(name, load_model(path), mean, std, _class_names(path), trained_on(path), is_model)


def _class_names(path: Path) -> tuple[str, ...]:
    """Older files have none."""
    described = json.loads(((path if path.is_dir() else path.parent) / NORMALISATION).read_text())
    return tuple(map(str, described.get("class_names", ())))


def load_model(path: Path) -> AnyNetwork:
    """From a run folder, or from a weights file that has its design.json beside it."""
    stored = load_stored(path)
    network = build_network(stored.design)
    try:
        network.load_state_dict({name: torch.from_numpy(array) for name, array in stored.arrays.items()})
    except RuntimeError as error:
        raise misfit(error, path / MODEL if path.is_dir() else path) from error
    return network.eval()


def trained_on(path: Path) -> DataSource | None:
    """The data, where the run's configuration or result, or the model's card says which they were."""
    folder = path if path.is_dir() else path.parent
    found = (recorded_source(folder / name) for name in (CONFIGURATION, CARD, RESULT))
    return next((source for source in found if source is not None), None)


def save_model(folder: Path, network: AnyNetwork, *, compact: bool = False) -> None:
    """`compact`: kernels as bytes, with a scale for each of their outputs; all vectors stay as they are."""
    weights = {
        name: tensor.detach().cpu().contiguous()
        for name, tensor in network.state_dict().items()
        if not name.startswith(_AUXILIARY)
    }
    if compact:
        _make_compact(weights, folder)
    temporary = folder / (MODEL + ".new")
    try:
        temporary.unlink(missing_ok=True)
        temporary.touch(0o600)  # which some releases of safetensors keep; the others make it so themselves
        save_file(weights, temporary, {"design": design_fingerprint(network.design)})
        temporary.replace(folder / MODEL)
    except (OSError, SafetensorError) as error:  # the latter where the disk is full
        temporary.unlink(missing_ok=True)
        raise InputError(
            f"it cannot be written ({error})",
            where=str(folder / MODEL),
            remedy="Free disk space or make the folder writable, and resume the run.",
        ) from error
    network.design.save(folder / DESIGN)


def _make_compact(weights: dict[str, Tensor], folder: Path) -> None:
    for name, tensor in weights.items():
        if not tensor.isfinite().all():
            raise InputError(
                f"{name} holds numbers that are not finite",
                where=str(folder),
                remedy="Train it again, with a lower learning rate.",
            )
    for name, kernel in [(name, tensor) for name, tensor in weights.items() if tensor.ndim > 1]:
        largest = kernel.flatten(1).abs().amax(1)
        scale = torch.where(largest > 0, largest, 1.0) / _LARGEST_BYTE
        by_output = scale.view(-1, *[1] * (kernel.ndim - 1))
        weights[name] = (kernel / by_output).round().to(torch.int8)
        weights[name + SCALE] = scale


def save_normalisation(folder: Path, data: DataFace) -> None:
    described = {"mean": list(data.mean), "std": list(data.std), "class_names": list(data.train.class_names)}
    (folder / NORMALISATION).write_text(json.dumps(described, indent=2) + "\n")


def count_parameters(network: torch.nn.Module) -> int:
    return sum(p.numel() for name, p in network.named_parameters() if not name.startswith(_AUXILIARY))
