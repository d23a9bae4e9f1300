"""Operators that are smooth functions of each element: curves, which are approximated when their range is known."""

from __future__ import annotations

from dataclasses import replace

from sphynx.compiler.frontend.operators.operation import CURVED, Operation
from sphynx.compiler.frontend.operators.value import Value
from sphynx.compiler.frontend.operators.walker import Walker, Ways


def smooth(walker: Walker, op: Operation) -> Value:
    function = "silu" if op.kind == "Swish" else op.kind.lower()
    if float(op.attributes.get("alpha", 1)) != 1:
        raise op.refusal(f"has alpha {op.attributes['alpha']:g}", "Only alpha = 1 can be compiled.")
    if op.kind == "Gelu" and bytes(op.attributes.get("approximate", b"none")) == b"tanh":
        function = "gelu_tanh"
    return curve(walker, op, walker.value(op), function)


def curve(walker: Walker, op: Operation, value: Value, function: str) -> Value:
    """A function of each element, by its name in curves.py."""
    value = value if value.order is None else value.settled(walker.fuser, op.name)
    node = walker.fuser.curve(value.node, function, f"{op.name}.activation")
    return replace(value, node=node, unpadded=None)


WAYS: Ways = dict.fromkeys(CURVED, smooth)
