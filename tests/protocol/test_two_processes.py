"""A learned-size network, compiled, asked privately by one process and answered by another over TCP."""

from pathlib import Path

import numpy as np
import pytest
from tests.compiler.networks import MEAN, STD, random_network

from sphynx.bench.private_models import question
from sphynx.bench.private_parties import Job, run_parties
from sphynx.compiler.compile import compile_walk
from sphynx.compiler.frontend.torch_network import walk_of
from sphynx.errors import SphynxError
from sphynx.program.backends import Backend
from sphynx.program.cost.link import Link
from sphynx.program.folder import load_program, save_compiled
from sphynx.protocol.linear_plan import plan_program
from sphynx.space.cell import cell
from sphynx.space.design import Design
from sphynx.space.genotype import Genotype
from sphynx.space.tally import Shape

# Every operation once, a convolution of a convolution, and a pool of a convolution.
CELLS = Genotype(cell("skip 0, conv3 1", "avg_pool 2, dil3 0"), cell("conv3 0, skip 1", "skip 2, avg_pool 1"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    design = Design(CELLS, 4, 3, (1,), Shape(1, 8, 8), 10, conv_stack="single", name="digits")
    pixels = np.random.default_rng(0).integers(0, 256, (64, 1, 8, 8)).astype(np.uint8)
    where = tmp_path_factory.mktemp("digits")
    save_compiled(where, compile_walk(walk_of(random_network(design)), MEAN[:1], STD[:1], pixels))
    return where


@pytest.mark.parametrize(("backend", "batch"), [("gc", 1), ("gmw", 3)])
def test_logits_are_the_oracles(folder: Path, backend: Backend, batch: int) -> None:
    pixels, expected = question(folder, batch)
    server, client = run_parties(Job(folder, backend, batch, repeats=2, link=None), pixels, expected)
    assert client.details["equal_to_oracle"]
    plan = plan_program(load_program(folder))
    assert server.details["prepared_bytes"] >= plan.products * 4 * plan.params.n
    for ours, theirs in zip(server.offline + server.online, client.offline + client.online, strict=True):
        assert ours.record.total().sent_bytes == theirs.record.total().received_bytes
        assert ours.record.total().received_bytes == theirs.record.total().sent_bytes
    uploads = {upload.tensor for upload in plan.distinct_uploads}
    for tensor in uploads:
        counted = sum(t.sent_bytes for s, t in client.offline[0].record.traffic.items() if s.layer == f"{tensor}/mask")
        mine = [upload for upload in plan.distinct_uploads if upload.tensor == tensor]
        assert counted == sum(8 + plan.upload_bytes(upload, batch) for upload in mine)


def test_an_emulated_link_changes_no_result(folder: Path) -> None:
    pixels, expected = question(folder, 1)
    link = Link(round_trip_s=0.002, bits_per_s=1e9)
    _, client = run_parties(Job(folder, "gmw", 1, repeats=1, link=link), pixels, expected)
    assert client.details["equal_to_oracle"]


def test_a_party_that_fails_is_named(folder: Path) -> None:
    pixels, expected = question(folder, 1)
    with pytest.raises(SphynxError, match="images"):
        run_parties(Job(folder, "gmw", 1, repeats=1, link=None), pixels[:, :, :-1], expected)
