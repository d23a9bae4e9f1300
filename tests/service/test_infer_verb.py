"""`sphynx infer` on many images: what it prints when it does not come to the end, which bundles it takes and makes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

import sphynx
from sphynx.cli.main import app
from sphynx.errors import InputError, PeerGaveUpError
from sphynx.program.folder import save_program, save_weights
from sphynx.program.inputs import Input
from sphynx.program.interpret import interpret
from sphynx.program.ir import Output
from tests.service.scene import Scene


def run(scene: Scene, *arguments: str | Path) -> Result:
    """In this process, as text."""
    where = ("--server", f"127.0.0.1:{scene.server.port}", "--keys", scene.authority / "alice")
    return CliRunner().invoke(app, list(map(str, ("infer", *arguments, *where, "--state", scene.client_state))))


def test_answers_are_printed_although_a_limit_is_reached(scene: Scene) -> None:
    scene.server.flags = ("--hourly", "8")
    scene.server.start()
    done = scene.infer(*[scene.picture] * 11, "--backend", "gmw")
    assert done.returncode == 1
    found = json.loads(done.stdout)
    assert [seen["labels"][0] for seen in found["predictions"]] == [scene.expected[0]] * 8
    assert [row["image"] for row in found["failed"]] == [str(scene.picture)] * 3
    assert all("8 images per hour" in row["error"] and row["remedy"] for row in found["failed"])
    assert found["bundles_ready"] is None
    answered, error, remedy = done.stderr.splitlines()[-3:]
    assert answered == "8 of 11 images were answered before the failure"
    assert error.startswith("error: ") and remedy.startswith("  remedy: ")
    assert scene.server.stop() == 0


def test_the_table_has_what_was_answered_before_a_failure(scene: Scene) -> None:
    scene.server.flags = ("--hourly", "8")
    scene.server.start()
    done = run(scene, *[scene.picture] * 9, "--backend", "gmw", "--top", "1")
    assert isinstance(done.exception, PeerGaveUpError)
    assert done.stdout.count(f"│ {scene.expected[0]} ") == 8
    assert scene.server.stop() == 0


def test_answers_take_one_connection_which_ends_in_words(scene: Scene) -> None:
    scene.server.start()
    done = run(scene, scene.picture)
    assert done.exit_code == 0, done.output
    assert scene.server.stop() == 0
    ends = [line["result"] for line in scene.server.log if line["event"] == "disconnected"]
    assert ends == ["done"]


def test_a_record_is_a_page_about_what_was_answered(scene: Scene, tmp_path: Path) -> None:
    scene.server.start()
    record = tmp_path / "record.html"
    done = run(scene, scene.picture, scene.picture, "--backend", "gc", "--record", record)
    assert done.exit_code == 0, done.output
    page = record.read_text()
    assert scene.program.content_hash in page and f"127.0.0.1:{scene.server.port}" in page
    assert page.count(f"<td>{scene.picture.name}</td>") == 2 and "garbled circuits" in page
    assert f"<td>{scene.expected[0]} (" in page and "Sphynx unchanged" in page and "no proof to others" in page
    refused = run(scene, scene.picture, "--record", tmp_path / "record.pdf")
    assert isinstance(refused.exception, InputError) and "does not end in .html" in str(refused.exception)
    assert scene.server.stop() == 0


def test_a_program_without_classes_answers_with_arrays(scene: Scene, tmp_path: Path) -> None:
    """A map and a vector, neither of which has labels: a table of them, all numbers as arrays, and as JSON."""
    outputs = (Output("heat", "first"), Output("vector", "logits", final="sigmoid"))
    program = replace(scene.program, outputs=outputs)
    save_program(scene.compiled, program)
    save_weights(scene.compiled, program, scene.weights)
    scene.server.start()
    done = run(scene, scene.picture, "--backend", "gmw", "--unsure-below", "0.5", "--arrays", tmp_path / "answers.npz")
    assert done.exit_code == 0, done.output
    assert "heat" in done.stdout and "2 x 4 x 4" in done.stdout and "label" not in done.stdout
    (seen,) = json.loads(scene.infer(scene.picture, "--backend", "gc", "--unsure-below", "0.5").stdout)["predictions"]
    assert "labels" not in seen and "sure" not in seen
    kept = np.load(tmp_path / "answers.npz")
    oracle = program.answers(program.real_numbers(interpret(program, scene.weights, scene.pixels[None])))
    assert kept["images"].tolist() == [str(scene.picture)]
    for name, expected in oracle.items():
        assert np.array_equal(kept[f"output/{name}"], expected)
        assert np.array_equal(np.array(seen["outputs"][name]), expected[0])
    assert scene.server.stop() == 0


def test_numbers_are_clipped_to_the_programs_range(scene: Scene, tmp_path: Path) -> None:
    """A signal of 16 samples instead of a picture, as a file and as an array, becomes integers of 8 bits."""
    program = replace(scene.program, input=Input("numbers", 8, (-1.0,), (1.0,), (16,), "signal"))
    save_program(scene.compiled, program)
    save_weights(scene.compiled, program, scene.weights)
    scene.server.start()
    signal = np.linspace(-1.5, 1.5, 16)
    np.save(tmp_path / "signal.npy", signal)
    read = np.rint((np.clip(signal, -1, 1) + 1) * 127.5).astype(np.uint8).reshape(1, 1, 4, 4)
    oracle = interpret(program, scene.weights, read)
    done = scene.infer(tmp_path / "signal.npy", "--backend", "gc")
    assert done.returncode == 0, done.stdout + done.stderr
    (seen,) = json.loads(done.stdout)["predictions"]
    assert np.array_equal(seen["outputs"]["logits"], program.real_numbers(oracle)[0])
    server, keys = f"127.0.0.1:{scene.server.port}", scene.authority / "alice"
    with sphynx.Client(server, keys=keys, state=scene.client_state) as client:
        assert np.array_equal(client.infer(signal, backend="gmw").integer_logits, oracle[0])
        with pytest.raises(InputError, match="not finite"):
            client.infer(np.full(16, np.nan))
        with pytest.raises(InputError, match=r"shape \(4, 4\)"):
            client.infer(np.zeros((4, 4)))
    (tmp_path / "bad.npy").write_bytes(b"\x93NUMPY\x01\x00\xff\xff")
    refused = scene.infer(scene.picture, tmp_path / "bad.npy", tmp_path / "none.npy")
    assert refused.returncode == 1
    missing, *unreadable = (row["error"] for row in json.loads(refused.stdout)["failed"])
    assert missing == "there is no such file"
    assert [error[:29] for error in unreadable] == ["it cannot be read as an array"] * 2
    assert scene.server.stop() == 0


@pytest.mark.parametrize("signal", ["SIGINT", "SIGTERM"])
def test_answers_are_printed_although_it_is_stopped(scene: Scene, signal: str) -> None:
    scene.server.start()
    done = scene.infer(*[scene.picture] * 8, "--backend", "gc", fault=f"online:{signal}:8")
    assert done.returncode == 1
    found = json.loads(done.stdout)
    assert 0 < len(found["predictions"]) < 8
    assert len(found["predictions"]) + len(found["failed"]) == 8
    assert {row["error"] for row in found["failed"]} == {"interrupted"}
    assert done.stderr.splitlines()[-2] == "error: interrupted"


def test_an_explicit_backend_is_used_whatever_is_ready(scene: Scene) -> None:
    scene.server.start()
    with scene.client() as client:
        client.prepare(2, backend="gmw")
    done = json.loads(scene.infer(scene.picture, "--backend", "gc", "--prepare", "1").stdout)
    assert [seen["backend"] for seen in done["predictions"]] == ["gc"]
    assert done["bundles_ready"] == 3
    with scene.client() as client:
        assert sorted(entry.backend for entry in client.ready) == ["gc", "gmw", "gmw"]
    (seen,) = json.loads(scene.infer(scene.picture).stdout)["predictions"]  # auto: what is ready
    assert seen["backend"] == "gmw"
    assert scene.server.stop() == 0


def test_prepare_makes_what_is_missing(scene: Scene) -> None:
    scene.server.start()
    for images in ((), (), (scene.picture,)):
        done = scene.infer(*images, "--prepare", "2", "--backend", "gmw")
        assert json.loads(done.stdout)["bundles_ready"] == 2
    assert sum(line["event"] == "prepared" for line in scene.server.log) == 3
    assert scene.server.stop() == 0


def test_a_pipe_gets_one_line_of_progress(scene: Scene) -> None:
    scene.server.start()
    done = scene.infer(*[scene.picture] * 17, "--backend", "gmw", "--prepare", "1")
    assert done.stderr.splitlines() == ["bundles to prepare: 18"]
    text = run(scene, scene.picture, "--backend", "gmw")
    assert text.stderr.splitlines() == ["0 bundles are ready for later."]
    assert scene.server.stop() == 0


def test_what_holds_no_image_is_told_without_a_server(scene: Scene, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    scene.server.port = 1  # where nobody listens
    done = run(scene, tmp_path / "empty", tmp_path / "missing.png")
    assert done.exit_code == 1
    told = done.stderr.splitlines()
    assert told[0] == "2 of 2 could not be asked about:"
    assert f"error: {tmp_path / 'missing.png'}: there is no such file" in told
