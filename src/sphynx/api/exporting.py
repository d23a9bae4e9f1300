"""Trained networks for other runtimes: `export_network` writes an ONNX file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphynx.network.trained import TrainedNetwork


def export_network(network: TrainedNetwork | str | Path, file: str | Path) -> Path:
    """Write a trained network of Sphynx (a run folder, a model's name, or what `load_network` gave) as ONNX: from
    pixels / 255 [n, channels, height, width], which it normalises itself, to logits [n, classes].

        >>> sphynx.export_network("runs/digits", "digits.onnx")  # doctest: +SKIP
    """
    from sphynx.api.networks import load_network
    from sphynx.compiler.frontend.export.module import read_module
    from sphynx.compiler.frontend.onnx.write import write_onnx
    from sphynx.network.build import as_designed

    trained = load_network(network) if isinstance(network, str | Path) else network
    module = as_designed(trained.module)
    read = read_module(module, module.design.image, name=trained.name if trained.is_model else module.design.name)
    write_onnx(read.graph, Path(file), trained.mean, trained.std)
    return Path(file)
