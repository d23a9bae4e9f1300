"""Operators that cannot be compiled: one line for each kind, with what to do instead."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

from sphynx.compiler.frontend.operators.operation import NO_BATCH, NORMS, ROUNDING_CAST, SMOOTH, Call, Operation
from sphynx.errors import InputError, join_faults

_CONTROL = "the path through the network must not depend on the input: export a traced network"
_RECURRENT = "recurrent layers cannot be compiled: use convolutions"
_ATTENTION = "write attention as MatMul and Softmax, without masks"
_SMOOTH = "have it approximated, with `approximate=True`, or train the network with ReLU"
_APPROXIMATED = "have it approximated, with `approximate=True`"
_CURVED = "train the network with ReLU, ReLU6 or a leaky ReLU in its place"
_INSIDE = "inside a network it cannot be compiled; at its very end it is taken off, and the client applies it"
_SIZES = "sizes must be known: export with a fixed image size and a batch of 1"
_NORM = "use batch norm, whose statistics are fixed"
_APPROXIMATED_NORM = f"{_APPROXIMATED}, or {_NORM}"
_CHOICE = "choices by value cannot be compiled: write them as ReLU, clamp or a leaky ReLU"
_ROUNDED = "roundings cannot be compiled: train the network without them"
_LISTED = "sphynx compile --operators lists what can be compiled."
OUR_WORDS = {"AdaptiveAveragePool", "Rearrange"}  # which ONNX lacks, for what torch's reader finds
_INSTEAD = {
    **dict.fromkeys(("If", "Loop", "Scan", "SequenceMap"), _CONTROL),
    **dict.fromkeys(("LSTM", "GRU", "RNN"), _RECURRENT),
    **dict.fromkeys(("Attention", "MultiHeadAttention"), _ATTENTION),
    "Einsum": "write it as MatMul, or as Mul and ReduceSum",
    **dict.fromkeys(SMOOTH, _SMOOTH),
    **dict.fromkeys(("Softmax", "Sqrt", "Exp", "Log", "Reciprocal"), _APPROXIMATED),
    **dict.fromkeys(NORMS, _APPROXIMATED_NORM),
    "LogSoftmax": _INSIDE,
    **dict.fromkeys(("Selu", "Celu", "Erf", "Softsign"), _CURVED),
    **dict.fromkeys(("Where", "Greater", "Less", "Equal"), _CHOICE),
    **dict.fromkeys((ROUNDING_CAST, "Floor", "Ceil", "Round"), _ROUNDED),
    NO_BATCH: "give it a map of [n, channels, rows, columns]",
    "Conv over three axes": "only convolutions of one or two axes can be compiled",
    **dict.fromkeys(("NonZero", "TopK", "ScatterND"), _SIZES),
    **dict.fromkeys(("LpNormalization", "LRN"), _NORM),
    **dict.fromkeys(("QuantizeLinear", "DequantizeLinear", "QLinearConv"), "export the network before it is quantised"),
    **dict.fromkeys(("LpPool", "GlobalLpPool"), "use average or max pools"),
}


def refuse_unknown(operations: Iterable[Operation | Call], known: Collection[str], where: str) -> None:
    unknown = [operation for operation in operations if operation.kind not in known]
    if not unknown:
        return
    for hopeless in (_CONTROL, _RECURRENT, _ATTENTION):  # of such a network nothing else need be said
        found = next((operation for operation in unknown if _INSTEAD.get(operation.kind) == hopeless), None)
        if found is not None:
            raise InputError(
                f"{found.kind} cannot be compiled ({found.place})", where=where, remedy=f"{hopeless.capitalize()}."
            )
    counts = Counter(operation.kind for operation in unknown)
    first = {operation.kind: operation for operation in reversed(unknown)}
    lines = [_line(kind, count, first[kind]) for kind, count in counts.items()]
    raise InputError(join_faults(lines), where=where, remedy=_LISTED)


def list_unknown(operations: Iterable[Operation | Call], known: Collection[str], where: str) -> list[InputError]:
    """One refusal for each kind of operator that is not known."""
    unknown = [operation for operation in operations if operation.kind not in known]
    counts = Counter(operation.kind for operation in unknown)
    first = {operation.kind: operation for operation in reversed(unknown)}
    return [
        InputError(
            f"{kind} {_cannot(kind)}",
            where=f"{where}, {_place(count, first[kind])}",
            remedy=_sentence(_INSTEAD[kind]) if kind in _INSTEAD else _LISTED,
        )
        for kind, count in counts.items()
    ]


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _cannot(kind: str) -> str:
    return "cannot be compiled exactly" if kind in SMOOTH else "cannot be compiled"


def _place(count: int, first: Operation | Call) -> str:
    return first.place if count == 1 else f"{count} times, first in {first.place}"


def _line(kind: str, count: int, first: Operation | Call) -> str:
    return f"{kind} {_cannot(kind)} ({_place(count, first)}): {_INSTEAD.get(kind, 'it is not known')}"


def require_one_input(inputs: int, where: str, remedy: str) -> None:
    if inputs != 1:
        raise InputError(f"it has {inputs} inputs, not one", where=where, remedy=remedy)
