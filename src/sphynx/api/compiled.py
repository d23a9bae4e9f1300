"""A trained network as exact integers, ready to run privately; `compiling` makes it.

    compiled = sphynx.Compiled.load("compiled/digits")
    print(compiled.relus, compiled.check().accuracy)

A compiled folder is read, estimated, asked and served without torch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sphynx.data.source import FILE, DataSource, Split, recorded_source, save_source
from sphynx.errors import InputError
from sphynx.program.backends import BACKENDS, Backend, check_backend
from sphynx.program.classes import real_logits
from sphynx.program.cost.estimate import Estimate
from sphynx.program.cost.estimate import estimate as estimate_program
from sphynx.program.cost.link import Link, parse_link
from sphynx.program.folder import save_compiled
from sphynx.program.interpret import interpret
from sphynx.program.ir import Program
from sphynx.program.judgement import Judgement, Original, judge, load_original, save_original
from sphynx.program.outputs import joined
from sphynx.program.revealing import revealed
from sphynx.program.security import Reveal, Security, require_mode
from sphynx.protocol.planned_he import planned_he
from sphynx.run.update import Listener, Update, ignore
from sphynx.service.prediction import Prediction
from sphynx.space.artifact import CARD
from sphynx.units import percent
from sphynx.zoo.by_name import load_by_name
from sphynx.zoo.shipped import program_path

if TYPE_CHECKING:
    from torch import Tensor

    from sphynx.compiler.check import Check
    from sphynx.compiler.fusion.approximate import Approximation
    from sphynx.data.images import ImageSet
    from sphynx.data.samples import Given, Samples
    from sphynx.network.trained import TrainedNetwork


@dataclass(frozen=True, eq=False)
class Compiled:
    """A program, which is public, and its weights, which are the server's secret.

    >>> compiled = sphynx.Compiled.load("compiled/digits")
    >>> compiled.relus, compiled.image
    (512, Shape(channels=1, height=8, width=8))
    >>> compiled.infer(sphynx.open_data("digits").test.images[:2].numpy()).shape
    (2, 10)
    """

    program: Program
    weights: Mapping[str, NDArray[Any]] = field(repr=False)  # secrets: no log or traceback may print them
    name: str  # the program's, or as it was asked for
    source: DataSource | None = None  # the data that it was made with
    logit_error: float | None = None  # on the calibration images, relative to the logits' spread; known when compiled
    corrections: Mapping[str, NDArray[Any]] | None = field(default=None, repr=False)  # for `save(derivable=True)`
    folder: Path | None = None  # where it was loaded from
    original: Original | None = field(default=None, repr=False)  # the float network's answers, where they were kept
    judged: Judgement | None = None  # beside them, on the calibration images; known when compiled
    approximations: tuple[Approximation, ...] = ()  # of smooth functions, layer by layer; known when compiled
    approximation_error: float = 0.0  # of the logits, by those alone, relative to their spread

    def __repr__(self) -> str:
        """One line: a program has hundreds of steps."""
        off = "" if self.logit_error is None else f", logits off by {percent(self.logit_error)} of their spread"
        ring = f"ring of {self.program.ring_bits} bits"
        return f"Compiled({self.name!r}: {self.image}, {self.relus:,} ReLUs, {ring}{off})"

    @classmethod
    def load(cls, folder_or_name: str | Path, progress: Listener = ignore) -> Compiled:
        """A folder that `save` made, or a model's name, whose integer weights are derived once, which is reported to
        `progress`."""
        folder, program, weights = load_by_name(folder_or_name, lambda line: progress(Update("load", note=line)))
        of_model = program_path(folder_or_name).parent / CARD
        source = recorded_source(folder / FILE) or recorded_source(of_model)
        name = program.name or Path(folder_or_name).resolve().name
        original = load_original(folder)
        return cls(program, weights, name, source, folder=folder, original=original)

    def save(self, folder: str | Path, *, derivable: bool = False) -> Path:
        """program.json, weights.safetensors, original.safetensors (what the float network answers to the calibration
        images), and data.json, which says where the data were.

        `derivable`, for a model that comes with Sphynx: corrections.safetensors in place of the weights, which follow
        from it and the model.
        """
        folder = Path(folder)
        save_compiled(folder, self, derivable=derivable)
        if not derivable:  # a model's card says which data it knows
            save_source(folder, self.source)
            save_original(folder, self.original)
        return folder

    @property
    def relus(self) -> int:
        return self.program.relu_count

    @property
    def comparisons(self) -> int:
        """Comparisons of max pools; each costs what a ReLU costs."""
        return self.program.comparison_count

    @property
    def image(self) -> tuple[int, int, int]:
        """Channels, height, width of the uint8 images that it reads."""
        return self.program.image

    @property
    def class_names(self) -> tuple[str, ...]:
        return self.program.class_names

    def infer(self, images: NDArray[np.uint8] | Tensor) -> NDArray[np.float64]:
        """Scores of classes in the clear, [n, classes], of images [n, channels, height, width]: what clients get."""
        integers = interpret(self.program, self.weights, self._integers(images))
        return real_logits(self.program, integers)

    def outputs(self, images: NDArray[Any] | Tensor) -> dict[str, NDArray[np.float64]]:
        """All outputs in the clear, by name, [n, ...] each, as the network gives them: what clients get. A program of
        numbers takes these as clients give them, and clips them to its range."""
        return self._outputs(self._integers(images))

    def _outputs(self, integers: NDArray[Any]) -> dict[str, NDArray[np.float64]]:
        found = interpret(self.program, self.weights, integers)
        return self.program.answers(self.program.real_numbers(found))

    def _integers(self, images: NDArray[Any] | Tensor) -> NDArray[Any]:
        given, source = np.asarray(images), self.program.input
        return given if source.accepts_files else source.quantise(given, self.program.image, where=self.name)

    def infer_privately(
        self,
        images: NDArray[Any] | Tensor,
        *,
        backend: Backend = "gmw",
        security: Security = "semi-honest",
        reveal: Reveal = "logits",
        margin: float = 0.0,
    ) -> list[Prediction]:
        """Run both parties here, in two threads, without TLS: shows what an inference costs, and that it is exact.

        `images` are uint8 [n, channels, height, width]; each is asked about by itself. With the security
        `malicious-client`, which needs the backend gc, the server checks all that the client does. With `reveal`
        "label" the client gets the class alone, or none where the best score leads the second by less than `margin`.
        """
        from sphynx.api.both_parties import ask_privately

        check_backend(backend, BACKENDS, where="`backend`")
        security = require_mode(security, backend, where="`security`")
        program = revealed(self.program, reveal, margin)
        return ask_privately(program, self.weights, self._integers(images), backend, security=security)

    def check(
        self,
        data: Given | ImageSet | str | Path | None = None,
        *,
        split: Split = "test",
        images: int = 0,
        network: TrainedNetwork | str | Path | None = None,
    ) -> Check:
        """Integer accuracy on images (0: all), how much of each range they use; needs torch.

        With the `network` that it was compiled from: float accuracy, and how often the two agree. Images need no
        labels: then nothing is said of accuracy.
        """
        from sphynx.api.networks import load_network
        from sphynx.compiler.check import check

        trained = load_network(network) if isinstance(network, str | Path) else network
        chosen = self.images(data, split=split, images=images)
        if trained is None:
            return check(self.program, self.weights, chosen)
        return check(self.program, self.weights, chosen, trained.module, (trained.mean, trained.std))

    def judge(self, data: Given | str | Path | None = None) -> Judgement | None:
        """Compares it with the float network's answers to the calibration images, which are read from the data again;
        None if no answers were kept, or if the images have changed. Needs torch."""
        from sphynx.compiler.calibration import integers_of
        from sphynx.data.samples import samples_of

        if self.original is None:
            return None
        opened = self._opened(data, len(self.original.answers))
        try:
            images = integers_of(samples_of(opened, len(self.original.answers)), self.program)
        except InputError:  # of another size
            return None
        if not self.original.is_of(images):
            return None
        return judge(self.original, joined(self._outputs(images)), layout=self.program)

    def images(
        self, data: Given | ImageSet | str | Path | None = None, *, split: Split = "test", images: int = 0
    ) -> Samples:
        """The images that `check` uses: those of the data that it was made with, unless others are given. Their classes
        are in the program's order. Only a data set has splits."""
        from sphynx.data.class_order import ordered_as
        from sphynx.data.images import DataFace, ImageSet
        from sphynx.data.samples import Samples, samples_of
        from sphynx.data.streamed import StreamedSet

        if isinstance(data, ImageSet):
            return Samples.of_set(ordered_as(data.sample(images), self.class_names))
        data = self._opened(data, images)
        if not isinstance(data, DataFace):
            return samples_of(data, images)
        every = data.test if split == "test" else data.train
        if isinstance(every, StreamedSet) and not images:
            raise InputError(
                "streamed images can only be checked on a sample",
                where="`images`",
                remedy="Give its size: `images=1000`.",
            )
        return Samples.of_set(ordered_as(every.sample(images), self.class_names, where=data.name), data.name)

    def _opened(self, data: Given | str | Path | None, count: int) -> Given:
        """The data given, or those that it was made with."""
        from sphynx.data.open import open_known
        from sphynx.data.samples import open_samples

        if data is not None and not isinstance(data, str | Path):
            return data
        spec = str(data or (self.source.spec if self.source else ""))
        loose = open_samples(spec, self.program.image, count) if spec else None
        return loose or open_known(str(data or ""), None, None, self.source, where=self.name)

    def estimate(
        self,
        link: str | Link = "lan",
        *,
        backend: Backend | None = None,
        reveal: Reveal = "logits",
        margin: float = 0.0,
        bundles: int = 1,
        weight_memory_bytes: int | None = None,
    ) -> Estimate:
        """Time and traffic of one private inference, layer by layer, on this machine, which is measured once.

        `link` is loopback, lan, wan, or one such as "20ms,300Mbit". Without a `backend`: for the one that is faster
        online. Offline figures are for one of `bundles` that are prepared together. A server with less memory for
        prepared weights than they take transforms the others each time.
        """
        from sphynx.api.rates import machine_rates

        if backend is not None:
            check_backend(backend, BACKENDS, where="`backend`")
        parsed = parse_link(link) if isinstance(link, str) else link
        if bundles < 1:
            raise InputError(f"there are {bundles} of them", where="`bundles`", remedy="Ask for one or more.")
        if weight_memory_bytes is not None and weight_memory_bytes < 0:
            raise InputError(
                f"{weight_memory_bytes} is below zero",
                where="`weight_memory_bytes`",
                remedy="Give 0 to transform all weights each time, or leave it away to hold them all.",
            )
        program = revealed(self.program, reveal, margin)
        planned = planned_he(program, bundles, weight_memory_bytes)
        return estimate_program(program, machine_rates(), parsed, backend, planned=planned, bundles=bundles)
