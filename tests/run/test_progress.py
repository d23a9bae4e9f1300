"""Progress: aligned rows that also read well in a log file."""

import io

from sphynx.run.progress import QUIET, Progress
from sphynx.units import duration


def test_rows_are_aligned_and_empty_where_nothing_is_known() -> None:
    stream = io.StringIO()
    with Progress("train", total=4, columns=("epoch", "loss", "held out"), stream=stream) as progress:
        progress.advance()
        progress.row(epoch=1, loss=2.30259)
        progress.advance()
        progress.row(epoch=2, loss=123.456, **{"held out": 0.5})
    lines = stream.getvalue().splitlines()
    assert len(lines) == 3 and len({len(line) for line in lines}) == 1
    assert lines[0].split() == ["epoch", "loss", "held", "out", "left"]
    assert lines[1].split()[:2] == ["1", "2.3026"] and lines[2].split()[:3] == ["2", "123.5", "0.5000"]


def test_time_left_counts_only_what_this_process_did() -> None:
    progress = Progress("train", total=100, done=90, voice=QUIET)
    assert progress.seconds_left() is None
    progress.advance(10)
    assert progress.seconds_left() == 0


def test_quiet_prints_nothing() -> None:
    stream = io.StringIO()
    with Progress("train", total=1, columns=("epoch",), voice=QUIET, stream=stream) as progress:
        progress.row(epoch=1)
        progress.note("hello")
    assert stream.getvalue() == ""


def test_durations() -> None:
    assert [duration(s) for s in (4.21, 200, 3720)] == ["4.2 s", "3 min 20 s", "1 h 02 min"]
