"""`inspect_network` looks at a network without compiling it (`compiler.inspection`). Needs torch.

found = sphynx.inspect_network("mine.onnx", input_shape=(3, 48, 192))
print(found.blockers, found.relus, found.costs)
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from sphynx.compiler.settings import CompileSettings
from sphynx.config import Keywords
from sphynx.errors import InputError
from sphynx.space.artifact import is_foreign

if TYPE_CHECKING:
    from torch import nn

    from sphynx.compiler.inspection import Inspection
    from sphynx.network.trained import TrainedNetwork


@Keywords(CompileSettings).function
def inspect_network(network: TrainedNetwork | nn.Module | str | Path, settings: CompileSettings) -> Inspection:
    """Tell what a network reads and gives, all that keeps it from being compiled, its ReLUs and its private cost.

    Nothing is compiled, and no data are needed: it takes seconds. Of the keywords those count that say how the network
    is read: `input_shape`, `inputs`, `approximate`, `knees`, and `example` for a torch module.

        >>> found = sphynx.inspect_network("runs/digits")
        >>> found.blockers, [cost.backend for cost in found.costs]
        ((), ['gc', 'gc', 'gmw', 'gmw'])
    """
    from sphynx.compiler.frontend.elsewhere import read_exported, read_torch
    from sphynx.compiler.frontend.torch_network import read_trained
    from sphynx.compiler.inspection import inspect_onnx, inspect_read
    from sphynx.network.trained import TrainedNetwork
    from sphynx.space.tally import Shape

    if isinstance(network, str | Path) and is_foreign(network):
        path = Path(network)
        if not path.exists():
            raise InputError("there is no such file", where=str(path), remedy="Check the path.")
        if path.suffix.lower() == ".onnx":
            return inspect_onnx(path, settings)
        return inspect_read(path.stem, partial(read_exported, path, settings), settings)
    if isinstance(network, str | Path):
        from sphynx.api.networks import load_network

        network = load_network(network)
    if isinstance(network, TrainedNetwork):
        return inspect_read(network.name, partial(read_trained, network), settings)
    if settings.example is None:
        raise InputError(
            "a torch module does not tell the shape of its images",
            where=type(network).__name__,
            remedy="Give one, [1, channels, height, width], as `example`.",
        )
    image = Shape(*settings.example.shape[-3:])
    return inspect_read(type(network).__name__, partial(read_torch, network, image, settings), settings)
