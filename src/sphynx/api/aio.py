"""A client for asyncio: `sphynx.aio.Client`. Its calls run in threads, so that the event loop goes on.

>>> async def ask(address, pictures):
...     async with sphynx.aio.Client(address, keys="keys/alice") as client:
...         print((await client.infer("cat.jpg")).label)
...         async for number, answer in client.infer_many(pictures, concurrency=2):
...             print(number, answer.label)
>>> sphynx.aio.Client.__name__
'Client'
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from sphynx.api.asking import Client as Blocking
from sphynx.api.many import Numbered
from sphynx.config import Keywords
from sphynx.program.backends import Backend, BackendChoice
from sphynx.program.ir import Program
from sphynx.run.update import Listener, ignore
from sphynx.service.prediction import Prediction
from sphynx.service.settings import ClientSettings

if TYPE_CHECKING:
    from PIL.Image import Image


class Client:
    """Asks as `sphynx.Client` does, whose keywords it takes; tasks may share it, and their calls take turns.

    A task that is cancelled does not stop a call that runs: the connection is used again when that has ended.
    """

    @Keywords(ClientSettings).method
    def __init__(self, server: str | Sequence[str], settings: ClientSettings) -> None:
        """`server` is HOST:PORT, or several of them; keywords are those of `ClientSettings`."""
        self._client = Blocking(server, **vars(settings))

    async def infer(
        self, image: str | Path | NDArray[np.uint8] | Image, *, backend: BackendChoice | None = None
    ) -> Prediction:
        """Classify a picture, which the server never sees."""
        return await asyncio.to_thread(partial(self._client.infer, image, backend=backend))

    async def infer_many(
        self,
        images: Iterable[str | Path | NDArray[np.uint8] | Image],
        *,
        concurrency: int = 1,
        backend: BackendChoice | None = None,
        progress: Listener = ignore,
    ) -> AsyncIterator[Numbered]:
        """Yield (number, answer) as answers come; `progress` is called in a thread."""
        answers = self._client.infer_many(images, concurrency=concurrency, backend=backend, progress=progress)
        try:
            while (answer := await asyncio.to_thread(next, answers, None)) is not None:
                yield answer
        finally:
            await asyncio.shield(asyncio.to_thread(_close, answers))

    async def prepare(
        self, count: int, *, backend: BackendChoice | None = None, progress: Listener = ignore
    ) -> Backend:
        """Make `count` bundles ahead; `progress` is called in a thread after each."""
        return await asyncio.to_thread(partial(self._client.prepare, count, backend=backend, progress=progress))

    async def warm(self, *, backend: BackendChoice | None = None) -> None:
        """Load the next bundle into memory."""
        await asyncio.to_thread(partial(self._client.warm, backend=backend))

    async def program(self) -> Program:
        """Return the program that the server computes, without its weights: public."""
        return await asyncio.to_thread(lambda: self._client.program)

    async def close(self) -> None:
        """Say goodbye. Bundles are kept; a later call connects again."""
        await asyncio.to_thread(self._client.close)

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self._client.__enter__)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *details: object) -> None:
        await asyncio.to_thread(partial(self._client.__exit__, kind, *details))


def _close(answers: Iterator[Numbered]) -> None:
    answers.close()  # type: ignore[attr-defined]  # a generator
