"""Servers that reveal labels alone: every combination of modes runs or is refused at the start; what clients get; a
bundle of one mode is of no use in another."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sphynx
from sphynx.api.both_parties import ask_privately
from sphynx.errors import InputError, PeerGaveUpError
from sphynx.program.backends import BACKENDS, Backend
from sphynx.program.folder import save_program, save_weights
from sphynx.program.inputs import PICTURE, Input
from sphynx.program.interpret import interpret
from sphynx.program.ir import Output, Program
from sphynx.program.labels import NOT_SURE, answer_kind, find_labels
from sphynx.program.revealing import revealed
from sphynx.program.security import (
    ANSWER_KINDS,
    MODES,
    REVEALED,
    REVEALS,
    SECURITIES,
    AnswerKind,
    Reveal,
    Security,
)
from sphynx.service.answer_record import RecordedAnswer
from sphynx.service.prediction import UNSURE
from sphynx.service.settings import ServerSettings
from tests.program.programs import random_weights
from tests.service.scene import Scene
from tests.service.test_infer_verb import run
from tests.service.tiny import CAT_DOG_BIRD, save_tiny, tiny_program

ANSWERS: dict[AnswerKind, tuple[Output, ...]] = {
    "classes": CAT_DOG_BIRD,
    "findings": (replace(CAT_DOG_BIRD[0], final="sigmoid"),),
    "numbers": (Output("map", "first"),),
    "several": (*CAT_DOG_BIRD, Output("map", "first")),
}
INPUTS = {"pictures": PICTURE, "numbers": Input("numbers", 6, (-1.0,), (2.0,), (16,), "signal")}


@pytest.mark.parametrize("answers", ANSWER_KINDS)
@pytest.mark.parametrize(("security", "backend"), [*product(SECURITIES, BACKENDS)])
@pytest.mark.parametrize("reveal", REVEALS)
@pytest.mark.parametrize("source", INPUTS)
def test_every_mode_runs_or_is_refused_at_the_start(
    answers: AnswerKind, security: Security, backend: Backend, reveal: Reveal, source: str
) -> None:
    program = replace(tiny_program(), outputs=ANSWERS[answers], input=INPUTS[source])
    weights = random_weights(program)
    assert answer_kind(program.outputs) == answers
    if refusal := REVEALED[reveal, answers]:
        with pytest.raises(InputError, match=refusal):
            revealed(program, reveal)
        return
    served = revealed(program, reveal)
    pixels = np.random.default_rng(3).integers(0, program.input.largest + 1, (1, 1, 4, 4), np.uint8)
    if MODES[security, backend]:
        with pytest.raises(InputError, match="needs garbled circuits"):
            ask_privately(served, weights, pixels, backend, security=security)
        return
    (answer,) = ask_privately(served, weights, pixels, backend, security=security)
    oracle = interpret(program, weights, pixels)
    if reveal == "logits":
        assert np.array_equal(answer.integers, oracle[0])
    else:
        assert answer.integers.tolist() == find_labels(oracle).tolist()
        assert answer.label == CAT_DOG_BIRD[0].class_names[oracle[0].argmax()]


@pytest.mark.parametrize("answers", [kind for kind in ANSWER_KINDS if REVEALED["label", kind]])
def test_a_server_refuses_before_it_makes_anything(answers: AnswerKind, tmp_path: Path, authority: Path) -> None:
    program = replace(tiny_program(), outputs=ANSWERS[answers])
    save_program(tmp_path / "compiled", program)
    save_weights(tmp_path / "compiled", program, random_weights(program))
    server = sphynx.Server(
        tmp_path / "compiled", keys=authority / "server", listen="127.0.0.1:0", state=tmp_path / "s", reveal="label"
    )
    with pytest.raises(InputError, match=REVEALED["label", answers]) as refused:
        server.start()
    assert "`reveal`" in refused.value.remedy and not (tmp_path / "s").exists()
    found = {one.part: one for one in server.check()}
    assert not found["program"].is_well and REVEALED["label", answers] in found["program"].what


@pytest.mark.parametrize("change", [{"reveal": "scores"}, {"margin": 1.0}, {"reveal": "label", "margin": -1.0}])
def test_settings_that_do_not_go_together_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        ServerSettings(keys="nowhere", **change)


@pytest.fixture
def tiny(tmp_path: Path) -> tuple[Program, dict[str, Any]]:
    return save_tiny(tmp_path / "compiled")


def pictures(count: int) -> np.ndarray:
    return np.random.default_rng(11).integers(0, 256, (count, 1, 4, 4), np.uint8)


@pytest.mark.parametrize("security", SECURITIES)
def test_clients_get_labels_and_nothing_else(
    security: Security, tiny: tuple[Program, dict[str, Any]], tmp_path: Path, authority: Path
) -> None:
    program, weights = tiny
    oracle = interpret(program, weights, pictures(8))
    ordered = np.sort(oracle, axis=1)
    middle = float(np.median(ordered[:, -1] - ordered[:, -2])) / 2**16  # the scale of the logits
    where: dict[str, Any] = {"keys": authority / "server", "listen": "127.0.0.1:0", "security": security}
    for margin in (0.0, middle):
        where["state"] = tmp_path / f"server-{margin > 0}"
        with (
            sphynx.Server(tmp_path / "compiled", reveal="label", margin=margin, **where) as server,
            sphynx.Client(server.address, keys=authority / "alice", state=tmp_path / "client") as client,
        ):
            answers = [client.infer(picture) for picture in pictures(8)]
            assert client.program.reveals_label
            least = client.program.outputs[0].margin
        expected = find_labels(oracle, least).tolist()
        assert (NOT_SURE in expected) == (margin > 0) and set(expected) != {NOT_SURE}
        for answer, number in zip(answers, expected, strict=True):
            names = () if number == NOT_SURE else (CAT_DOG_BIRD[0].class_names[number],)
            assert (answer.labels, answer.label) == (names, names[0] if names else UNSURE)
            assert answer.is_sure(0) == bool(names) and answer.probabilities == () and not answer.has_scores
            for scores in ("logits", "integer_logits", "outputs", "probability"):
                with pytest.raises(InputError, match="reveals labels, and neither scores nor probabilities"):
                    getattr(answer, scores)
            with pytest.raises(InputError, match="reveals labels"):
                answer.is_sure(0.8)
            assert {"probabilities", "outputs"}.isdisjoint(answer.to_json(3))
            assert RecordedAnswer.of("picture", answer).answer == answer.label


def test_a_bundle_of_one_mode_is_not_used_in_another(
    tiny: tuple[Program, dict[str, Any]], tmp_path: Path, authority: Path
) -> None:
    """One folder of bundles on either side, three servers after one another: each answers by bundles of its own."""
    program, weights = tiny
    number = int(interpret(program, weights, pictures(1))[0].argmax())
    where: dict[str, Any] = {"keys": authority / "server", "listen": "127.0.0.1:0", "state": tmp_path / "server"}
    asked: dict[str, Any] = {"keys": authority / "alice", "state": tmp_path / "client", "backend": "gmw"}
    hashes = set()
    for mode in ({}, {"reveal": "label"}, {"reveal": "label", "margin": 1e-4}):
        with sphynx.Server(tmp_path / "compiled", **where, **mode) as server:
            with sphynx.Client(server.address, **asked) as client:
                assert client.ready == 0
                client.prepare(2)
                hashes.add(client.program.content_hash)
                assert client.infer(pictures(1)[0]).label == CAT_DOG_BIRD[0].class_names[number]
            for other in hashes - {client.program.content_hash}:
                with pytest.raises(PeerGaveUpError, match="not the one asked for"):
                    sphynx.Client(server.address, program=other, **asked).prepare(1)
    assert len(hashes) == 3
    with (
        sphynx.Server(tmp_path / "compiled", **where, reveal="label") as server,
        sphynx.Client(server.address, **asked) as client,
    ):
        assert client.ready == 1  # its own, kept meanwhile


def test_processes_and_the_verb_answer_with_labels(scene: Scene) -> None:
    scene.server.flags = ("--reveal", "label", "--processes", "2")
    scene.server.start()
    done = scene.infer(scene.picture, "--backend", "gc")
    assert done.returncode == 0, done.stderr
    (seen,) = json.loads(done.stdout)["predictions"]
    assert seen["labels"] == scene.expected[:1] and seen["sure"] is True
    assert {"probabilities", "outputs"}.isdisjoint(seen)
    table = run(scene, scene.picture)
    assert table.exit_code == 0 and scene.expected[0] in table.stdout and "%" not in table.stdout
    for flags in (("--unsure-below", "0.5"), ("--arrays", str(scene.client_state.with_suffix(".npz")))):
        refused = run(scene, scene.picture, *flags)
        assert isinstance(refused.exception, InputError) and flags[0] in str(refused.exception)
    assert not scene.client_state.with_suffix(".npz").exists()
    assert scene.server.stop() == 0
    assert next(line for line in scene.server.log if line["event"] == "serving")["reveal"] == "label"


def test_the_table_of_the_page_is_that_of_the_code() -> None:
    page = (Path(__file__).parents[2] / "docs" / "serving.md").read_text()
    lines = page[page.index("| `--reveal`, program |") :].splitlines()
    columns = [tuple(part.strip().split(", ")) for part in lines[0].split("|")[2:-1]]
    assert columns == [*MODES]
    kinds: list[tuple[Reveal, AnswerKind]] = [("logits", "classes"), *(("label", kind) for kind in ANSWER_KINDS)]
    for line, (reveal, answers) in zip(lines[2:7], kinds, strict=True):
        name, *cells = (part.strip() for part in line.split("|")[1:-1])
        assert name.startswith(f"`{reveal}`, ")
        runs = [not (MODES[mode] or REVEALED[reveal, answers]) for mode in MODES]
        assert cells == ["yes" if one else "refused" for one in runs]
