"""Networks from elsewhere as graphs that can be trained: made of what was read, and walked again to be compiled."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from sphynx.compiler.frontend.activation import walk_activation
from sphynx.compiler.frontend.numbers import norm_of
from sphynx.compiler.frontend.torch_layers import TorchNumbers, array_of
from sphynx.compiler.fusion.affine import Node, Window
from sphynx.compiler.fusion.fuse import Fused, Fuser
from sphynx.compiler.fusion.select import negated, select
from sphynx.errors import InputError
from sphynx.network.graph import GraphNetwork, Sum
from sphynx.program.folder import inside_groups
from sphynx.program.ir import Combine, Linear, Pool, Relu, Step
from sphynx.space.graph import INPUT, GraphDesign, GraphStep, GraphTerm
from sphynx.space.tally import Shape


def network_of(fused: Fused, name: str) -> GraphNetwork:
    """A network that computes what the graph does; `GraphNetwork.settle` then gives its norms their statistics.

    The graph reads normalised images: it was traced with a mean of 0 and a deviation of 1/255."""
    graph = fused.graph
    if len(graph.outputs) != 1 or graph.outputs[0].source != graph.steps[-1].name:
        raise InputError("it has several outputs", where=name, remedy="Reduce a network with the logits as its output.")
    steps = tuple(_described(step, fused, graph.shapes) for step in graph.steps)
    network = GraphNetwork(GraphDesign(graph.image, graph.output_size, steps, name))
    weights, biases, sums = iter(network.weights), iter(network.biases), iter(network.sums)
    with torch.no_grad():
        for step, described in zip(graph.steps, steps, strict=True):
            if isinstance(step, Linear):
                for at, term in enumerate(step.terms):
                    next(weights).copy_(
                        torch.from_numpy(inside_groups(fused.weights[step.weight_name(at)], term.groups))
                    )
                bias = fused.weights[step.bias_name]
                next(biases).copy_(torch.from_numpy(bias[:, :1, :1] if described.bias[1:] == (1, 1) else bias))
            elif isinstance(step, Combine):
                made = next(sums)
                if step.constants:
                    constants = torch.from_numpy(fused.weights[step.constants_name])
                    made.get_buffer("constants").copy_(constants[:, None, None])
    return network.eval()


def _described(step: Step, fused: Fused, shapes: dict[str, Shape]) -> GraphStep:
    shape = shapes[step.name]
    if isinstance(step, Linear):
        terms = []
        for number, term in enumerate(step.terms):
            kernel = inside_groups(fused.weights[step.weight_name(number)], term.groups).shape
            geometry = (term.stride, term.dilation, term.pad_top, term.pad_left, term.groups)
            terms.append(GraphTerm(term.source, kernel, *geometry))
        bias = fused.weights[step.bias_name]
        is_even = bool((bias == bias[:, :1, :1]).all())
        return GraphStep(step.name, "linear", shape, tuple(terms), (len(bias), 1, 1) if is_even else bias.shape)
    if isinstance(step, Combine):
        factors = fused.weights[step.factors_name].tolist() if step.factors else [1.0] * len(step.summands)
        summands = tuple(
            GraphTerm(
                own.source,
                channels=own.channels,
                rows=own.rows,
                columns=own.columns,
                factor=-factor if own.negative else factor,
            )
            for own, factor in zip(step.summands, factors, strict=True)
        )
        return GraphStep(step.name, "sum", shape, summands, (shape.channels, 1, 1) if step.constants else ())
    if isinstance(step, Pool):
        windows = (step.row_windows, step.row_factors, step.column_windows, step.column_factors)
        return GraphStep(step.name, "pool", shape, (GraphTerm(step.source),), (), *windows)
    if isinstance(step, Relu):
        return GraphStep(step.name, "comparison" if step.comparison else "relu", shape, (GraphTerm(step.source),))
    raise InputError(
        f"a {type(step).__name__.lower()} cannot be trained again",
        where=step.name,
        remedy="Reduce a network of convolutions, linear layers, pools, sums and ReLUs alone.",
    )


def walk_graph(fuser: Fuser, numbers: TorchNumbers, network: GraphNetwork) -> Node:
    """Return the node of the logits."""
    nodes = {INPUT: fuser.input}
    weights, biases, sums = iter(network.weights), iter(network.biases), iter(network.sums)
    rectified = 0
    for step in network.design.steps:
        source = nodes[step.terms[0].source]
        if step.kind == "linear":
            kernels = [array_of(next(weights)) for _ in step.terms]
            parts = [
                fuser.convolve(nodes[term.source], kernel, _window(step, term), term.groups)
                for term, kernel in zip(step.terms, kernels, strict=True)
            ]
            made = fuser.shift(_sum(parts), array_of(next(biases)))
        elif step.kind == "sum":
            made = _sum(
                [_taken(fuser, nodes[term.source], term, f"{step.name}.{n}") for n, term in enumerate(step.terms)]
            )
            own = next(sums)
            assert isinstance(own, Sum)
            if own.constants is not None:
                made = fuser.shift(made, array_of(own.constants))
        elif step.kind == "pool":
            name = fuser.named(source, f"{step.name}.source")
            windows = (step.row_windows, step.row_factors, step.column_windows, step.column_factors)
            made = fuser.activate(Pool(step.name, name, *windows))
        elif step.kind == "comparison":
            made = fuser.activate(Relu(step.name, fuser.compared(source, f"{step.name}.difference"), comparison=True))
        else:
            normed = fuser.scale(source, *norm_of(numbers, f"norms.{rectified}"))
            made = walk_activation(fuser, numbers, f"relus.{rectified}", normed, step.name)
            rectified += 1
        nodes[step.name] = made
    return made


def _sum(nodes: Sequence[Node]) -> Node:
    return sum(nodes[1:], nodes[0])


def _window(step: GraphStep, term: GraphTerm) -> Window:
    _, _, rows, columns = term.kernel
    return Window(rows, columns, *step.shape[1:], term.stride, term.dilation, term.top, term.left)


def _taken(fuser: Fuser, node: Node, term: GraphTerm, name: str) -> Node:
    indices = (index or None for index in (term.channels, term.rows, term.columns))
    taken = select(fuser, node, name, *indices)
    if abs(term.factor) != 1:
        channels = taken.shape.channels
        taken = fuser.scale(taken, np.full(channels, abs(term.factor)), np.zeros(channels))
    return negated(fuser, taken) if term.factor < 0 else taken
