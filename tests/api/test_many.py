"""Many pictures asked about over real TLS: a stream of answers, over several connections, through one that breaks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

import sphynx
from sphynx.api.many import PORTION

IMAGES = np.random.default_rng(0).integers(0, 256, (PORTION + 3, 1, 4, 4)).astype(np.uint8)


@pytest.fixture
def make_client(server: sphynx.Server, authority: Path, tmp_path: Path) -> Iterator[Callable[[], sphynx.Client]]:
    with ExitStack() as stack:
        yield lambda: stack.enter_context(
            sphynx.Client(server.address, keys=authority / "alice", state=tmp_path / "bundles", backend="gc")
        )


@pytest.mark.parametrize("concurrency", [1, 2])
def test_every_picture_is_answered_once_and_right(
    concurrency: int, make_client: Callable[[], sphynx.Client], tiny: sphynx.Compiled
) -> None:
    told: list[sphynx.Update] = []
    client = make_client()
    answers = dict(client.infer_many(list(IMAGES), concurrency=concurrency, progress=told.append))
    assert sorted(answers) == list(range(len(IMAGES)))
    logits = np.stack([answers[number].logits for number in range(len(IMAGES))])
    assert np.array_equal(logits, tiny.infer(IMAGES))
    assert [(one.done, one.total) for one in told] == [(done, len(IMAGES)) for done in range(1, len(IMAGES) + 1)]
    assert client.infer(IMAGES[0]).label  # it still serves


def test_pictures_are_read_as_they_are_needed(make_client: Callable[[], sphynx.Client]) -> None:
    read: list[int] = []

    def endless() -> Iterator[np.ndarray]:
        while True:
            read.append(len(read))
            yield IMAGES[0]

    answers = make_client().infer_many(endless())
    assert next(answers)[0] == 0 and next(answers)[0] == 1 and len(read) == PORTION


def test_a_connection_that_breaks_midway_costs_no_answer(
    make_client: Callable[[], sphynx.Client], tiny: sphynx.Compiled
) -> None:
    client, found = make_client(), {}
    for number, answer in client.infer_many(list(IMAGES)):
        found[number] = answer.logits
        if number == 2:
            assert client._connection is not None
            client._connection.hang_up()
    assert np.array_equal(np.stack([found[number] for number in range(len(IMAGES))]), tiny.infer(IMAGES))


def test_answers_that_were_given_are_kept_when_the_server_is_gone(
    tiny: sphynx.Compiled, authority: Path, tmp_path: Path
) -> None:
    found = []
    with sphynx.Server(tiny, keys=authority / "server", listen="127.0.0.1:0", state=tmp_path / "state") as server:
        client = sphynx.Client(server.address, keys=authority / "alice", state=tmp_path / "bundles", wait_s=0)
        answers = client.infer_many(list(IMAGES))
        found += [next(answers) for _ in range(3)]
    with pytest.raises((sphynx.ConnectionLostError, sphynx.PeerGaveUpError)):
        found += answers
    assert [number for number, _ in found][:3] == [0, 1, 2]


def test_a_stream_that_nobody_reads_to_its_end_is_over_soon(make_client: Callable[[], sphynx.Client]) -> None:
    client = make_client()
    answers = client.infer_many(list(IMAGES), concurrency=2)
    next(answers)
    answers.close()  # type: ignore[attr-defined]  # a generator
    assert client.infer(IMAGES[0]).label
    with pytest.raises(sphynx.InputError, match="0 is not a valid number of connections"):
        client.infer_many(IMAGES, concurrency=0)


def test_asking_from_an_event_loop(
    server: sphynx.Server, authority: Path, tmp_path: Path, tiny: sphynx.Compiled
) -> None:
    beats = 0

    async def beat() -> None:
        nonlocal beats
        while True:
            beats += 1
            await asyncio.sleep(0)

    async def ask() -> dict[int, np.ndarray]:
        heart = asyncio.create_task(beat())
        async with sphynx.aio.Client(server.address, keys=authority / "alice", state=tmp_path / "b") as client:
            assert (await client.program()).image == (1, 4, 4)
            await client.prepare(1)
            await client.warm()
            one = await client.infer(IMAGES[0])
            found = {number: answer.logits async for number, answer in client.infer_many(list(IMAGES), concurrency=2)}
            assert np.array_equal(one.logits, found[0])
        heart.cancel()
        return found

    found = asyncio.run(ask())
    assert np.array_equal(np.stack([found[number] for number in range(len(IMAGES))]), tiny.infer(IMAGES))
    assert beats > 1
