import json
import tarfile
from pathlib import Path

import pytest
from reproduction import frontier
from reproduction.gpu.state import unpack

import sphynx
from sphynx.network.trained import load_model
from sphynx.train.views import weights_digest

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
    elsewhere = tmp_path / "elsewhere"
    said = unpack(tmp_path / "kept", elsewhere)
    weights = ("teacher-0", "teacher-1", "25k/seed-0")
    assert said == ["unpacked results.tgz", *(f"unpacked {name}/model.safetensors" for name in weights)]
    one = load_model(elsewhere / "25k/seed-0")
    assert weights_digest(one) == weights_digest(load_model(tmp_path / "out/25k/seed-0"))


@pytest.mark.slow
def test_a_network_that_was_cut_off_goes_on_elsewhere(tmp_path: Path) -> None:
    """The teacher is one that is given; a choice was made before."""
    teacher, here, there = tmp_path / "teacher", tmp_path / "here", tmp_path / "there"
    shape = {"stages": SMALL["stages"], "view_epochs": 2}
    design = frontier.Plan(sphynx.open_data("digits"), here, (), 0, (), 0, 0, shape).design("25k")
    sphynx.train_network(design, "digits", out=teacher, recipe="small", settings={"epochs": 1})
    words = ["final", "--data", "digits", "--given", str(teacher), "--trained", "0", "--changed", json.dumps(SMALL)]
    words += ["--finals", "25k/seed-0", "--epochs", "2000", "--keep", str(tmp_path / "kept"), "-o"]
    for out in (here, there):
        out.mkdir()
        (out / "choice.json").write_text(json.dumps({"settings": {"optimizer": "muon"}}))
    assert frontier.main([*words, str(here), "--minutes", "0.6"]) == 3
    done = len((here / "25k/seed-0/metrics.jsonl").read_text().splitlines())
    assert 0 < done < 2000
    assert frontier.main([*words, str(there), "--state", str(tmp_path / "kept"), "--minutes", "0.4"]) == 3
    rows = [json.loads(row)["epoch"] for row in (there / "25k/seed-0/metrics.jsonl").read_text().splitlines()]
    assert rows == list(range(1, len(rows) + 1)) and len(rows) > done
