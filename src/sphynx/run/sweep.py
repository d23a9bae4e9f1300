"""Independent pieces of long work, such as the seeds of a training: one after the other here, or on a Ray cluster.

    with open_sweep("auto", voice) as sweep:
        results = sweep.map({"seed 0": partial(train, first), "seed 1": partial(train, second)})

What a sweep returns does not depend on where it ran: results come in the order of the work, and a piece is the same
call with as many threads. Work keeps itself in folders and continues what it finds there, so a piece whose worker died
is simply called again (`may_repeat`); the folders have to be on a disk that all machines of a cluster share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol, TypeVar

from sphynx.errors import MissingPartError
from sphynx.run.progress import Voice

Result = TypeVar("Result")
HERE, LOCAL = "", "local"


class Sweep(Protocol):
    @property
    def may_repeat(self) -> bool:
        """Return whether a piece may be called again after it was cut off: it should continue from its folder."""
        ...

    def map(self, work: Mapping[str, Callable[[], Result]]) -> list[Result]:
        """The results in order; the names are for people. What a piece raises is raised here."""
        ...


class InTurn:
    """Run the pieces one after another in this process. The work itself says what is to be said."""

    may_repeat = False

    def map(self, work: Mapping[str, Callable[[], Result]]) -> list[Result]:
        return [piece() for piece in work.values()]


IN_TURN = InTurn()


@contextmanager
def open_sweep(address: str, voice: Voice) -> Iterator[Sweep]:
    """`address`: "" for this process, "local" for Ray on this machine, "auto" for the cluster that runs here, HOST:PORT
    for one elsewhere."""
    if address == HERE:
        yield IN_TURN
        return
    try:
        from sphynx.run.ray_sweep import on_ray
    except ModuleNotFoundError:
        raise MissingPartError(
            "a sweep on Ray needs the package ray", where="`ray`", remedy="pip install ray"
        ) from None
    with on_ray(None if address == LOCAL else address, voice) as sweep:
        yield sweep
