"""`sphynx bench throughput`: a served digits network and two client processes. How fast things are is not tested."""

import json
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from sphynx.cli.bench_throughput import parse_clients
from sphynx.cli.main import app
from sphynx.compiler.compile import calibration_images, compile_walk
from sphynx.compiler.frontend.torch_network import walk_of
from sphynx.data.open import open_data
from sphynx.errors import InputError
from sphynx.network.build import build_network
from sphynx.program.folder import save_compiled
from sphynx.space.design import Design
from sphynx.space.published_cells import SPHYNX
from sphynx.space.tally import Shape

KEYS = {
    "model",
    "relus",
    "ring_bits",
    "backend",
    "link",
    "transport",
    "clients",
    "seconds",
    "inferences",
    "inferences_per_s",
    "latency_s",
    "latency_p95_s",
    "offline_s",
    "online_s",
    "online_p95_s",
    "offline_bytes",
    "online_bytes",
    "bytes_per_inference",
    "server_cpu_s",
    "client_cpu_s",
    "server_peak_memory_bytes",
    "equal_to_oracle",
    "per_client",
}


@pytest.fixture
def compiled(tmp_path: Path) -> Path:
    torch.manual_seed(0)
    digits = open_data("digits")
    network = build_network(Design(SPHYNX, 1, 2, (1,), Shape(1, 8, 8), 10, conv_stack="single", name="tiny digits"))
    save_compiled(
        tmp_path / "c",
        compile_walk(
            walk_of(network.double().eval()), (0.3,), (0.4,), calibration_images(digits.train, 20), name="tiny digits"
        ),
    )
    return tmp_path / "c"


def test_two_clients_ask_one_server_over_an_emulated_link(compiled: Path, tmp_path: Path) -> None:
    out = tmp_path / "throughput.json"
    words = "--clients 1,2 --backend gmw --link 1ms,1gbit --seconds 0.2"
    ran = CliRunner().invoke(app, ["bench", "throughput", str(compiled), *words.split(), "-o", str(out)])
    assert ran.exit_code == 0, ran.output
    results = json.loads(out.read_text())
    assert results["machine"]["cores"] and results["source"]["source_sha256"]
    one, two = results["rows"]
    assert set(one) == set(two) == KEYS
    assert (one["clients"], two["clients"]) == (1, 2)
    for row in (one, two):
        assert row["equal_to_oracle"] is True and row["link"] == "1ms,1gbit" and row["model"] == "tiny digits"
        assert row["inferences"] == sum(client["inferences"] for client in row["per_client"]) >= row["clients"]
        assert row["inferences_per_s"] == pytest.approx(row["inferences"] / row["seconds"])
        assert row["bytes_per_inference"] == row["offline_bytes"] + row["online_bytes"] > 0
        assert row["latency_p95_s"] >= row["latency_s"] > row["online_s"] > 0.001  # both ends emulate half the link
    assert one["bytes_per_inference"] == two["bytes_per_inference"]


@pytest.mark.parametrize("text", ["", "0", "1,x", "17"])
def test_numbers_of_clients_that_make_no_sense(text: str) -> None:
    with pytest.raises(InputError, match="clients"):
        parse_clients(text)
