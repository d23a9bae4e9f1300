"""Processes of a benchmark: what they tell, how they fail, and that none outlives it."""

import multiprocessing
import os
from multiprocessing.connection import Connection

import pytest

from sphynx.bench.workers import tell, told_by, told_by_all, values_of, workers
from sphynx.errors import ConnectionLostError, SphynxError

MENDING = {"where": "bench", "remedy": "Run it again."}


def double(told: Connection) -> int:
    return 2 * int(told.recv())


def fail(_told: Connection) -> None:
    raise ValueError("the reason")


def fail_once_told(told: Connection) -> None:
    told.recv()
    raise ValueError("the reason")


def lose(_told: Connection) -> None:
    raise ConnectionLostError("the other side is gone", remedy="Look there.")


def die(_told: Connection) -> None:
    os._exit(9)


def die_without_reading(told: Connection) -> None:
    told.poll(None)
    os._exit(9)


def test_each_gets_its_own_words() -> None:
    with workers((double,), (double,)) as ends:
        for number, end in enumerate(ends, 1):
            end.send(number)
        assert values_of(map(told_by, ends), **MENDING) == [2, 4]
    assert multiprocessing.active_children() == []


def test_the_reason_is_shown_rather_than_what_followed_from_it() -> None:
    with pytest.raises(SphynxError, match="ValueError: the reason"), workers((lose,), (fail,)) as ends:
        values_of(map(told_by, ends), **MENDING)


def test_one_that_dies_is_noticed_and_none_is_left_waiting() -> None:
    with pytest.raises(SphynxError, match="without an error message"), workers((double,), (die,)) as ends:
        values_of([told_by(ends[1])], **MENDING)
    assert multiprocessing.active_children() == []


def test_one_that_dies_before_or_after_it_is_sent_a_word_is_noticed_alike() -> None:
    """The pipe then breaks, or is reset, where it otherwise only ends."""
    with pytest.raises(SphynxError, match="without an error message"), workers((die_without_reading,)) as (end,):
        tell(end, "unread")
        values_of([told_by(end)], **MENDING)
    with pytest.raises(SphynxError, match="without an error message"), workers((die,)) as (end,):
        end.poll(None)
        tell(end, "too late")
        values_of([told_by(end)], **MENDING)


def test_all_are_heard_until_one_fails() -> None:
    with workers((double,), (double,)) as ends:
        for number, end in enumerate(ends, 1):
            end.send(number)
        assert told_by_all(ends) == [("done", 2), ("done", 4)]
    with pytest.raises(SphynxError, match="ValueError: the reason"), workers((double,), (fail,)) as ends:
        values_of(told_by_all(ends), **MENDING)  # the first waits for a number


def test_after_a_lost_connection_the_reason_is_waited_for() -> None:
    with pytest.raises(SphynxError, match="ValueError: the reason"), workers((fail_once_told,), (lose,)) as ends:
        ends[1].poll(None)
        ends[0].send("fail")
        values_of(told_by_all(ends), **MENDING)
