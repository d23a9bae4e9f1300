"""The one worker that uses the client: it answers questions in turn, and between them keeps bundles ready, the next
one in memory.

Progress goes to a `Bulletin`, under these kinds:

    bundles     how many are ready for each backend, which backend is kept ready, and how many of it
    work        preparing (the offline phase of a bundle), asking (the online phase, layer by layer) or nothing; how far
                it is, as a part of 1, and bytes each way
    trouble     what went wrong while bundles were made ahead, or nothing; the next question tries again
"""

from __future__ import annotations

import base64
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import cache, partial
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from sphynx.app.answer import answer_of
from sphynx.app.bulletin import Bulletin
from sphynx.app.histogram import byte_counts, chi_square_same, tail_probability
from sphynx.app.layer_names import describe_layer
from sphynx.app.parties import Parties
from sphynx.app.watch import Seen, Watch
from sphynx.errors import InputError, SphynxError
from sphynx.program.backends import BACKENDS, Backend
from sphynx.program.cost.estimate import estimate
from sphynx.program.cost.link import LINKS
from sphynx.program.cost.rates import REFERENCE, Rates
from sphynx.service.answer_record import AnswerRecord
from sphynx.service.prediction import Prediction

STOP_SECONDS = 10.0
MOST_RECORDS = 64

Found = TypeVar("Found")
Pixels = NDArray[np.uint8]


