"""A client of a private inference server. It needs no torch; pictures need Pillow: `pip install 'sphynx[client]'`.

with sphynx.Client("inference.example:7443", keys="keys/alice") as client:
    print(client.infer("cat.jpg").label)
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from sphynx.errors import ConnectionLostError, PeerGaveUpError
from sphynx.program.backends import Backend, BackendChoice
from sphynx.program.ir import Program
from sphynx.protocol.channel import Observer
from sphynx.service.client import Client as Connection
from sphynx.service.hosting import parse_address
from sphynx.service.pictures import pixels_of
from sphynx.service.prediction import Prediction

if TYPE_CHECKING:
    from PIL.Image import Image

Answer = TypeVar("Answer")

STARTING_S = 10.0  # that a server on this machine takes to start, when the machine is busy


class Client:
    """Connects when it is first used, or entered, and again after a connection was lost. Threads may share it: their
    calls take turns. Processes need one each, and may share keys and bundles."""

    def __init__(
        self,
        server: str,
        *,
        keys: str | Path,
        state: str | Path | None = None,
        program: str = "",
        timeout_s: float = 120.0,
        wait_s: float = STARTING_S,
        trust_state: bool = False,
        warn: Callable[[str], None] = warnings.warn,
        observer: Observer | None = None,
    ) -> None:
        """`server` is HOST:PORT; `keys` the folder that `sphynx keys issue NAME --client` made, which also takes the
        bundles unless `state` names another. `program` insists on the one with this hash. `wait_s` is how long a
        port that refuses is tried again: the server may be just starting. `trust_state` keeps bundles after a restart
        of the machine or a move of their folder; `warn` hears of an old list of revoked keys; `observer` watches
        what this end sends and receives."""
        host, port = parse_address(server)
        self._connect = partial(
            Connection, host, port, keys=Path(keys), state=None if state is None else Path(state), program=program,
            timeout_s=timeout_s, wait_s=wait_s, trust_state=trust_state, warn=warn, observer=observer,
        )  # fmt: skip
        self._connecting = threading.Lock()
        self._connection: Connection | None = None

    def infer(self, image: str | Path | NDArray[np.uint8] | Image, *, relu: BackendChoice = "auto") -> Prediction:
        """What is in a picture, which the server never sees: a file, a PIL image, or a uint8 array [channels, height,
        width] (`image_shape`). Files and PIL images are resized. Makes a bundle first where none is ready.

        `relu` insists on a bundle for gc or for gmw; auto takes what is ready."""
        return self._asked(lambda connection: connection.infer(pixels_of(image, connection.program), relu=relu))

    def pixels(self, image: str | Path | NDArray[np.uint8] | Image) -> NDArray[np.uint8]:
        """The picture as the program reads it: what `infer` asks about."""
        return pixels_of(image, self.program)

    def prepare(
        self, count: int, *, relu: BackendChoice = "auto", done: Callable[[int], None] = lambda _number: None
    ) -> Backend:
        """Makes `count` bundles ahead, before there is a picture; each serves one. `done` hears of each.

        `relu` chooses how ReLUs run: gc, gmw, or what is faster over the measured link. Returns the choice."""
        return self._asked(lambda connection: connection.prepare(count, relu=relu, done=done))

    def warm(self) -> None:
        """Loads the next bundle into memory, so that the next inference is as quick as it can be."""
        self._asked(lambda connection: connection.warm())

    @property
    def ready(self) -> int:
        """How many bundles are there for later, for one picture each."""
        return self._asked(lambda connection: sum(entry.batch == 1 for entry in connection.ready))

    def ready_with(self, relu: Backend) -> int:
        """How many of them run ReLUs this way."""
        return self._asked(
            lambda connection: sum(entry.batch == 1 and entry.backend == relu for entry in connection.ready)
        )

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """Channels, height and width of the images that the server's program reads."""
        return self.program.image

    @property
    def class_names(self) -> tuple[str, ...]:
        return self.program.class_names

    @property
    def program(self) -> Program:
        """What the server computes, without its weights: public."""
        return self._connected().program

    def close(self) -> None:
        """Says goodbye. Bundles are kept; a later call connects again."""
        with self._connecting:
            connection, self._connection = self._connection, None
        if connection is not None:
            connection.__exit__(None, None, None)

    def __enter__(self) -> Self:
        self._connected()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self._give_up(self._connection)

    def _asked(self, ask: Callable[[Connection], Answer]) -> Answer:
        connection = self._connected()
        try:
            return ask(connection)
        except (ConnectionLostError, PeerGaveUpError):
            self._give_up(connection)  # the next call connects again
            raise

    def _connected(self) -> Connection:
        with self._connecting:
            if self._connection is None:
                self._connection = self._connect().__enter__()
            return self._connection

    def _give_up(self, connection: Connection | None) -> None:
        with self._connecting:
            if connection is None or self._connection is not connection:
                return  # another thread was faster
            self._connection = None
        connection.__exit__(ConnectionLostError, None, None)
