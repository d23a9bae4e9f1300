"""deploy/grafana: every panel asks for metrics and labels that servers have, and every metric has a panel."""

from __future__ import annotations

import json
import re

from sphynx.service.metrics import METRICS, PREFIX, SAMPLES
from tests.service.processes import ROOT


def test_the_dashboard_and_the_metrics_have_the_same_names() -> None:
    board = json.loads((ROOT / "deploy" / "grafana" / "sphynx.json").read_text())
    asked = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    named = {name for text in asked for name in re.findall(rf"\b{PREFIX}(\w+)", text)}
    assert named <= SAMPLES.keys()
    assert {SAMPLES[name] for name in named} == METRICS.keys()
    assert all(text.count("(") == text.count(")") and text.count("{") == text.count("}") for text in asked)
    identifiers = [panel["id"] for panel in board["panels"]]
    assert len(set(identifiers)) == len(identifiers)
