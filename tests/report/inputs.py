"""Made-up benchmark and check files with every key that a report reads: they test drawing, and measure nothing."""

import json
from pathlib import Path
from typing import Any


def private_row(model: str = "first", backend: str = "gc", **changes: Any) -> dict[str, Any]:
    layers, timeline, clock = [], [], {"offline": 0.0, "online": 0.0}
    for number in range(5):
        for name in (
            f"cells.{number}.activation.input/mask",
            f"cells.{number}.activation.input",
            f"cells.{number}.activation",
        ):
            for phase, factor in (("offline", 40), ("online", 1)):
                size = (7 - number) * 25_000 * factor
                layers.append(
                    {
                        "name": name,
                        "phase": phase,
                        "sent_bytes": size,
                        "received_bytes": size // 3,
                        "seconds": 0.01 * factor,
                    }
                )
                for party, share in (("client", 0.4), ("server", 0.6)):
                    end = clock[phase] + 0.01 * factor * share
                    timeline.append(
                        {"party": party, "phase": phase, "name": name, "start_s": clock[phase], "end_s": end}
                    )
                    clock[phase] = end
    return {
        "model": model,
        "relus": 25_600,
        "backend": backend,
        "link": "loopback",
        "plaintext_s": 0.007,
        "offline_s": clock["offline"],
        "online_s": clock["online"],
        "offline_bytes": 90_000_000,
        "online_bytes": 13_000_000,
        "rounds": 12,
        "equal_to_oracle": True,
        "peak_memory_bytes": {"server": 316_000_000, "client": 232_000_000},
        "plaintext_cpu_s": 0.013,
        "ring_bits": 32,
        "batch": 1,
        "repeats": 3,
        "transport": "TLS 1.3",
        "setup_s": 0.1,
        "offline_p95_s": clock["offline"],
        "online_p95_s": clock["online"],
        "offline_cpu_s": 4.0,
        "online_cpu_s": 0.2,
        "online_bytes_per_relu": 508.0,
        "he_bytes": 9_000_000,
        "bundle_bytes": {"server": 1_000, "client": 900},
        "server_weights_bytes": 10_000,
        "server_weights_s": 0.1,
        "online_ratio": 9.0,
        "total_ratio": 300.0,
        "online_cpu_ratio": 9.0,
        "total_cpu_ratio": 300.0,
        "layers": layers,
        "timeline": timeline,
        **changes,
    }


def write_private(path: Path, rows: list[dict[str, Any]]) -> Path:
    machine = {"architecture": "made-up", "cores": 2, "load_average": [0.1, 0.1, 0.1], "versions": {"sphynx": "0.1.0"}}
    path.write_text(json.dumps({"machine": machine, "rows": rows}))
    return path


def write_check(path: Path) -> Path:
    layers = [
        {"name": f"cells.{n}", "range_bits": 22 if n else 0, "used_bits": 18 + n % 3, "bound_bits": 27 - n}
        for n in range(5)
    ]
    path.write_text(json.dumps({"compiled": "compiled/first", "images": 360, "accuracy": 0.97, "layers": layers}))
    return path
