"""Public maps on shares: the parties' results sum to the oracle's, in either element type."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sphynx.program.interpret import evaluate
from sphynx.program.ir import INPUT, Graph, Linear, Pool, Step, Term
from sphynx.protocol.shares import pool_share
from sphynx.space.tally import Shape

POOLS = {
    "average": Pool("p", INPUT, ((0, 2), (0, 3), (1, 4), (2, 4)), (3, 2, 2, 3), ((0, 2), (0, 3), (1, 3)), (3, 2, 3)),
    "global": Pool("p", INPUT, ((0, 4),), (1,), ((0, 3),), (1,)),
    "crop": Pool("p", INPUT, ((3, 4),), (1,), ((1, 2), (2, 3)), (1, 1)),
    "scaled crop": Pool("p", INPUT, ((1, 2), (2, 3)), (2, 5), ((0, 1),), (1,)),
    "every second": Pool("p", INPUT, ((3, 4),), (1,), ((0, 1), (2, 3)), (1, 1)),
    "large factors": Pool("p", INPUT, ((0, 4), (1, 2)), (65536, 1), ((0, 3),), (65535,)),
}


@pytest.mark.parametrize("kind", [np.uint32, np.uint64])
@pytest.mark.parametrize("name", POOLS)
def test_shares_of_a_pool(name: str, kind: type[np.unsignedinteger]) -> None:
    step, rng = POOLS[name], np.random.default_rng(0)
    top = np.iinfo(kind).max
    x = rng.integers(0, 256, (2, 2, 4, 3))
    server = rng.integers(0, top, x.shape, dtype=kind, endpoint=True)
    client = x.astype(kind) - server
    shape = Shape(2, len(step.row_windows), len(step.column_windows))
    seen: dict[str, NDArray[Any]] = {}
    graph = Graph(Shape(2, 4, 3), (step, Linear("l", (Term("p", 1, 1),), shape)))
    weights = {"l/0": np.ones((2, 2, 1, 1), np.int64), "l/bias": np.zeros(shape, np.int64)}

    def note(made: Step, tensor: NDArray[Any]) -> None:
        seen[made.name] = tensor

    evaluate(graph, weights, x, note)
    total = pool_share(step, server) + pool_share(step, client)
    np.testing.assert_array_equal(total, seen["p"].astype(kind))
