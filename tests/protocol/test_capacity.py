"""Capacity for a rate, against measurements: a quiet machine's throughput, and bundles as they are on the disk."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.service.tiny import save_tiny
from typer.testing import CliRunner

from sphynx.cli.main import app
from sphynx.errors import InputError
from sphynx.program.backends import BACKENDS, Backend
from sphynx.program.cost.kept_rates import keep_rates
from sphynx.program.cost.rates import REFERENCE
from sphynx.program.folder import load_program
from sphynx.protocol.capacity import bundle_bytes, capacity, parse_rate, party_seconds, server_memory_bytes
from sphynx.service.local import running_server
from sphynx.zoo.shipped import program_path

ROOT = Path(__file__).parents[2]
WITHIN = 0.25


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_rate_that_a_quiet_machine_sustained_takes_the_cores_it_has(backend: Backend) -> None:
    """results/private/throughput.json: four clients, both parties on the two cores whose rates are the reference."""
    rows = json.loads((ROOT / "results/private/throughput.json").read_text())["rows"]
    (row,) = (row for row in rows if row["backend"] == backend and row["clients"] == 4)
    program = load_program(program_path(row["model"]))
    found = capacity(program, REFERENCE, row["inferences_per_s"], backend=backend, ahead_s=60)
    assert found.cores == pytest.approx(2, rel=WITHIN)
    if backend == "gc":  # the messages of GMW have become smaller since
        assert found.bits_per_s == pytest.approx(8 * row["inferences_per_s"] * row["bytes_per_inference"], rel=0.05)
    server_s, client_s = party_seconds(program, REFERENCE, backend)
    assert server_s == pytest.approx(row["server_cpu_s"], rel=WITHIN)
    assert client_s == pytest.approx(row["client_cpu_s"], rel=WITHIN)
    assert server_memory_bytes(program, 1) == pytest.approx(row["server_peak_memory_bytes"], rel=WITHIN)


def test_the_page_has_the_estimates_of_today() -> None:
    program = load_program(program_path("sphynx-cifar100-25k"))
    text = " ".join((ROOT / "docs/growth.md").read_text().split())
    (gmw_s, gmw_client_s), (gc_s, gc_client_s) = (party_seconds(program, REFERENCE, name) for name in ("gmw", "gc"))
    rates = [2 / (gmw_s + gmw_client_s), 2 / (gc_s + gc_client_s)]
    for label, (gmw, gc), digits in (
        ("inferences a second on 2 cores", rates, 2),
        ("CPU seconds of the server, each", (gmw_s, gc_s), 3),
        ("of the client, each", (gmw_client_s, gc_client_s), 3),
    ):
        cells = text.split(f"| {label} | ")[1].split(" | ")
        assert [float(cells[0]), float(cells[2])] == pytest.approx([gmw, gc], abs=0.51 * 10**-digits), label
    found = capacity(program, REFERENCE, 100, backend="gmw", ahead_s=600)
    assert (
        f"take {found.server_cores:.0f} cores of the server and {found.client_cores:.0f} of its clients, "
        f"{found.server_memory_bytes / 1e9:.1f} GB of memory, {found.bits_per_s / 1e9:.1f} Gbit/s, "
        f"{found.server_disk_bytes / 1e9:.0f} GB for ten minutes"
    ) in text


def test_bundles_are_as_large_as_those_on_the_disk(tmp_path: Path) -> None:
    program, _ = save_tiny(tmp_path / "compiled")
    with running_server(tmp_path / "compiled", tmp_path) as server, server.client() as client:
        for backend in BACKENDS:
            client.prepare(1, backend=backend)
            (entry,) = (entry for entry in client.ready if entry.backend == backend)
            files = (tmp_path / "server-bundles", server.client_keys[0] / "bundles")
            measured = [(folder / "bundles" / entry.bundle_id.hex()).stat().st_size for folder in files]
            header = 4096  # of names and offsets: 32 ReLUs are hardly more
            for found, size in zip(bundle_bytes(program, backend), measured, strict=True):
                assert size - header < 1.5 * found and found < size


def test_rates_as_they_may_be_written() -> None:
    assert [parse_rate(text) for text in ("100/s", "30/min", "36/h", "2", "86400/day")] == [100, 0.5, 0.01, 2, 1]
    for wrong in ("", "fast", "1/year", "-1/s", "0/s", "inf"):
        with pytest.raises(InputError, match="is not a valid rate"):
            parse_rate(wrong)


def test_the_verb_says_what_a_rate_costs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    keep_rates(REFERENCE)
    save_tiny(tmp_path / "compiled")
    flags = ["estimate", str(tmp_path / "compiled"), "--rate", "100/s", "--backend", "gmw"]
    said = CliRunner().invoke(app, flags)
    assert said.exit_code == 0 and "cores of the server" in said.stdout
    twice = [
        json.loads(CliRunner().invoke(app, [*flags, "--json", "--ahead", ahead]).stdout) for ahead in ("60s", "120s")
    ]
    assert twice[1]["server_disk_bytes"] == pytest.approx(2 * twice[0]["server_disk_bytes"])
    assert twice[0]["cores"] == twice[1]["cores"] > 0
