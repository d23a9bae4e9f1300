"""Metrics as another program reads them: OpenMetrics by prometheus_client's parser, over HTTP, with token and TLS."""

from __future__ import annotations

import math
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from sphynx.errors import InputError, PeerGaveUpError
from sphynx.service.credentials import client_context
from sphynx.service.fresh_keys import FreshKeys
from sphynx.service.metrics import METRICS, Metrics
from sphynx.service.monitor import OPENMETRICS, Monitor, read_token
from sphynx.service.settings import ServerSettings
from tests.service.scene import Scene


def parse(text: str) -> list[Sample]:
    """The samples of a text that the other implementation takes for OpenMetrics."""
    families = list(text_string_to_metric_families(text))  # type: ignore[no-untyped-call]  # it has no types
    assert [family.type for family in families] == [kind for kind, _ in METRICS.values()]
    return [sample for family in families for sample in family.samples]


@given(st.lists(st.floats(0, 2000), max_size=20), st.text(max_size=12))
def test_histograms_and_labels_are_read_as_they_were_counted(times: list[float], label: str) -> None:
    metrics = Metrics()
    metrics.add("program_info", name=label)
    part = metrics.new_part()
    for number, took_s in enumerate(times):
        metrics.observe("online_seconds", took_s, backend="gc" if number % 2 else "gmw")
    worker = Metrics()
    worker.observe("online_seconds", 0.3, backend="gc")
    part.values = worker.values()
    samples = parse(metrics.render({"open_connections": 4}))
    counts = [one for one in samples if one.name == "sphynx_online_seconds_count"]
    assert sum(one.value for one in counts) == len(times) + 1
    buckets = [one for one in samples if one.name == "sphynx_online_seconds_bucket"]
    for one in buckets:
        mine = [took_s for number, took_s in enumerate(times) if (one.labels["backend"] == "gc") == bool(number % 2)]
        mine += [0.3] if one.labels["backend"] == "gc" else []
        assert one.value == sum(took_s <= float(one.labels["le"]) for took_s in mine)
    total_s = sum(one.value for one in samples if one.name == "sphynx_online_seconds_sum")
    assert math.isclose(total_s, sum(times) + 0.3, rel_tol=1e-9)
    assert [one.labels["name"] for one in samples if one.name == "sphynx_program_info"] == [label]


def test_a_server_counts_what_happens(scene: Scene) -> None:
    scene.server.flags = ("--pool", "2")
    scene.server.start()
    with scene.client() as client:
        client.prepare(2, backend="gmw")
        client.infer(scene.pixels)
        client.prepare(1, backend="gc")
        with pytest.raises(PeerGaveUpError, match="may keep 2 bundles"):
            client.prepare(3, backend="gmw")
    scene.server.wait_for("disconnected")
    with urllib.request.urlopen(f"http://127.0.0.1:{scene.server.metrics_port}/metrics", timeout=20) as answer:
        assert answer.headers["Content-Type"] == OPENMETRICS
        samples = parse(answer.read().decode())
    found = {
        (one.name, *sorted({value for name, value in one.labels.items() if name != "program"})): one.value
        for one in samples
    }
    assert found["sphynx_online_seconds_count", "gmw"] == 1
    assert found["sphynx_offline_seconds_count", "gmw"] == 2 and found["sphynx_offline_seconds_count", "gc"] == 1
    assert found["sphynx_waiting_seconds_count", "online"] == 1
    assert found["sphynx_waiting_seconds_count", "offline"] == 3
    assert found["sphynx_refusals_total", "quota"] == 1
    assert found["sphynx_store_quota_bytes",] == 16 << 30
    (build,) = (one for one in samples if one.name == "sphynx_build_info")
    assert build.labels.keys() == {"version", "wire", "service"}
    assert scene.server.stop() == 0


@contextmanager
def monitoring(token: str = "", keys: FreshKeys | None = None) -> Iterator[int]:
    monitor = Monitor(("127.0.0.1", 0), lambda: "told", lambda: True, token=token, keys=keys)
    try:
        yield monitor.port
    finally:
        monitor.close()


def test_without_the_token_nothing_is_told(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("a-token-of-letters-1\n")
    with monitoring(read_token(tmp_path / "token")) as port:
        url = f"http://127.0.0.1:{port}"
        for given in (None, "Bearer a-token-of-letters-2", "a-token-of-letters-1"):
            asked = urllib.request.Request(f"{url}/metrics", headers={"Authorization": given} if given else {})
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(asked, timeout=20)
            assert refused.value.code == 401 and b"told" not in refused.value.read()
        asked = urllib.request.Request(f"{url}/metrics", headers={"Authorization": "Bearer a-token-of-letters-1"})
        assert urllib.request.urlopen(asked, timeout=20).read() == b"told"
        assert urllib.request.urlopen(f"{url}/healthz", timeout=20).read() == b"ok\n"
    for text in ("short", "two words of a token", "x" * 20 + "\n" + "y" * 20):
        (tmp_path / "token").write_text(text)
        with pytest.raises(InputError, match="not a token"):
            read_token(tmp_path / "token")
    with pytest.raises(InputError, match="cannot be read"):
        read_token(tmp_path / "absent")


def test_by_tls_clients_of_the_authority_alone_are_told(authority: Path) -> None:
    with monitoring(keys=FreshKeys(authority / "server")) as port:
        url = f"https://127.0.0.1:{port}/metrics"
        context = client_context(authority / "alice")
        assert urllib.request.urlopen(url, timeout=20, context=context).read() == b"told"
        bare = ssl.create_default_context(cafile=authority / "alice" / "ca.pem")
        for stranger in (bare, client_context(authority / "mallory"), client_context(authority / "server")):
            with pytest.raises(OSError):
                urllib.request.urlopen(url, timeout=20, context=stranger).read()
        with pytest.raises(OSError):
            urllib.request.urlopen(url.replace("https", "http"), timeout=20)


@pytest.mark.parametrize(
    ("address", "is_far"),
    [("127.0.0.1:0", False), ("[::1]:0", False), ("localhost:9464", False), ("0.0.0.0:9464", True), ("[::]:0", True)],
)
def test_beyond_the_loopback_address_who_asks_has_to_prove_something(address: str, is_far: bool) -> None:
    ServerSettings(keys="keys", metrics=address, metrics_tls=True)
    ServerSettings(keys="keys", metrics=address, metrics_token="token")
    if is_far:
        with pytest.raises(InputError, match="anybody could read"):
            ServerSettings(keys="keys", metrics=address)
    else:
        assert ServerSettings(keys="keys", metrics=address).metrics_address is not None
