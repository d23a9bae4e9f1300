"""One of the networks that the page offers: what is said of it, its samples, its answers, private or in the clear."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from sphynx.app.desk import Desk, Pixels
from sphynx.app.histogram import byte_counts
from sphynx.app.in_the_clear import InTheClear
from sphynx.data.picture import read_upright
from sphynx.data.sample_pictures import sample_pictures
from sphynx.errors import InputError
from sphynx.program.backends import BACKENDS, Backend
from sphynx.program.classes import names_of_classes
from sphynx.zoo.shipped import warning_of

if TYPE_CHECKING:
    from PIL.Image import Image


class Network:
    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        program = desk.parties.client.program
        if not program.input.accepts_files:
            raise InputError(
                "the network reads numbers, not pictures",
                where=desk.parties.name,
                remedy="Ask it with `sphynx infer FILE.npy`.",
            )
        self.class_names = names_of_classes(program) if program.classes is not None else ()
        self.samples = sample_pictures(program.image.channels, program.image.height, self.class_names)

    @property
    def name(self) -> str:
        return self.desk.parties.name

    def about(self) -> dict[str, Any]:
        parties, program = self.desk.parties, self.desk.parties.client.program
        return {
            "name": self.name,
            "warning": warning_of(program.name),
            "server": parties.server,
            "class_names": list(self.class_names),
            "image": list(program.image),
            "relus": program.relu_count,
            "ring_bits": program.ring_bits,
            "has_weights": parties.clear is not None,
            "backend": self.desk.backend,
            "samples": [
                {"name": name, "licence": sample.licence, "is_known": sample.is_known}
                for name, sample in self.samples.items()
            ],
        }

    def answer(self, picture: bytes, options: Mapping[str, str], is_wanted: Callable[[], bool]) -> dict[str, Any]:
        """`picture` is a file's content; what `is_wanted` no longer confirms is not asked."""
        pixels = self.desk.parties.client.pixels(read_upright(io.BytesIO(picture), "picture"))
        if options.get("clear"):
            found = self.in_the_clear(pixels)
        else:
            found = self.desk.ask(pixels, chosen_backend(options), is_wanted)
            if options.get("compare"):
                found["clear"] = self.desk.undisturbed(partial(self._clear().compare, pixels, found))
        # Channels last, as a canvas wants them.
        shown = pixels.transpose(1, 2, 0)
        picture_part = {
            "shape": list(shown.shape),
            "bytes": base64.b64encode(shown.tobytes()).decode(),
            "counts": byte_counts(shown.tobytes()).tolist(),
        }
        return {**found, "picture": picture_part}

    def in_the_clear(self, pixels: Pixels) -> dict[str, Any]:
        return self.desk.undisturbed(partial(self._clear().answer, pixels))

    def _clear(self) -> InTheClear:
        if self.desk.parties.clear is None:
            raise InputError(
                "only the server has the weights",
                where="in the clear",
                remedy="Start the page with the model on this machine: sphynx app --local MODEL.",
            )
        return self.desk.parties.clear

    def sample(self, name: str) -> Image:
        if name not in self.samples:
            raise InputError(f"{name!r} is not a valid sample", remedy=f"Choose one of: {', '.join(self.samples)}.")
        return self.samples[name].picture


def chosen_backend(options: Mapping[str, str]) -> Backend:
    for backend in BACKENDS:
        if options.get("backend") == backend:
            return backend
    raise InputError(
        f"{options.get('backend')!r} is not a valid ReLU backend", remedy=f"Choose one of: {', '.join(BACKENDS)}."
    )
