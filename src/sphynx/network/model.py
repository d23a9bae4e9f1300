"""A trained network as files: design.json says what it is, model.safetensors holds its weights, normalisation.json the
mean and deviation of the channels (in units of the pixel range) that its inputs are normalised by, and the class names.

`stored.py` reads them. A loaded network is in single precision always.
"""

from __future__ import annotations

import json
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from sphynx.data.images import DataFace
from sphynx.data.source import DataSource, recorded_source
from sphynx.errors import InputError
from sphynx.network.build import AnyNetwork, build_network
from sphynx.network.stored import NORMALISATION, SCALE, load_stored, misfit
from sphynx.space.artifact import CARD, CONFIGURATION, DESIGN, MODEL
from sphynx.space.files import design_fingerprint

RESULT = "result.json"
_AUXILIARY = "auxiliary."
_LARGEST_BYTE = 127


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
    save_file(weights, temporary, {"design": design_fingerprint(network.design)})
    temporary.replace(folder / MODEL)
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


def load_model(path: Path) -> AnyNetwork:
    """From a run folder, or from a weights file that has its design.json beside it."""
    stored = load_stored(path)
    network = build_network(stored.design)
    try:
        network.load_state_dict({name: torch.from_numpy(array) for name, array in stored.arrays.items()})
    except RuntimeError as error:
        raise misfit(error, path / MODEL if path.is_dir() else path) from error
    return network.eval()


def save_normalisation(folder: Path, data: DataFace) -> None:
    described = {"mean": list(data.mean), "std": list(data.std), "class_names": list(data.train.class_names)}
    (folder / NORMALISATION).write_text(json.dumps(described, indent=2) + "\n")


def trained_on(path: Path) -> DataSource | None:
    """The data, where the run's configuration or result, or the model's card says which they were."""
    folder = path if path.is_dir() else path.parent
    found = (recorded_source(folder / name) for name in (CONFIGURATION, CARD, RESULT))
    return next((source for source in found if source is not None), None)


def count_parameters(network: torch.nn.Module) -> int:
    return sum(p.numel() for name, p in network.named_parameters() if not name.startswith(_AUXILIARY))
