"""The graph of a .pt2 file as a torch module. Operators are those of stored_operators.py; the names of values, layers
and symbols are keys to look up, and never become code."""

from __future__ import annotations

import operator
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch._ops import OpOverload
from torch.fx import Graph, GraphModule, Node

from sphynx.compiler.frontend.export.archive import DTYPES, Archive, Json
from sphynx.compiler.frontend.export.lower import plain_path
from sphynx.compiler.frontend.export.stored_operators import Target, target_of
from sphynx.compiler.frontend.operators.operation import Call
from sphynx.compiler.frontend.operators.refusals import refuse_unknown

_MEMORY_FORMATS = {
    1: torch.contiguous_format,
    2: torch.channels_last,
    3: torch.channels_last_3d,
    4: torch.preserve_format,
}
_STRIDED = 7
_HIGHER = "torch.ops.higher_order."
_GRADIENTS_OFF = f"{_HIGHER}wrap_with_set_grad_enabled"  # around the parts of a network that take none
_CONTROL = {f"{_HIGHER}cond": "If", f"{_HIGHER}while_loop": "Loop", f"{_HIGHER}scan": "Scan", f"{_HIGHER}map": "Loop"}
_LAYER = re.compile(r"\w+(\.\w+)*")
_FLOATS = {"Infinity": float("inf"), "-Infinity": float("-inf"), "NaN": float("nan")}
# Where a graph's inputs come from that are not images: the key of the tensor's name.
_KEPT = {"parameter": "parameter_name", "buffer": "buffer_name", "tensor_constant": "tensor_constant_name"}
_PLAIN = {"as_int": int, "as_bool": bool, "as_string": str}


def stored_module(archive: Archive, where: str) -> GraphModule:
    """Build a module of what the file computes: of one input, one output or a tuple of them."""
    program = archive.program["graph_module"]
    refuse_unknown(_unknown_calls(program["graph"]), (), where)
    builder = _Builder(archive.tensors)
    builder.open(program["signature"]["input_specs"])
    builder.add(program["graph"]["nodes"])
    outputs = tuple(builder.argument(output) for output in user_outputs(archive.program))
    builder.graph.output(outputs if len(outputs) > 1 else outputs[0])
    builder.graph.eliminate_dead_code()  # so that nothing runs whose size the export does not see
    return GraphModule(builder.root, builder.graph)


def user_inputs(program: Json) -> list[Json]:
    """List what the network's users give it, as the format writes arguments."""
    specs = program["graph_module"]["signature"]["input_specs"]
    return [spec.get("user_input", {}).get("arg", {}) for spec in specs if {"user_input", "constant_input"} & {*spec}]


def user_outputs(program: Json) -> list[Json]:
    specs = program["graph_module"]["signature"]["output_specs"]
    return [spec["user_output"]["arg"] for spec in specs if "user_output" in spec]


def _unknown_calls(graph: Json) -> Iterator[Call]:
    """Calls that a file may not make, in ONNX's words where there are any."""
    for node in graph["nodes"]:
        target = str(node["target"])
        if target == _GRADIENTS_OFF:
            yield from _unknown_calls(_inner_graph(node))
        elif target_of(target) is None:
            name = target.removeprefix("torch.ops.")
            name = name.rsplit(".", 1)[0] if name.startswith("aten.") else name  # without its overload
            shown, layer = ascii(name)[1:-1][:80], _layer(node)
            place = f"node {shown.rsplit('.', 1)[-1]}"
            yield Call(_CONTROL.get(target, shown), layer, f"{layer}, {place}" if layer else place, (), ())


def _inner_graph(node: Json) -> Json:
    found: Json = node["inputs"][1]["arg"]["as_graph"]["graph"]
    return found


def _layer(node: Json) -> str:
    """The path of the layer that a node belongs to, layer1.0.conv1; empty where it is not a plain one."""
    stack = str(node.get("metadata", {}).get("nn_module_stack", ""))
    path = plain_path("".join(stack.rsplit(";", 1)[-1].split(",")[1:2]))
    return path if _LAYER.fullmatch(path) else ""


