"""The page of links: real TCP beside emulated links, each row with its like."""

from __future__ import annotations

import json
from pathlib import Path

from docs.make_links import EMULATED, NAMESPACES, page

from sphynx.program.cost.link import LINKS

KEPT = Path(__file__).parents[2] / "results" / "private" / "lan-wan.json"
SLOWER = 1.5


def test_a_row_between_namespaces_stands_beside_the_same_over_an_emulated_link(tmp_path: Path) -> None:
    emulated = json.loads(KEPT.read_text())
    slower = [{**row, "online_s": SLOWER * row["online_s"]} for row in reversed(emulated["rows"])]
    links = [{"asked": LINKS[name].to_json(), "measured": LINKS[name].to_json()} for name in ("lan", "wan")]
    (tmp_path / EMULATED).write_text(json.dumps(emulated))
    assert "Nothing was measured yet." in page(tmp_path)
    network = {"shaped_by": "netem", "congestion_control": "cubic", "links": links}
    (tmp_path / NAMESPACES).write_text(json.dumps({**emulated, "rows": slower, **network}))
    text = page(tmp_path)
    assert "TCP with cubic as congestion control" in text
    assert "- lan by netem: round trip 0.5 ms for 0.5, 1000 Mbit/s for 1000\n" in text
    assert "| sphynx-cifar100-25k | 25,600 | gmw | wan | 1381 | 920 | 1.50 | 1.82 | 1.82 | 1.00 | 0.83 |" in text
    for link in ("lan", "wan"):
        for backend in ("gc", "gmw"):
            assert f"- {link}, {backend}: 1.50 times the emulated link's time online, 1.00 times offline\n" in text
    emulated["machine"]["load_average"] = [9.0, 9.0, 9.0]
    (tmp_path / EMULATED).write_text(json.dumps(emulated))
    assert page(tmp_path).endswith(
        "Other work shared the cores: times are rough, and ratios say little except over wan.\n"
    )
