"""Lowers an exported ATen graph to operators: what reads constants alone is computed by torch, the rest is named.

Every shape is known, since the export is of one image. What only moves elements needs no rule of its own: torch itself
moves the numbers of the elements (operators/moves.py, `rearrange`).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind
from torch.fx import Node
from torch.fx.node import map_arg

from sphynx.compiler.frontend.operators.operation import Call
from sphynx.compiler.frontend.operators.sizes import CHECK_SIZES, Allowance
from sphynx.errors import InputError
from sphynx.program.convolve import Array

# A map's name, or the names of several; what it reads is bound to the names that ATen gives its arguments.
Way = Callable[["Lowering", Node, Mapping[str, Any]], str | tuple[str, ...]]
Moved = Callable[[Array], list[Array]]

# They read a map's shape alone.
_OF_SHAPE = {"zeros_like", "ones_like", "full_like", "new_zeros", "new_ones", "new_full", "sym_size"}


class Lowering:
    def __init__(self, ways: Mapping[str, Way], where: str) -> None:
        self.calls: list[Call] = []
        self.constants: dict[str, Array] = {}
        self._ways, self._where = ways, where
        self._allowance = Allowance(0)
        self._known: dict[Node, Any] = {}  # what does not depend on the image
        self._names: dict[Node, tuple[str, ...]] = {}  # of what does

    def walk(self, program: ExportedProgram) -> list[str]:
        """Lowers every node; gives the names of what a user gets."""
        self._allowance = Allowance(kept_elements(program))
        specs = {spec.arg.name: spec for spec in program.graph_signature.input_specs}
        outputs: list[str] = []
        count = sum(spec.kind == OutputKind.USER_OUTPUT for spec in program.graph_signature.output_specs)
        for node in program.graph.nodes:
            if node.op == "placeholder":
                spec = specs[node.name]
                if spec.kind == InputKind.USER_INPUT:
                    self._names[node] = (node.name,)
                else:
                    kept = {**program.state_dict, **program.constants}
                    self._known[node] = kept[str(spec.target)]
            elif node.op == "get_attr":  # the branches of control flow, which is refused
                self._known[node] = None
            elif node.op == "output":
                outputs = [self.use(node, given) for given in node.args[0][-count:]]
            else:
                self._lower(node)
        return outputs

    def _lower(self, node: Node) -> None:
        name = operator_name(node)
        if not any(read in self._names for read in node.all_input_nodes):
            self._require_room(node)
            self._known[node] = self._compute(node, lambda read: self._known[read])
        elif name in _OF_SHAPE:
            self._require_room(node)
            self._known[node] = self._compute(node, lambda read: self._known.get(read, _empty(read)))
        elif node.target is operator.getitem:
            source, index = node.args
            assert isinstance(source, Node) and isinstance(index, int)
            self._names[node] = (self._names[source][index],)
        else:
            made = self._ways.get(name, _unknown)(self, node, arguments(node))
            self._names[node] = (made,) if isinstance(made, str) else made

    def _require_room(self, node: Node) -> None:
        """Refuse constants that would fill the memory, by the sizes that the export found."""
        elements = elements_of(node)
        if elements is None or not self._allowance.take(elements):
            many = "an unknown number of" if elements is None else f"{elements:,}"
            raise InputError(
                f"{operator_name(node)} makes a constant of {many} elements (node {node.name})",
                where=self._where,
                remedy=CHECK_SIZES,
            )

    def _compute(self, node: Node, value_of: Callable[[Node], Any]) -> Any:
        assert callable(node.target)
        with torch.no_grad():
            return node.target(*map_arg(node.args, value_of), **map_arg(node.kwargs, value_of))

    def is_map(self, given: Any) -> bool:
        return isinstance(given, Node) and given in self._names

    def use(self, node: Node, given: Any) -> str:
        """The name of what a node reads: a map, a constant, or nothing where an optional one is left out."""
        if given is None:
            return ""
        if isinstance(given, Node) and given in self._names:
            return self._names[given][0]
        value = self._known[given] if isinstance(given, Node) else given
        name = f"{node.name}.constant{len(self.constants)}"
        self.constants[name] = _array(value) if isinstance(value, Tensor) else np.asarray(value)
        return name

    def call(self, node: Node, kind: str, *inputs: str, outputs: int = 1, **attributes: Any) -> str:
        """The name of what it makes; of several outputs number k is that name and `.k`."""
        path = module_path(node)
        name = f"{node.name}.{len(self.calls)}"
        made = (name, *(f"{name}.{number}" for number in range(1, outputs)))
        place = f"{path}, node {node.name}" if path else f"node {node.name}"
        self.calls.append(Call(kind, path or node.name, place, inputs, made, attributes))
        return name

    def move(self, node: Node, source: Node) -> tuple[str, ...]:
        """A node that only moves the elements of one map, as torch moves them."""

        def moved(numbers: Array) -> list[Array]:
            # Of floats, since reflections and resizes know no others; whole, as views want it.
            given = torch.from_numpy(np.ascontiguousarray(numbers, np.float64))
            made = self._compute(node, lambda read: given if read is source else self._known[read])
            return [array.numpy().astype(np.int64) for array in ([made] if isinstance(made, Tensor) else made)]

        value = node.meta["val"]
        parts = [value] if isinstance(value, Tensor) else value
        keeps_all = sum(part.numel() for part in parts) == source.meta["val"].numel()
        return self.rearrange(node, source, moved, len(parts), keeps_all=keeps_all)

    def rearrange(
        self, node: Node, source: Node, moved: Moved, count: int = 1, *, keeps_all: bool = False
    ) -> tuple[str, ...]:
        """`moved` gives the numbers of elements for each of `count` outputs."""
        shape = tuple(int(n) for n in source.meta["val"].shape)
        name = self.call(
            node, "Rearrange", self._names[source][0], outputs=count, moved=moved, keeps_all=keeps_all, shape=shape
        )
        return (name, *(f"{name}.{number}" for number in range(1, count)))


def kept_elements(program: ExportedProgram) -> int:
    """Count the elements of all weights, buffers and constants."""
    kept = (*program.state_dict.values(), *program.constants.values())
    return sum(each.numel() for each in kept if isinstance(each, Tensor))


def elements_of(node: Node) -> int | None:
    """Count what a node makes; None where only the run would tell."""
    value = node.meta.get("val")
    parts = value if isinstance(value, tuple | list) else [value]
    if any(isinstance(part, Tensor) and type(part.numel()) is not int for part in parts):
        return None
    return sum(int(part.numel()) for part in parts if isinstance(part, Tensor))


def arguments(node: Node) -> dict[str, Any]:
    """Bind a node's arguments to the names that ATen gives them, with defaults."""
    schema = getattr(node.target, "_schema", None)
    if schema is None:
        return {}
    bound = {each.name: each.default_value for each in schema.arguments if each.has_default_value()}
    bound.update(zip((each.name for each in schema.arguments), node.args, strict=False))
    return {**bound, **node.kwargs}


