"""A torch module, or what torch.export saved of one, as a network that can be walked.

The export is of one image of fixed size. Operators that torch knows to take apart are taken apart where we have no word
for them, unless their parts are just as unknown: then the error names what the user wrote.
"""

from __future__ import annotations

import inspect
import io
import logging
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from copy import deepcopy
from operator import getitem
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch._ops import OpOverload
from torch.export import ExportedProgram, default_decompositions, export
from torch.export.graph_signature import InputKind
from torch.fx import Node
from torch.utils import _pytree as pytree

from sphynx.compiler.frontend.export.archive import DTYPES, Json, invalid_archive, read_archive
from sphynx.compiler.frontend.export.aten import WAYS
from sphynx.compiler.frontend.export.lower import Lowering, elements_of, kept_elements, operator_name
from sphynx.compiler.frontend.export.stored import stored_module, user_inputs
from sphynx.compiler.frontend.operators.graph import LOGITS, assemble
from sphynx.compiler.frontend.operators.network import OperatorNetwork
from sphynx.compiler.frontend.operators.refusals import require_one_input
from sphynx.compiler.frontend.operators.sizes import LARGEST_MAP
from sphynx.errors import InputError
from sphynx.space.tally import Shape

_LOGS = ("torch.fx.experimental", "torch.export", "torch._subclasses")
OPSET = 17  # whose words we use
_ONE_EACH = "Wrap it in a module from one image [n, channels, height, width] to logits [n, classes]."
_FIXED = "Export it with fixed channels, height and width; n must be open or 1."
_CONTROL = "The path through the network must not depend on the input: write it without `if` and loops over values."


def read_module(
    module: nn.Module,
    image: Shape,
    *,
    where: str = "",
    name: str = "",
    approximate: bool = False,
    heads: Sequence[str] = (),
) -> OperatorNetwork:
    """Read a module as it is in evaluation, without changing it. `approximate` allows smooth activations; `heads` are
    the outputs that are wanted, by default all: keys, or positions of what it gives."""
    where = where or type(module).__name__
    if image.size > LARGEST_MAP or min(image) < 1:
        raise InputError(f"{image} is not a valid image shape", where=where, remedy="Give an example of one image.")
    required = [
        each.name
        for each in inspect.signature(module.forward).parameters.values()
        if each.default is each.empty and each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)
    ]
    if len(required) > 1:
        raise InputError(f"it has {len(required)} inputs ({', '.join(required)})", where=where, remedy=_ONE_EACH)
    if any(kept.device.type != "cpu" for kept in module.parameters()):
        module = deepcopy(module).cpu()  # constants are computed on the way, all of them here
    with evaluating(module):
        exported = _export(module, image, where)
        _require_sizes(exported, where)
        program = _functional(exported)
    specs = program.graph_signature
    require_one_input(sum(spec.kind == InputKind.USER_INPUT for spec in specs.input_specs), where, _ONE_EACH)
    low = Lowering(WAYS, where)
    made = dict(zip(_output_names(exported), low.walk(program), strict=True))
    unknown = [head for head in heads if head not in made]
    if unknown or not made:
        raise InputError(
            f"it has no output {unknown[0]}; it has {', '.join(made)}" if unknown else "it has no output",
            where=where,
            remedy="Name its outputs by their keys or positions." if unknown else _ONE_EACH,
        )
    (source,) = program.graph_signature.user_inputs
    graph = assemble(
        low.calls,
        low.constants,
        name=name or type(module).__name__,
        where=where,
        image=image,
        input=str(source),
        outputs={head: made[head] for head in heads or made},
        opset=OPSET,
    )
    return OperatorNetwork(graph, approximate=approximate)


def name_outputs(given: Any) -> dict[str, Any]:
    """Name what a module gives: one tensor by what it usually is, those of a dictionary by their keys, those of a list
    by their positions."""
    leaves = pytree.tree_flatten_with_path(given)[0]
    return {".".join(re.findall(r"\w+", pytree.keystr(path))) or LOGITS: leaf for path, leaf in leaves}


def _output_names(program: ExportedProgram) -> list[str]:
    spec = program.call_spec.out_spec
    assert spec is not None
    return list(name_outputs(pytree.tree_unflatten([0] * spec.num_leaves, spec)))


