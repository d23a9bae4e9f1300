"""New inputs from old ones: bytes flipped, cut, doubled and joined; where an input is JSON, a safetensors file, an ONNX
network or a picture, also values of it replaced, so that what lies behind a parser's first check is reached too."""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Sequence
from typing import Any

from google.protobuf.message import DecodeError
from onnx import ModelProto

from tests.fuzz.mutate_picture import jpeg_changed, png_changed, tiff_changed

MAX_BYTES = 1 << 17
_VALUES: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    1,
    -1,
    2**31,
    2**63,
    2**64,
    -(2**63) - 1,
    10**30,
    0.5,
    -0.0,
    1e308,
    float("nan"),
    float("inf"),
    "",
    "gc",
    "\x1b[2J",
    "\ud800",
    "x" * 300,
    "0" * 32,
    [],
    {},
    [[]],
    [0, 0],
    ["pixels"],
    {"kind": "hello"},
    [1] * 99,
)
_NUMBERS = (0, 1, 0x7F, 0x80, 0xFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 2**63 - 1, 2**64 - 1)


def mutated(corpus: Sequence[bytes], rng: random.Random) -> bytes:
    data = rng.choice(corpus)
    for _ in range(rng.randint(1, 3)):
        data = rng.choice((_bytes_changed, _value_changed, _value_changed))(data, rng.choice(corpus), rng)
    return data[:MAX_BYTES]


def _bytes_changed(data: bytes, other: bytes, rng: random.Random) -> bytes:
    at = rng.randint(0, len(data))
    end = min(len(data), at + rng.choice((1, 1, 2, 4, 8, 64, 1000)))
    middle = rng.choice(
        (
            bytes(byte ^ 1 << rng.randrange(8) for byte in data[at:end]),
            rng.randbytes(end - at),
            b"",
            2 * data[at:end],
            data[at:end] + rng.randbytes(rng.randint(1, 8)),
            rng.choice(_NUMBERS).to_bytes(8, rng.choice(("little", "big"))),
            str(rng.choice(_NUMBERS)).encode(),
        )
    )
    if rng.random() < 0.1:
        return data[:at] + other[rng.randint(0, len(other)) :]
    return data[:at] + middle + data[end:]


def _value_changed(data: bytes, other: bytes, rng: random.Random) -> bytes:
    for change in (png_changed, jpeg_changed, tiff_changed, _json_changed, _header_changed, _onnx_changed):
        try:
            return change(data, other, rng)
        except (ValueError, RecursionError, OverflowError, DecodeError, struct.error):
            continue
    return _bytes_changed(data, other, rng)


def _json_changed(data: bytes, other: bytes, rng: random.Random) -> bytes:
    return json.dumps(_tree_changed(json.loads(data), json.loads(other), rng)).encode()


def _header_changed(data: bytes, _: bytes, rng: random.Random) -> bytes:
    """Change the header of a safetensors file: u64 length, JSON, numbers."""
    size = struct.unpack_from("<Q", data)[0] if len(data) > 8 else 0
    header = json.loads(data[8 : 8 + size])
    text = json.dumps(_tree_changed(header, header, rng)).encode()
    return struct.pack("<Q", len(text)) + text + data[8 + size :]


def _onnx_changed(data: bytes, _: bytes, rng: random.Random) -> bytes:
    model = ModelProto()
    model.ParseFromString(data)
    if not model.graph.node or not model.graph.initializer:
        raise ValueError("it is not a network")
    node, tensor = rng.choice(model.graph.node), rng.choice(model.graph.initializer)
    change = rng.randrange(6)
    if change == 0 and node.attribute:
        attribute = rng.choice(node.attribute)
        number = rng.choice((-1, 0, 1, 2, 3, 7, 2**31, 2**63 - 1, -(2**63)))
        attribute.i, attribute.f = number, float(number)
        if attribute.ints:
            attribute.ints[rng.randrange(len(attribute.ints))] = number
    elif change == 1:
        node.op_type = rng.choice(model.graph.node).op_type
    elif change == 2 and node.input:
        values = [name for each in model.graph.node for name in (*each.input, *each.output)] + [""]
        node.input[rng.randrange(len(node.input))] = rng.choice(values)
    elif change == 3 and len(tensor.dims) > 0:
        tensor.dims[rng.randrange(len(tensor.dims))] = rng.choice((0, 1, 2, 3, 64, 2**31, -1))
    elif change == 4 and len(node.input) > 1:
        del node.input[-1]
    else:
        dims = model.graph.input[0].type.tensor_type.shape.dim
        dims[rng.randrange(len(dims))].dim_value = rng.choice((-1, 0, 1, 2, 5, 9, 4096, 2**40))
    return bytes(model.SerializeToString())


def _tree_changed(tree: Any, donor: Any, rng: random.Random) -> Any:
    holder, key = rng.choice(_places(tree) or [([tree], 0)])
    grafts = _places(donor) or [([donor], 0)]
    change = rng.randrange(5)
    if change == 0:
        holder[key] = rng.choice(_VALUES)
    elif change == 1:
        other, place = rng.choice(grafts)
        holder[key] = json.loads(json.dumps(other[place]))
    elif change == 2:
        del holder[key]
    elif change == 3 and isinstance(holder, list):
        holder.insert(key, holder[key])
    elif change == 3:
        holder[rng.choice(("kind", "name", "format", "", "extra"))] = holder[key]
    else:
        holder[key] = _near(holder[key], rng)
    return tree


def _near(value: Any, rng: random.Random) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return [value]
    if isinstance(value, str):
        return value[: rng.randint(0, len(value))] + rng.choice(("", "0", "/", "\n", "é")) + value
    return rng.choice((value + 1, value - 1, -value, value * 2, value * 65536, str(value)))


def _places(tree: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) in it."""
    found, left = [], [tree]
    while left:
        node = left.pop()
        if isinstance(node, dict | list):
            for key in list(node) if isinstance(node, dict) else range(len(node)):
                found.append((node, key))
                left.append(node[key])
    return found
