"""Weights of an ONNX file that lie in other files: taken from below its own folder, and from nowhere else. No torch.

Newer versions of the package onnx refuse others too; this holds whichever is installed, before anything is read.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from sphynx.compiler.frontend.operators.sizes import TIMES_GIVEN
from sphynx.errors import InputError

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto, TensorProto

_KEYS = {"location", "offset", "length", "checksum", "basepath"}
_REMEDY = "Keep the files of a network in one folder, or save it as one: onnx.save(onnx.load(path), path)."


def load_external(model: ModelProto, path: Path) -> None:
    """Fill in the weights that lie beside the file at `path`."""
    from onnx import external_data_helper

    wanted_bytes, sizes = 0, {}
    for tensor in _tensors(model):
        if not external_data_helper.uses_external_data(tensor):
            continue
        entries = {entry.key: entry.value for entry in tensor.external_data}
        location = entries.get("location", "")
        size = sizes[location] = _size_below(path.parent, location, path)
        offset = int(entries.get("offset", 0))
        length = int(entries.get("length", size - offset))
        if not entries.keys() <= _KEYS or offset < 0 or length < 0 or offset + length > size:
            raise InputError(f"it has weights beyond the end of {location}", where=str(path), remedy=_REMEDY)
        wanted_bytes += length
    if wanted_bytes > TIMES_GIVEN * sum(sizes.values()):
        raise InputError("it has more weights than its files hold", where=str(path), remedy=_REMEDY)
    external_data_helper.load_external_data_for_model(model, str(path.parent))


def _size_below(folder: Path, location: str, path: Path) -> int:
    """Measure a plain file that is reached without a link."""
    parts = Path(location).parts
    try:
        whole = Path(os.path.realpath(folder)) / location
        if not parts or Path(location).is_absolute() or ".." in parts or Path(os.path.realpath(whole)) != whole:
            raise OSError
        found = whole.lstat()
        if not stat.S_ISREG(found.st_mode):
            raise OSError
    except (OSError, ValueError):
        raise InputError(
            f"its weights are said to be in {location!a}, which is not a file below its own folder",
            where=str(path),
            remedy=_REMEDY,
        ) from None
    return found.st_size


def _tensors(model: ModelProto) -> Iterator[TensorProto]:
    yield from _of_graph(model.graph)
    for function in model.functions:
        yield from _of_nodes(function.node)


def _of_graph(graph: GraphProto) -> Iterator[TensorProto]:
    yield from graph.initializer
    for sparse in graph.sparse_initializer:
        yield from (sparse.values, sparse.indices)
    yield from _of_nodes(graph.node)


def _of_nodes(nodes: Iterable[NodeProto]) -> Iterator[TensorProto]:
    for node in nodes:
        for attribute in node.attribute:
            yield from (attribute.t, *attribute.tensors)
            for sparse in (attribute.sparse_tensor, *attribute.sparse_tensors):
                yield from (sparse.values, sparse.indices)
            for graph in (attribute.g, *attribute.graphs):
                if graph.node or graph.initializer or graph.sparse_initializer:
                    yield from _of_graph(graph)
