"""compile and check, from a trained run to integers, in this process."""

import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest
import torch

from sphynx.cli.main import main
from sphynx.data.open import open_data
from sphynx.network.build import build_network
from sphynx.network.trained import save_model, save_normalisation
from sphynx.program.cost.kept_rates import keep_rates
from sphynx.program.cost.rates import REFERENCE
from sphynx.program.folder import load_program
from sphynx.space.cell import cell
from sphynx.space.design import Design
from sphynx.space.genotype import Genotype
from sphynx.space.micro import MicroDesign
from sphynx.space.published_cells import PC_DARTS
from sphynx.space.tally import Shape
from sphynx.units import percent
from tests.compiler.frontend.onnx_models import Maker, plain_cnn, write
from tests.data.layouts import write_classes

CELLS = Genotype(cell("conv3 0, skip 1"), cell("skip 0, avg_pool 1"))  # quick to compile


class Ran(NamedTuple):
    code: int
    out: str
    err: str


Sphynx = Callable[..., Ran]


@pytest.fixture
def sphynx(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Sphynx:
    def run(*arguments: str) -> Ran:
        monkeypatch.setattr(sys, "argv", ["sphynx", *arguments])
        code: int | str | None = 0
        try:
            main()
        except SystemExit as stop:
            code = stop.code
        shown = capsys.readouterr()
        return Ran(int(code or 0), shown.out, shown.err)

    monkeypatch.chdir(tmp_path)
    return run


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    """A run on digits: 8x8 grey images, ten classes; what it learned does not matter here."""
    torch.manual_seed(0)
    folder = tmp_path / "run"
    folder.mkdir()
    save_model(folder, build_network(Design(CELLS, 2, 2, (1,), Shape(1, 8, 8), 10, conv_stack="single")))
    save_normalisation(folder, open_data("digits"))
    (folder / "config.json").write_text(json.dumps({"data": {"name": "digits"}}))
    return folder


def test_compile_then_check(sphynx: Sphynx, run_folder: Path) -> None:
    compiled = sphynx("compile", str(run_folder), "-o", "compiled", "--json")
    assert compiled.code == 0, compiled.err
    shown = json.loads(compiled.out)
    assert shown["relus"] == 8 * 8 * 2 * 2 and 16 < shown["ring_bits"] <= 64
    figure = ("--figure", "ranges.svg")
    checked = sphynx("check", "compiled", "--data", "digits", "--run", str(run_folder), "--json", *figure)
    assert "<svg" in Path("ranges.svg").read_text()
    assert checked.code == 0, checked.err
    result = json.loads(checked.out)
    assert result["images"] == 359 and result["float_network"]["agreement"] > 0.9
    assert {layer["name"] for layer in result["layers"]} == set(shown["layers"])
    assert "same class" in sphynx("check", "compiled", "--data", "digits", "--run", str(run_folder)).out
    of_another = sphynx("check", "compiled", "--data", "digits", "--run", "sphynx-cifar100-25k")
    assert of_another.code == 2 and "3x32x32 images of 100 classes, the program 1x8x8 images of 10" in of_another.err
    again = sphynx("compile", str(run_folder), "-o", "again", "--calibrate", "digits")
    assert again.code == 0 and f"ring of {shown['ring_bits']} bits" in again.out
    assert f"the float network's {percent(shown['float_network']['float_accuracy'], 1)}" in " ".join(again.out.split())
    assert shown["content_hash"][:16] in again.out  # the same run gives the same program


def test_a_model_is_compiled_without_weights(sphynx: Sphynx, run_folder: Path, tmp_path: Path) -> None:
    model = shutil.copytree(run_folder, tmp_path / "model")
    (model / "card.json").write_text("{}")
    elsewhere = sphynx("compile", str(run_folder), "-o", str(model / "program"), "--derivable")
    assert elsewhere.code == 2 and "inside the folder of a packed model" in elsewhere.err
    made = sphynx("compile", str(model), "-o", str(model / "program"), "--derivable")
    assert made.code == 0, made.err
    assert {file.name for file in (model / "program").iterdir()} == {"program.json", "corrections.safetensors"}
    assert load_program(model / "program").name == "model"  # its own, where its design has none
    onnx = str(write(plain_cnn(), tmp_path / "mine.onnx"))
    refused = sphynx("compile", onnx, "-o", "other", "--calibrate", "digits", "--derivable")
    assert refused.code == 2 and "--derivable" in refused.err


def test_estimate_of_a_compiled_program(
    sphynx: Sphynx, run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert sphynx("compile", str(run_folder), "-o", "compiled").code == 0
    lan, wan = (sphynx("estimate", "compiled", "--link", link, "--json") for link in ("lan", "wan"))
    assert lan.code == 0, lan.err
    near, far = json.loads(lan.out), json.loads(wan.out)
    assert near["rates"] == far["rates"]  # measured once, then kept
    assert near["total"]["online_seconds"] < far["total"]["online_seconds"]
    monkeypatch.setitem(sys.modules, "sphynx.service.local", None)  # as where `cryptography` is not installed
    assert "offline bytes" in sphynx("estimate", "compiled", "--backend", "gmw").out
    assert sphynx("estimate", "compiled", "--backend", "fhe").code == 2
    assert sphynx("estimate", "compiled", "--link", "modem").code == 2
    refused = sphynx("estimate", "compiled", "--rate", "100/s", "--weight-memory", "200M")
    assert refused.code == 2 and "--weight-memory" in refused.err
    refused = sphynx("estimate", "compiled", "--weight-memory", "8X")
    assert refused.code == 2 and "--weight-memory" in refused.err
    small = ("--image-size", "8", "--image-channels", "1", "--classes", "10", "--conv-stack", "single")
    # How large the networks are that a plan tries depends on the machine.
    keep_rates(replace(REFERENCE, busy_cores=1.0))
    planned = sphynx("plan", "--latency-budget", "10ms", "--link", "lan", *small, "--json")
    assert planned.code == 0, planned.err
    assert json.loads(planned.out)["online_seconds"] <= 0.01
    assert sphynx("plan", *small).code == 2


def test_what_cannot_be_used_is_refused(sphynx: Sphynx, run_folder: Path) -> None:
    bits = sphynx("compile", str(run_folder), "-o", "compiled", "--weight-bits", "3")
    assert bits.code == 2 and "--weight-bits" in bits.err
    for flag in ("--activation-bits", "--link-bits"):
        alone = sphynx("compile", str(run_folder), "-o", "compiled", flag, "8")
        assert alone.code == 2 and f"--weight-bits 10 {flag} 8" in " ".join(alone.err.split())
    (run_folder / "config.json").unlink()
    unnamed = sphynx("compile", str(run_folder), "-o", "compiled")
    assert unnamed.code == 2 and "--calibrate DATA" in unnamed.err
    missing = sphynx("check", "nowhere", "--data", "digits")
    assert missing.code == 2 and "no such folder" in missing.err


@pytest.mark.parametrize("verb", ["compile", "check", "estimate"])
def test_every_help_has_an_example(verb: str, sphynx: Sphynx) -> None:
    assert "Example" in sphynx(verb, "--help").out


def test_check_asks_privately_too(sphynx: Sphynx, run_folder: Path) -> None:
    assert sphynx("compile", str(run_folder), "-o", "compiled", "--weight-bits", "8").code == 0
    checked = sphynx("check", "compiled", "--data", "digits", "--images", "3", "--private", "gmw,gc", "--json")
    assert checked.code == 0, checked.err
    exams = json.loads(checked.out)["private"]
    assert [exam["backend"] for exam in exams] == ["gmw", "gc"]
    assert all(exam["images"] == exam["equal_to_oracle"] == 3 for exam in exams)
    refused = sphynx("check", "compiled", "--data", "digits", "--private", "magic")
    assert refused.code == 2 and "--private" in refused.err


def test_an_onnx_network(sphynx: Sphynx, tmp_path: Path) -> None:
    model = str(write(plain_cnn(), tmp_path / "mine.onnx"))
    made = sphynx(
        "compile", model, "-o", "compiled", "--calibrate", "digits", "--mean", "0.3", "--std", "0.4", "--json"
    )
    assert made.code == 0, made.err
    assert json.loads(made.out)["relus"] == 6 * 64 + 8 * 16 + 16
    assert json.loads(Path("compiled/program.json").read_text())["name"] == "mine"
    checked = sphynx("check", "compiled", "--data", "digits", "--images", "2", "--private", "gmw", "--json")
    assert checked.code == 0, checked.err
    assert json.loads(checked.out)["private"][0]["equal_to_oracle"] == 2
    assert json.loads(made.out)["float_network"]["guessing"]  # its weights are random
    assert "warning: mine: the float network itself is right about only" in made.err
    other = sphynx("compile", model, "-o", "other", "--calibrate", "digits", "--json")
    assert other.code == 0 and json.loads(other.out)["content_hash"] != json.loads(made.out)["content_hash"]


def test_files_that_cannot_be_read_are_left_out(sphynx: Sphynx, tmp_path: Path) -> None:
    write_classes(tmp_path / "photos", n=5, size=6)
    (tmp_path / "photos" / "ant" / "1.png").write_bytes(b"")
    run = tmp_path / "run"
    run.mkdir()
    save_model(run, build_network(Design(CELLS, 1, 2, (1,), Shape(3, 6, 6), 2, conv_stack="single")))
    save_normalisation(run, open_data("photos", skip_bad=True))
    compiling = ("compile", "run", "-o", "compiled", "--calibrate", "photos", "--weight-bits", "8")
    refused = sphynx(*compiling)
    assert refused.code == 2 and "leave it out: --skip-bad." in " ".join(refused.err.split())
    made = sphynx(*compiling, "--skip-bad")
    assert made.code == 0 and "left out 1 image that cannot be read" in made.err, made.err
    assert sphynx("check", "compiled").code == 0  # it remembers
    for verb in ("eval", "check"):
        over = sphynx(verb, {"eval": "run", "check": "compiled"}[verb], "--data", "photos", "--skip-bad")
        assert over.code == 0 and "photos/ant/1.png" in over.err, over.err


@pytest.mark.parametrize(("stream", "part"), [("--stream", 7 / 8), ("--no-stream", 1.0)])
def test_an_onnx_network_is_shown_what_it_was_calibrated_on(
    stream: str, part: float, sphynx: Sphynx, tmp_path: Path
) -> None:
    for split in ("train", "val"):
        write_classes(tmp_path / "photos" / split, n=4, size=9)
    make = Maker(("n", 3, 4, 4))
    hidden = make.node("Flatten", make.node("Relu", make.conv("x", 3, 2, pads=[1, 1, 1, 1])))
    model = str(write(make.model(make.dense(hidden, 32, 2)), tmp_path / "mine.onnx"))
    made = sphynx("compile", model, "-o", "compiled", "--calibrate", "photos", "--image-size", "4", stream)
    assert made.code == 0, made.err
    assert load_program(Path("compiled")).input.picture_part == part


@pytest.mark.parametrize(
    "flags, message",
    [
        ((), "--calibrate DATA"),
        (("--calibrate", "digits", "--mean", "0.1,0.2"), "0.1,0.2 is not one number per channel (1)"),
        (("--calibrate", "digits", "--std", "half"), "half is not one number per channel"),
        (("--calibrate", "digits", "--std", "0"), "not positive"),
    ],
)
def test_an_onnx_network_needs_data_and_statistics_that_fit(
    flags: tuple[str, ...], message: str, sphynx: Sphynx, tmp_path: Path
) -> None:
    refused = sphynx("compile", str(write(plain_cnn(), tmp_path / "mine.onnx")), "-o", "compiled", *flags)
    assert refused.code == 2 and message in " ".join(refused.err.split())


@pytest.mark.parametrize(
    "fault",
    ["no file", "no onnx", "a layer that cannot be compiled", "a softmax over the batch", "no run", "micro cells"],
)
def test_a_bad_network_is_refused_before_data_are_opened(
    fault: str, sphynx: Sphynx, run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr("sphynx.data.open.open_any", lambda spec, **_: opened.append(spec))
    make, file = Maker(), tmp_path / "mine.onnx"
    if fault == "no onnx":
        file.write_bytes(b"not a network")
    elif fault == "a layer that cannot be compiled":
        write(make.model(make.node("Tanh", make.conv("x", 1, 2))), file)
    elif fault == "a softmax over the batch":  # found only by walking the graph
        write(make.model(make.node("Softmax", make.conv("x", 1, 2), axis=0)), file)
    elif fault == "no run":
        (run_folder / "model.safetensors").unlink()
    elif fault == "micro cells":
        save_model(run_folder, build_network(MicroDesign(PC_DARTS, 1, 4, Shape(1, 16, 16), 10)))
    network = file if file.exists() or fault == "no file" else run_folder
    refused = sphynx("compile", str(network), "-o", "compiled", "--calibrate", "digits")
    assert refused.code == 2 and "remedy" in refused.err and not opened, refused.err
    assert ("there is no such file" in refused.err) == (fault == "no file")


def test_a_run_has_its_own_statistics(sphynx: Sphynx, run_folder: Path) -> None:
    refused = sphynx("compile", str(run_folder), "-o", "compiled", "--mean", "0.5")
    assert refused.code == 2 and "--mean, --std" in refused.err


def test_smooth_activations_need_leave_and_are_reported(sphynx: Sphynx, tmp_path: Path) -> None:
    make = Maker(("n", 1, 8, 8))
    x = make.conv("x", 1, 3)
    x = make.node("Mul", x, make.node("Sigmoid", x))
    path = str(write(make.model(make.dense(make.node("Flatten", x), 108, 10)), tmp_path / "smooth.onnx"))
    refused = sphynx("compile", path, "--calibrate", "digits", "-o", "out")
    assert refused.code == 2 and "Swish cannot be compiled exactly" in refused.err and "--approximate" in refused.err
    options = (path, "--calibrate", "digits", "--approximate", "--knees", "6", "--weight-bits", "10", "-o", "out")
    (found,) = json.loads(sphynx("compile", *options, "--json").out)["approximations"]
    assert found["function"] == "silu" and 0 < found["knees"] <= 6 and 0 < found["rms_error"] < found["largest_error"]
    shown = sphynx("compile", *options)
    assert shown.code == 0 and "Approximated" in shown.out and "silu" in shown.out
    assert load_program(Path("out")).relu_count == found["knees"] * 108


def test_a_ruined_compilation_is_told(sphynx: Sphynx, tmp_path: Path) -> None:
    model = str(write(plain_cnn(), tmp_path / "mine.onnx"))
    good = sphynx("compile", model, "-o", "good", "--calibrate", "digits", "--json")
    judged = json.loads(good.out)["float_network"]
    assert good.code == 0 and judged["same_class"] > 0.97 and judged["error"] < 0.05 and not judged["far_off"]
    checked = sphynx("check", "good", "--images", "5", "--json")
    again = json.loads(checked.out)["original"]
    assert checked.code == 0 and abs(again["error"] - judged["error"]) < 1e-4 and again["images"] == 200
    few = ("--weight-bits", "6", "--activation-bits", "4")
    ruined = sphynx("compile", model, "-o", "ruined", "--calibrate", "digits", *few)
    assert ruined.code == 1 and "off by" in ruined.err and "--weight-bits" in ruined.err
    assert "--accept-error" in ruined.err and not Path("ruined").exists()
    accepted = sphynx("compile", model, "-o", "ruined", "--calibrate", "digits", *few, "--accept-error", "2")
    assert accepted.code == 0 and "warning: mine: its logits are off by" in accepted.err
    assert "same class as the float network" in " ".join(accepted.out.split())
    assert sphynx("check", "ruined", "--images", "5").code == 1


def test_a_run_goes_out_as_onnx_and_comes_in_again(sphynx: Sphynx, run_folder: Path) -> None:
    told = sphynx("export", str(run_folder), "-o", "out/model.onnx")
    assert told.code == 0, told.err
    assert "out/model.onnx" in told.out and Path("out/model.onnx").stat().st_size > 1000
    made = sphynx("compile", "out/model.onnx", "-o", "compiled", "--calibrate", "digits", "--json")
    assert made.code == 0 and json.loads(made.out)["relus"] == 8 * 8 * 2 * 2
    assert sphynx("export", "nowhere", "-o", "model.onnx").code == 2


def test_a_precise_refusal_names_a_command_instead_of_all_operators(sphynx: Sphynx) -> None:
    make = Maker()
    path = write(make.model(make.dense(make.node("Flatten", make.node("Selu", "x")), 64, 3)), Path("selu.onnx"))
    refused = sphynx("compile", str(path), "--calibrate", "digits", "-o", "compiled")
    assert refused.code == 2 and "Selu cannot be compiled (node selu0): train the network with ReLU" in refused.err
    assert "  remedy: sphynx compile --operators lists what can be compiled.\n" in refused.err
    listed = sphynx("compile", "--operators")
    assert listed.code == 0
    exactly, approximately, at_the_end = listed.out.strip().splitlines()
    assert "Conv" in exactly and "Relu" in exactly and ", Sigmoid" not in exactly and "Rearrange" not in exactly
    assert "--approximate" in approximately and "Gelu" in approximately
    assert "Softmax" in at_the_end
