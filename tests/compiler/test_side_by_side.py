"""Calls side by side leave the process's threads as they were, however blocks overlap, and fit the memory."""

import tracemalloc
from threading import Thread

import numpy as np
import pytest
import torch
from threadpoolctl import ThreadpoolController
from torch import Tensor, nn

from sphynx.compiler.frontend.readable import torch_judge
from sphynx.compiler.frontend.torch_network import walk_of
from sphynx.compiler.measure import _BatchRun, call_bytes
from sphynx.compiler.side_by_side import calls_at_once, side_by_side
from sphynx.program.interpret import images_at_once
from sphynx.space.reference import ResNet18Design
from sphynx.space.stream import Stage, StreamDesign
from sphynx.space.tally import Shape
from sphynx.threads import available_cores
from tests.compiler.networks import random_network
from tests.torch_threads import torch_threads


def blas_threads() -> list[int]:
    return [library["num_threads"] for library in ThreadpoolController().select(user_api="blas").info()]


def torch_threads_elsewhere() -> int:
    """The number of torch threads in a thread that begins now."""
    found: list[int] = []
    thread = Thread(target=lambda: found.append(torch.get_num_threads()))
    thread.start()
    thread.join()
    return found[0]


def test_blocks_that_overlap_set_the_threads_of_blas_back() -> None:
    with ThreadpoolController().limit(limits=2, user_api="blas"):
        before = blas_threads()
        first, second = side_by_side(), side_by_side()
        first.__enter__()
        mapped = second.__enter__()
        first.__exit__(None, None, None)
        assert set(blas_threads()) <= {1}
        assert list(mapped(pow, range(9), range(9))) == [n**n for n in range(9)]
        second.__exit__(None, None, None)
        assert blas_threads() == before


class Asks(nn.Module):
    """Keeps its image, and says how many threads torch has where it is called, and in the process."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[tuple[int, int, bool]] = set()

    def forward(self, x: Tensor) -> Tensor:
        self.kept = x
        here = torch.get_num_threads(), torch_threads_elsewhere()
        self.seen.add((*here, self.kept is x))
        return x.flatten(1)


@pytest.mark.parametrize("is_ours", [False, True])
def test_only_networks_of_ours_are_called_side_by_side(*, is_ours: bool) -> None:
    module = Asks()
    images = np.random.default_rng(0).integers(0, 256, (120, 1, 4, 4), np.uint8)
    with torch_threads(3):
        answers = torch_judge(module, is_ours=is_ours).answer(images, (0.0,), (1.0,))
        assert (torch.get_num_threads(), torch_threads_elsewhere()) == (3, 3)
    np.testing.assert_allclose(answers, images.reshape(120, -1) / 255, rtol=1e-6)
    if is_ours:
        assert {seen[:2] for seen in module.seen} == {(1, 3)}
    else:
        assert module.seen == {(3, 3, True)}


@pytest.mark.parametrize(
    ("limit", "wanted"), [("", None), ("0", None), ("many", None), ("1", 1), ("1,4", 1), ("999999", None)]
)
def test_users_limit_calls_as_they_limit_a_process(
    limit: str, wanted: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", limit)
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    assert calls_at_once() == (wanted or available_cores())
    assert calls_at_once(1 << 60) == 1


@pytest.mark.parametrize(
    "design",
    [
        StreamDesign((Stage(32, (16, 8)), Stage(64, (32,))), Shape(3, 32, 32), 10, 1),
        ResNet18Design(4, Shape(3, 64, 64), 10, "imagenet", "average"),
    ],
)
def test_a_batch_takes_no_more_memory_than_is_said(design: StreamDesign | ResNet18Design) -> None:
    with torch.no_grad():
        fused = walk_of(random_network(design))((0.5,) * 3, (0.25,) * 3)
    size = images_at_once(fused.graph)
    pixels = np.random.default_rng(0).integers(0, 256, (size, *design.image), np.uint8)
    run = _BatchRun(fused, pixels, size)
    tracemalloc.start()
    try:
        run(0)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    print(peak, call_bytes(fused.graph))
    assert call_bytes(fused.graph) / 6 < peak < call_bytes(fused.graph)