class Desk:
    def __init__(
        self,
        parties: Parties,
        watch: Watch,
        bulletin: Bulletin,
        rates: Callable[[], Rates],
        *,
        backend: Backend = "gmw",
        keep_ready: int = 2,
    ) -> None:
        """`watch` observes the parties' client. `rates` measures this machine, when an estimate is first asked for."""
        self.parties, self.bulletin = parties, bulletin
        self._watch, self._keep_ready = watch, keep_ready
        self.backend = backend  # what bundles are kept ready for
        self._ready = dict.fromkeys(BACKENDS, 0)
        self._loaded: Backend | None = None  # whose next bundle is in memory
        self._paused = False
        # Pixels, and what was sent for them: of the latest question, and of the latest other picture.
        self._latest: tuple[bytes, bytes] | None = None
        self._other: tuple[bytes, bytes] | None = None
        self._asked, self._records = 0, dict[int, AnswerRecord]()
        self._tasks: queue.Queue[Callable[[], None] | None] = queue.Queue()
        self._thread = threading.Thread(target=self._work, name="sphynx-app", daemon=True)
        program = parties.client.program
        self._offline_bytes = {
            backend: estimate(program, REFERENCE, LINKS["loopback"], backend).total.offline_bytes
            for backend in BACKENDS
        }
        self._online_layers = 2 + sum(1 for _ in program.activations)
        self._rates = cache(rates)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """A bundle that is being made is waited for, so that both parties know of it; but not for long."""
        self._keep_ready = 0
        self._tasks.put(None)
        self._thread.join(STOP_SECONDS)

    def prefer(self, backend: Backend) -> None:
        """Keeps bundles ready for this backend from now on."""
        self._in_turn(lambda: setattr(self, "backend", backend)).result()

    def ask(self, pixels: Pixels, backend: Backend, is_wanted: Callable[[], bool] = lambda: True) -> dict[str, Any]:
        """Ask privately, unless `is_wanted` denies it when its turn comes: that would use up a bundle for nobody."""
        return self._in_turn(partial(self._ask, pixels, backend, is_wanted)).result()

    def undisturbed(self, work: Callable[[], Found]) -> Found:
        """Do what is timed on this machine's cores while no bundle is made on them."""
        return self._in_turn(work).result()

    def estimates(self, backend: Backend) -> dict[str, Any]:
        """Estimate one inference on this machine over each named link."""
        return self._in_turn(partial(self._estimates, backend)).result()

    def _in_turn(self, work: Callable[[], Found]) -> Future[Found]:
        done: Future[Found] = Future()

        def task() -> None:
            try:
                done.set_result(work())
            except BaseException as error:  # whoever waits for it gets it
                done.set_exception(error)

        self._tasks.put(task)
        return done

    def _work(self) -> None:
        self._count()
        while True:
            chore = self._chore()
            try:
                task = self._tasks.get(block=chore is None)
            except queue.Empty:
                if chore is not None:
                    self._do(chore)
                continue
            if task is None:
                return
            if self._paused:
                self._paused = False
                self.bulletin.publish("trouble", {"what": "", "remedy": ""})
            task()
            self._count()

    def _count(self) -> None:
        try:
            self._ready = {backend: self.parties.client.ready_with(backend) for backend in BACKENDS}
        except SphynxError as error:
            self._pause(error)
        self.bulletin.publish("bundles", {"ready": self._ready, "kept": self.backend, "keep_ready": self._keep_ready})
        self.bulletin.publish("work", {"doing": "nothing"})

    def _chore(self) -> Callable[[], object] | None:
        """Choose what to do while nobody asks. A bundle in memory makes the next answer quick: that comes first."""
        if self._paused:
            return None
        if self._ready[self.backend] and self._loaded != self.backend:
            return self._load_next
        return self._make_one_ready if self._ready[self.backend] < self._keep_ready else None

    def _do(self, chore: Callable[[], object]) -> None:
        try:
            self._watch.start(partial(self._report, self.backend))
            chore()
        except SphynxError as error:
            self._pause(error)
        finally:
            self._watch.take()
        self._count()

    def _load_next(self) -> None:
        self.parties.client.warm(backend=self.backend)
        self._loaded = self.backend

    def _make_one_ready(self) -> None:
        self.parties.client.prepare(1, backend=self.backend)

    def _pause(self, error: SphynxError) -> None:
        self._paused = True
        self.bulletin.publish("trouble", {"what": str(error), "remedy": error.remedy})

    def _report(self, backend: Backend, progress: dict[str, Any]) -> None:
        if progress["phase"] == "online":
            part = progress["layers_done"] / self._online_layers
            progress = {**progress, "title": describe_layer(progress["layer"])}
            self.bulletin.publish("work", {"doing": "asking", **progress, "layers": self._online_layers, "part": part})
        elif progress["phase"]:
            progress = {**progress, "title": describe_layer(progress["layer"])}
            part = (progress["sent_bytes"] + progress["received_bytes"]) / self._offline_bytes[backend]
            self.bulletin.publish(
                "work", {"doing": "preparing", **progress, "backend": backend, "part": min(part, 1.0)}
            )

    def _ask(self, pixels: Pixels, backend: Backend, is_wanted: Callable[[], bool]) -> dict[str, Any]:
        if not is_wanted():
            raise InputError("nobody is waiting for this answer any more", remedy="Ask again.")
        self._watch.start(partial(self._report, backend))
        self._loaded = None
        try:
            self.parties.client.warm(
                backend=backend
            )  # reading the bundle from the disk does not belong to the online phase
            prediction = self.parties.client.infer(pixels, backend=backend)
        finally:
            seen = self._watch.take()
        self._keep_record(prediction)
        return {
            **self._answer(prediction, seen),
            "number": self._asked,
            **self._compare_masked(pixels.tobytes(), seen.masked_picture),
        }

    def _answer(self, prediction: Prediction, seen: Seen) -> dict[str, Any]:
        online = seen.of_phase("online")
        return {
            **answer_of(prediction),
            "prepared_now": bool(seen.of_phase("offline")),
            "online_sent_bytes": sum(stage.sent_bytes for stage in online),
            "online_received_bytes": sum(stage.received_bytes for stage in online),
            "film": _film(seen),
            "server_saw": base64.b64encode(seen.sent).decode(),
            "layers": [{**stage.to_json(), "title": describe_layer(stage.section.layer)} for stage in online],
        }

    def _keep_record(self, prediction: Prediction) -> None:
        client = self.parties.client
        self._asked += 1
        self._records[self._asked] = AnswerRecord.of(
            client.program, self.parties.server, client.security, [("a picture on this machine", prediction)]
        )
        self._records.pop(self._asked - MOST_RECORDS, None)

    def record(self, number: str) -> AnswerRecord:
        """The record of the session's answer of this number; the latest are kept."""
        for known, record in tuple(self._records.items()):
            if number == str(known):
                return record
        raise InputError("the record of this answer is gone", remedy="Ask again.")

    def _compare_masked(self, picture: bytes, masked: bytes) -> dict[str, Any]:
        """Show what the server received, beside what it received of the latest picture that was another one."""
        if self._latest is not None and self._latest[0] != picture:
            self._other = self._latest
        self._latest = (picture, masked)
        if self._other is None:
            return {"received": _show(masked), "other": None}
        both = np.stack([byte_counts(masked), byte_counts(self._other[1])])
        probability = tail_probability(*chi_square_same(both))
        return {"received": _show(masked), "other": {**_show(self._other[1]), "probability": probability}}

    def _estimates(self, backend: Backend) -> dict[str, Any]:
        program, rates = self.parties.client.program, self._rates()
        totals = {name: estimate(program, rates, link, backend).total for name, link in LINKS.items()}
        return {
            name: {"offline_seconds": total.offline_seconds, "online_seconds": total.online_seconds}
            for name, total in totals.items()
        }


def _film(seen: Seen) -> list[dict[str, Any]]:
    """Tell every message of the online phase: which way, when after the first, how long, and how it begins."""
    return [
        {
            "title": describe_layer(message.section.layer),
            "up": message.is_sent,
            "at": message.at_s - seen.messages[0].at_s,
            "bytes": message.size,
            "start": base64.b64encode(message.start).decode(),
        }
        for message in seen.messages
    ]


def _show(message: bytes) -> dict[str, Any]:
    return {"bytes": base64.b64encode(message).decode(), "counts": byte_counts(message).tolist()}