def operator_name(node: Node) -> str:
    """Without its overload: conv2d; a name space other than ATen's stays."""
    schema = getattr(node.target, "_schema", None)
    if schema is not None:
        return str(schema.name).removeprefix("aten::")
    return str(getattr(node.target, "__name__", node.target))


def module_path(node: Node) -> str:
    """The path of the module that the node belongs to: layer1.0.conv1."""
    stack = node.meta.get("nn_module_stack") or {}
    return plain_path(str(list(stack.values())[-1][0]) if stack else "")


def plain_path(path: str) -> str:
    """A module's path as its user would write it."""
    return path.removeprefix("L['self']").lstrip(".").replace("._modules['", ".").replace("']", "")


def _unknown(low: Lowering, node: Node, _: Mapping[str, Any]) -> tuple[str, ...]:
    """Named as ATen names it; whether the output needs it is seen later."""
    inputs = [low.use(node, read) for read in node.all_input_nodes if low.is_map(read)]
    count = len(node.meta["val"]) if isinstance(node.meta.get("val"), tuple | list) else 1
    name = low.call(node, f"aten.{operator_name(node)}", *inputs, outputs=count)
    return (name, *(f"{name}.{number}" for number in range(1, count)))


def _empty(read: Node) -> Tensor:
    value: Tensor = read.meta["val"]
    return torch.zeros(tuple(value.shape), dtype=value.dtype)


def _array(value: Tensor) -> Array:
    found = value.detach().cpu()
    if found.dtype in (torch.bfloat16, torch.float16):
        found = found.float()
    return np.asarray(found.numpy())
