"""A program that no frame can carry is refused before the first message: by its name, with what helps."""

import pytest
from tests.program.programs import random_weights, small_program
from tests.service.tiny import wide_program

from sphynx.core.gmw import ReluShape, online_messages
from sphynx.errors import SphynxError
from sphynx.program.backends import BACKENDS, Backend
from sphynx.protocol import relu_gc
from sphynx.protocol.activations import Layer
from sphynx.protocol.bundle import MAX_BATCH
from sphynx.protocol.channel import MAX_PAYLOAD_BYTES, local_pair
from sphynx.protocol.floor import FloorLayer
from sphynx.protocol.gate import GateLayer
from sphynx.protocol.inference_client import InferenceClient
from sphynx.protocol.inference_server import InferenceServer
from sphynx.protocol.linear import ServerModel
from sphynx.protocol.linear_plan import plan_program
from sphynx.protocol.message_sizes import check_messages
from sphynx.protocol.relu_layer import ReluLayer
from sphynx.protocol.square import SquareLayer

PROGRAM = small_program(ring_bits=52)  # of 143 KB a ciphertext


@pytest.mark.parametrize("role", ["client", "server"])
def test_a_batch_that_is_too_large_is_refused_before_anything_is_sent(role: str) -> None:
    channel, _peer = local_pair(timeout_s=0.1)
    program = wide_program()
    party = (
        InferenceClient(program, channel)
        if role == "client"
        else InferenceServer(ServerModel(program, random_weights(program)), channel)
    )
    with pytest.raises(SphynxError, match="one message would have") as refused:
        party.prepare(bytes(16), "gmw", MAX_BATCH)
    assert "fewer images" in refused.value.remedy
    assert channel.record.total().bytes == 0


def layers(count: int) -> list[Layer]:
    return [
        ReluLayer("layer", ReluShape(20, 44, 3, count)),
        SquareLayer("layer", 20, 44, 2, 4, count),
        FloorLayer("layer", 20, 44, 3, count),
        GateLayer("layer", 44, count, 1),
        GateLayer("layer", 44, 1, count),
    ]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("count", [1 << 28, 1 << 31, 1 << 40, 1 << 60])
def test_every_kind_of_layer_is_refused_by_name(backend: Backend, count: int) -> None:
    """Also where there are more OTs than the core counts."""
    plan = plan_program(PROGRAM)
    for small, large in zip(layers(1000), layers(count), strict=True):
        check_messages(plan, {"layer": small}, backend, 1)
        if backend == "gmw" and isinstance(large, ReluLayer) and count == 1 << 28:
            continue  # prepared in several batches
        with pytest.raises(SphynxError, match=r"^layer: with 1 images"):
            check_messages(plan, {"layer": large}, backend, 1)


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_largest_layer_that_is_taken_fills_a_frame(backend: Backend) -> None:
    def request_bytes(count: int) -> int:
        shape = ReluShape(20, 44, 3, count)
        return relu_gc.messages(shape).request if backend == "gc" else online_messages(shape).server_bytes

    least, beyond = 1, 1 << 29
    while beyond - least > 1:
        middle = (least + beyond) // 2
        least, beyond = (middle, beyond) if request_bytes(middle) <= MAX_PAYLOAD_BYTES else (least, middle)
    plan = plan_program(PROGRAM)
    check_messages(plan, {"layer": ReluLayer("layer", ReluShape(20, 44, 3, least))}, backend, 1)
    with pytest.raises(SphynxError):
        check_messages(plan, {"layer": ReluLayer("layer", ReluShape(20, 44, 3, beyond))}, backend, 1)