class _Builder:
    """Values are nodes of an fx graph, by the file's names for them."""

    def __init__(self, tensors: Mapping[str, Tensor]) -> None:
        self.root, self.graph = nn.Module(), Graph()
        self._tensors = tensors
        self._values: dict[str, Node] = {}

    def open(self, specs: Sequence[Json]) -> None:
        for spec in specs:
            ((kind, given),) = spec.items()
            if kind == "user_input":
                self._values[given["arg"]["as_tensor"]["name"]] = self.graph.placeholder("image")
            elif kind in _KEPT:
                self._values[given["arg"]["name"]] = self._keep(self._tensors[given[_KEPT[kind]]], kind)
            else:
                raise ValueError(f"its input is a {kind}")

    def _keep(self, tensor: Tensor, kind: str) -> Node:
        name = f"tensor{len(self._values)}"
        if kind == "parameter" and tensor.dtype.is_floating_point:
            self.root.register_parameter(name, nn.Parameter(tensor, requires_grad=False))
        else:
            self.root.register_buffer(name, tensor)
        return self.graph.get_attr(name)

    def add(self, nodes: Sequence[Json]) -> None:
        for node in nodes:
            if node["target"] == _GRADIENTS_OFF:
                self._inline(node)
                continue
            target = target_of(node["target"])
            assert target is not None  # or it would have been refused
            args, kwargs = self._arguments(target, node["inputs"])
            made = self.graph.call_function(target, args, kwargs)
            layer = _layer(node)
            made.meta["nn_module_stack"] = {"": ("", "Module"), **({layer: (layer, "Module")} if layer else {})}
            self._name(node["outputs"], made)

    def _inline(self, node: Json) -> None:
        inner, given = _inner_graph(node), [each["arg"] for each in node["inputs"][2:]]
        outside = dict(self._values)
        arguments = [self.argument(each) for each in given]
        self._values = dict(zip(_names(inner["inputs"]), arguments, strict=True))
        self.add(inner["nodes"])
        made = [self.argument(each) for each in inner["outputs"]]
        self._values = {**outside, **dict(zip(_names(node["outputs"]), made, strict=True))}

    def _name(self, outputs: Sequence[Json], made: Node) -> None:
        """One value, or the parts of several."""
        if len(outputs) == 1 and "as_tensors" not in outputs[0]:
            self._values.update(dict.fromkeys(_names(outputs), made))
            return
        for number, name in enumerate(_names(outputs)):
            if name:
                self._values[name] = self.graph.call_function(operator.getitem, (made, number))
                self._values[name].meta["nn_module_stack"] = made.meta["nn_module_stack"]

    def _arguments(self, target: Target, inputs: Sequence[Json]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        given = {str(each["name"]): self.argument(each["arg"]) for each in inputs}
        if not isinstance(target, OpOverload):
            return tuple(given.values()), {}
        wanted = target._schema.arguments
        if not given.keys() <= {each.name for each in wanted}:
            raise ValueError(f"{target} has no arguments {sorted(given)!a}")
        bound = {each.name: given.get(each.name, each.default_value) for each in wanted}
        kwargs = {each.name: bound.pop(each.name) for each in wanted if each.kwarg_only}
        return tuple(bound.values()), kwargs

    def argument(self, given: Json) -> Any:
        """One of the format's kinds of arguments, as ATen takes it."""
        ((kind, value),) = given.items()
        if kind == "as_none":
            return None
        if kind in ("as_tensor", "as_optional_tensor", "as_sym_int", "as_sym_float", "as_sym_bool"):
            return self._value_named(value)
        if kind in ("as_tensors", "as_optional_tensors", "as_sym_ints", "as_sym_floats", "as_sym_bools"):
            return [self._value_named(each) for each in value]
        if kind in ("as_ints", "as_bools", "as_floats"):
            return [self.argument({kind[:-1]: each}) for each in value]
        if kind == "as_float":
            return _FLOATS[value] if isinstance(value, str) else float(value)
        if kind in _PLAIN and type(value) is _PLAIN[kind]:
            return value
        if kind == "as_scalar_type":
            return DTYPES[value]
        if kind == "as_memory_format":
            return _MEMORY_FORMATS[value]
        if kind == "as_device":
            return torch.device("cpu")  # whichever it was made on
        if kind == "as_layout" and value == _STRIDED:
            return torch.strided
        raise ValueError(f"it has an argument of kind {ascii(kind)[:80]}")

    def _value_named(self, given: Json) -> Any:
        """A value by its name, or a number in its place."""
        if "name" in given:
            return self._values[given["name"]]
        ((kind, value),) = given.items()
        return self._values[value] if kind == "as_name" else self.argument(given)


def _names(arguments: Sequence[Json]) -> list[str]:
    """Names of the values that these stand for, in their order; empty where there is none."""
    found = []
    for argument in arguments:
        ((_, value),) = argument.items()
        for each in value if isinstance(value, list) else [value]:
            found.append(str(each.get("name", each.get("as_name", ""))) if isinstance(each, dict) else "")
    return found
