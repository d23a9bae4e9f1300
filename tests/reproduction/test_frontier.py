import json
import tarfile
from pathlib import Path

import pytest
from reproduction import frontier

SMALL = {
    "stages": "4:16:8x2 2:32:16x2", "wide": [10, 1], "tuning_epochs": 2, "view_epochs": 2,
    "settings": {"batch_size": 128, "norm_batches": 2, "warmup_epochs": 1, "learning_rate": 0.02},
}  # fmt: skip


@pytest.mark.slow
def test_the_frontier_goes_from_teachers_to_final_networks(tmp_path: Path) -> None:
    words = ["--data", "digits", "-o", str(tmp_path / "out"), "--changed", json.dumps(SMALL), "--jobs", "2"]
    words += ["--finals", "25k/seed-0,25k/seed-1"]
    assert frontier.main(["final", *words]) == 3  # nothing to start from
    assert frontier.main([*frontier.STAGES, *words, "--final-minutes", "0.77", "--keep", str(tmp_path / "kept")]) == 0
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    means = {name: sum(own) for name, own in summary["choice"]["held_out_accuracy"].items()}
    assert means[summary["choice"]["winner"]] == max(means.values()) and len(means) == len(frontier.SETTINGS)
    assert summary["runs"]["25k/seed-1"]["epochs"] == summary["epochs"]["epochs"]
    assert summary["test_accuracy"]["25k"]["std"] is not None
    with tarfile.open(tmp_path / "kept" / "results.tgz") as kept:
        assert {"choice.json", "25k/seed-0/config.json", "teacher-1/metrics.jsonl"} <= set(kept.getnames())
        config = kept.extractfile("25k/seed-0/config.json")
        assert config is not None and json.load(config)["teacher"]["format"] == "sphynx-wide-resnet/1"
    weights = {file.name for file in (tmp_path / "kept").glob("*.safetensors")}
    assert weights == {"teacher-0.safetensors", "teacher-1.safetensors", "25k-seed-0.safetensors"}
