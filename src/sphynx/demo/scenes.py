"""Scenes of the demonstration: a network designed on the spot for digits, and one that comes with Sphynx.

A scene is a compiled network, pictures, and the answers to them: privately from a server that never sees them, and in
the clear by torch. An answer is `equal` if the private logits are those of the integer oracle, bit for bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sphynx.compiler.compile import calibration_images, compile_walk
from sphynx.compiler.frontend.torch_network import walk_of
from sphynx.data.open import open_data
from sphynx.data.sample_pictures import sample_photographs
from sphynx.network.in_the_clear import answer_in_the_clear
from sphynx.network.trained import TrainedNetwork, load_trained
from sphynx.program.backends import Backend
from sphynx.program.folder import load_compiled, load_program, save_compiled
from sphynx.program.interpret import interpret
from sphynx.protocol.channel import Section, Span
from sphynx.protocol.inference import MASKED_PICTURE
from sphynx.report.summary import Judged
from sphynx.service.local import connected_client
from sphynx.service.pictures import read_picture
from sphynx.service.prediction import Prediction
from sphynx.space.design import Design
from sphynx.space.planner import plan
from sphynx.space.published_cells import SPHYNX
from sphynx.space.tally import Shape
from sphynx.train.job import Job
from sphynx.train.loop import train
from sphynx.train.recipe import load_recipe
from sphynx.units import percent
from sphynx.zoo.by_name import Tell, compiled_folder
from sphynx.zoo.shipped import load_card, model_names, model_path

RELU_BUDGET = 1000
BACKENDS: tuple[Backend, ...] = ("gmw", "gc")
SHIPPED_MODEL = "stream-cifar100-25k"

Pixels = NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class Question:
    name: str
    pixels: Pixels  # [channels, height, width]
    truth: str = ""  # empty: nobody labelled it


@dataclass(frozen=True, eq=False)
class Answer:
    question: Question
    private: Prediction
    plaintext_label: str
    equal: bool
    received: bytes = b""  # by the server: the payload of the one message that depends on the picture

    @property
    def wrong(self) -> bool:
        """True if the private answer differs from the label that somebody gave the picture."""
        return bool(self.question.truth) and self.private.label != self.question.truth


@dataclass(frozen=True, eq=False)
class Scene:
    title: str
    relus: int
    ring_bits: int
    plaintext_seconds: float  # torch fp32, one image, median
    answers: tuple[Answer, ...]
    judged: Judged | None = None  # on all test images, in the clear

    @property
    def all_equal(self) -> bool:
        return all(answer.equal for answer in self.answers)


def digits_scene(folder: Path, pictures: int, tell: Tell) -> Scene:
    """Plans, trains, compiles and serves a network for scikit-learn's digits."""
    data = open_data("digits")
    template = Design(
        SPHYNX,
        channels=1,
        depth=3,
        reduce_positions=(0, 1),
        image=Shape(*data.train.shape),
        classes=data.classes,
        conv_stack="single",  # the cheapest under protocol
    )
    chosen = plan(template, RELU_BUDGET, tolerance=0.05).chosen.design
    tell(f"planned: {chosen.channels} channels, {chosen.depth} cells, reduce cells at {_places(chosen)}")
    run = folder / "run"
    result = train(Job(chosen, data, load_recipe("small"), run))
    judged = Judged(result.accuracy, result.test_images or len(data.test), "fp32")
    tell(f"trained: {percent(result.accuracy, 1)} of {judged.images} test images")
    network, names = load_trained(run), data.test.class_names
    images = calibration_images(data.train)
    name = network.module.design.name
    compiled = compile_walk(walk_of(network.module), network.mean, network.std, images, class_names=names, name=name)
    save_compiled(folder / "compiled", compiled)
    tell(f"compiled: integers of {compiled.program.ring_bits} bits, {compiled.program.relu_count:,} ReLUs")
    questions = [
        Question(f"test image {index}", data.test.images[index].numpy(), names[int(data.test.labels[index])])
        for index in range(pictures)
    ]
    title = "A network designed just now, for digits"
    return _play(title, folder, folder / "compiled", network, questions, judged, tell)


def has_shipped_scene() -> bool:
    return SHIPPED_MODEL in model_names()


def shipped_scene(folder: Path, tell: Tell) -> Scene:
    """The CIFAR-100 network that comes with Sphynx, asked about scikit-learn's two photographs."""
    compiled = compiled_folder(SHIPPED_MODEL, tell)
    program = load_program(compiled)
    questions = [Question(path.stem, read_picture(path, program)) for path in sample_photographs()]
    title, card = f"A network that comes with Sphynx: {SHIPPED_MODEL}", load_card(SHIPPED_MODEL)
    judged = Judged(card["accuracy"], card["data"]["test"], "fp32, CIFAR-100")
    return _play(title, folder, compiled, load_trained(model_path(SHIPPED_MODEL)), questions, judged, tell)


def _play(
    title: str,
    folder: Path,
    compiled: Path,
    network: TrainedNetwork,
    questions: Sequence[Question],
    judged: Judged,
    tell: Tell,
) -> Scene:
    program, weights = load_compiled(compiled)
    stack = np.stack([question.pixels for question in questions])
    expected = interpret(program, weights, stack)
    logits_in_the_clear, seconds = answer_in_the_clear(network, stack)
    labels = [
        program.class_names[index] if program.class_names else str(index) for index in logits_in_the_clear.argmax(1)
    ]
    answers, wire = [], _Wire()
    tell("starting a server in a process of its own; client and server authenticate each other by TLS 1.3")
    folder.mkdir(parents=True, exist_ok=True)
    with connected_client(compiled, folder, wire) as client:
        for backend in BACKENDS:
            tell(f"asking privately about {len(questions)} pictures, ReLUs using {backend}")
            client.prepare(len(questions), backend=backend)
            for question, label, logits in zip(questions, labels, expected, strict=True):
                client.warm()
                private = client.infer(question.pixels)
                equal = bool(np.array_equal(private.integer_logits, logits))
                answers.append(Answer(question, private, label, equal, wire.masked_picture))
    return Scene(title, program.relu_count, program.ring_bits, seconds, tuple(answers), judged)


class _Wire:
    """An observer of the client's channel, which keeps what is sent as the masked picture."""

    def __init__(self) -> None:
        self.masked_picture = b""

    def sent(self, section: Section, parts: Sequence[memoryview]) -> None:
        if section == MASKED_PICTURE:
            self.masked_picture = b"".join(parts)

    def received(self, section: Section, payload: bytearray) -> None:
        """Ignore what is received."""

    def entered(self, section: Section) -> None:
        """Ignore sections."""

    def left(self, span: Span) -> None:
        """Ignore spans."""


def _places(design: Design) -> str:
    return " and ".join(map(str, design.reduce_positions))