def load_module(path: Path) -> tuple[nn.Module, Shape]:
    """Load the module of a .pt2 file and the image that it takes. Nothing in the file is run or looked up but its
    operators, which are ATen's."""
    if not path.is_file():
        raise InputError("there is no such file", where=str(path), remedy="Make it with torch.export.save.")
    archive = read_archive(path)
    try:
        inputs = user_inputs(archive.program)
        require_one_input(len(inputs), str(path), _ONE_EACH)
        image = _image(inputs[0], archive.program["graph_module"]["graph"]["tensor_values"], str(path))
        return stored_module(archive, str(path)), image
    except InputError:
        raise
    except Exception as error:  # a graph that is not one fails wherever it is read
        raise invalid_archive(error, path) from None


def _image(given: Json, values: Json, where: str) -> Shape:
    found: Json = values[given["as_tensor"]["name"]] if "as_tensor" in given else {"dtype": 0}
    dtype = DTYPES.get(found["dtype"])
    if dtype is None or not dtype.is_floating_point or len(found["sizes"]) != 4:
        raise InputError("its input is not an image of floating point numbers", where=where, remedy=_ONE_EACH)
    sizes = [size.get("as_int", "open") for size in found["sizes"]]
    batch, *lengths = sizes
    if not all(type(length) is int for length in lengths) or batch not in ("open", 1):
        raise InputError(f"its input is {'x'.join(map(str, sizes))}", where=where, remedy=_FIXED)
    return Shape(*lengths)


@contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """An exported module cannot be switched, and need not be."""
    training = [each for each in module.modules() if each.training]
    for each in training:
        each.training = False
    try:
        yield
    finally:
        for each in training:
            each.training = True


@contextmanager
def _silent() -> Iterator[None]:
    """Silence torch, which prints the graph so far and logs where an export or a file fails: the error that follows
    says it in one line."""
    levels = {log: log.level for log in map(logging.getLogger, _LOGS)}
    for log in levels:
        log.setLevel(logging.ERROR)
    try:
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            yield
    finally:
        for log, level in levels.items():
            log.setLevel(level)


def _export(module: nn.Module, image: Shape, where: str) -> ExportedProgram:
    kept = next(module.parameters(), next(module.buffers(), torch.zeros(())))
    dtype = kept.dtype if kept.dtype.is_floating_point else torch.float32
    example = torch.zeros(1, *image, dtype=dtype)
    try:
        with torch.no_grad(), _silent(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return export(module, (example,), strict=False)
    except Exception as error:  # torch.export fails in as many ways as Python code can be written
        if "data-dependent" in str(error) or "DataDependent" in type(error).__name__:
            raise InputError(
                "its control flow depends on computed values, which are hidden in private inference",
                where=where,
                remedy=_CONTROL,
            ) from error
        fault = (str(error).splitlines() or [type(error).__name__])[0][:300]
        raise InputError(
            f"torch.export fails on it for an image of {image} ({fault})",
            where=where,
            remedy="Check that the module runs on such an image, and that torch.export.export accepts it.",
        ) from error


def _require_sizes(program: ExportedProgram, where: str) -> None:
    """Refuse maps that could not be computed; larger than they may be are only what is made of large weights."""
    most = max(LARGEST_MAP, kept_elements(program))
    for node in program.graph.nodes:
        elements = elements_of(node) if node.op == "call_function" else 0
        if elements is not None and elements > most:
            raise InputError(
                f"{operator_name(node)} makes {elements:,} elements (node {node.name})",
                where=where,
                remedy=f"Use smaller images, or fewer channels: {LARGEST_MAP:,} elements at most.",
            )


def _functional(program: ExportedProgram) -> ExportedProgram:
    """Without changes in place, in operators that we have words for as far as that can be had.

    What is so already stays as it is: torch takes half a second to begin with anything else.
    """
    if _is_functional(program):
        return program
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = program.run_decompositions({})
        unknown = _unknown(program)
        if not unknown:
            return program
        table = {each: way for each, way in dict(default_decompositions()).items() if each in unknown}
        if not table:
            return program
        apart = program.run_decompositions(table)
    return program if _unknown(apart) else apart


def _is_functional(program: ExportedProgram) -> bool:
    """Return whether every operator has a word of ours, and none changes what it is given."""
    return all(
        node.target is getitem
        or (isinstance(node.target, OpOverload) and operator_name(node) in WAYS and not node.target._schema.is_mutable)
        for node in program.graph.nodes
        if node.op == "call_function"
    )


def _unknown(program: ExportedProgram) -> set[object]:
    return {
        node.target
        for node in program.graph.nodes
        if node.op == "call_function"
        and hasattr(node.target, "_schema")
        and operator_name(node) not in WAYS
        and any(isinstance(user, Node) for user in node.users)
    }
