"""Check that all messages of a preparation fit a frame: before the first of them, not after minutes of work.

Those of an inference are smaller, but for large layers of GMW, and those of silent OT are smaller than SoftSpoken's.
Both parties ask, with the same answer: sizes follow from the public program.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from sphynx.core.gmw import online_messages
from sphynx.errors import SphynxError
from sphynx.program.backends import Backend
from sphynx.program.extensions import SOFTSPOKEN
from sphynx.protocol import relu_gc
from sphynx.protocol.activations import Layer, Layers
from sphynx.protocol.channel import MAX_PAYLOAD_BYTES
from sphynx.protocol.gate import GateLayer
from sphynx.protocol.gmw_cuts import largest_cut
from sphynx.protocol.gmw_material import offline_messages
from sphynx.protocol.linear_plan import ProgramPlan
from sphynx.protocol.relu_layer import ReluLayer

_LEAST_BYTES = 8  # of a request, for each element or gate: two OTs at least


def check_messages(
    plan: ProgramPlan, layers: Layers, backend: Backend, images: int, more: Iterable[tuple[str, int]] = ()
) -> None:
    """Refuses by its name the tensor, map or layer that one message cannot hold; `more` are sizes by name."""
    for name, size in chain(_sizes(plan, layers, backend, images), more):
        if size > MAX_PAYLOAD_BYTES:
            raise SphynxError(
                f"with {images:,} images at a time one message would have {size:,} bytes or more, "
                f"and no message may have more than {MAX_PAYLOAD_BYTES:,}",
                where=name,
                remedy="Ask about fewer images at a time, or compile the network for smaller images.",
            )


def _sizes(plan: ProgramPlan, layers: Layers, backend: Backend, images: int) -> Iterator[tuple[str, int]]:
    for upload in plan.distinct_uploads:
        yield upload.tensor, plan.upload_bytes(upload, plan.whole(images))
    for name in plan.convs:
        yield name, plan.reply_bytes(name, plan.whole(images))
    for name, layer in layers.items():
        yield name, _LEAST_BYTES * _count_choices(layer)  # first: beyond it there are more OTs than the core counts
        yield name, _largest(layer, backend)


def _count_choices(layer: Layer) -> int:
    """Elements or gates whose bits are choices in OTs."""
    if isinstance(layer, ReluLayer):
        return layer.shape.count
    return layer.gates if isinstance(layer, GateLayer) else layer.count


def _largest(layer: Layer, backend: Backend) -> int:
    if not isinstance(layer, ReluLayer):
        sizes_of = ((plan.request_bytes(SOFTSPOKEN), plan.answer_bytes(SOFTSPOKEN)) for _, plan in layer.parts)
        return max(size for both in sizes_of for size in both)
    if backend == "gc":
        return relu_gc.messages(layer.shape).request  # tables come in chunks
    sizes = offline_messages(largest_cut(layer.shape))
    online = online_messages(layer.shape).server_bytes  # in several messages; those of large layers are not cut
    return max(sizes.request, sizes.answer, sizes.conversion, sizes.corrections, online)
