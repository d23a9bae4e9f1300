"""Plan who encrypts what, and when: the public plan of a program's linear maps under RLWE, from its shapes alone.

The client encrypts its share of every tensor that a linear map reads; one reply answers a whole map, all terms summed.
A term that is shifted left by s is computed as W (2^s r): the client encrypts r << s, so that the shift costs no noise.
An upload is therefore a tensor, a shift and a layout, and maps that read one tensor alike share it. Layouts are chosen
for the program as a whole, by the rough costs of sphynx.core.packing_plan. No weights enter: both parties compute the
same plan.

Images that are prepared at once may share ciphertexts (`InputLayout.interleaved`), which most ciphertexts of one image
alone leave nearly empty. How many do is each map's own choice: it costs a map with few channels more products. So a
program has two plans, one for an image alone and one for a group of images, as many as the map has that shares most.
"""

from __future__ import annotations

import atexit
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache

from sphynx.core import rlwe
from sphynx.core.conv_shape import ConvShape
from sphynx.core.packing import ConvPlan, InputLayout
from sphynx.core.packing_plan import answer_seconds, channel_counts, upload_seconds
from sphynx.errors import InputError
from sphynx.program.cost.cost import conv_shape
from sphynx.program.ir import Program

_SWEEPS = 4
MOST_INTERLEAVED = 16  # images
MOST_GROUP_ELEMENTS = (
    1 << 22
)  # of all tensors of a group, together: their masks, shares and material are in memory at once


@dataclass(frozen=True)
class Upload:
    """The client's share of a tensor, times 2^shift, encrypted in one layout."""

    tensor: str
    shift: int
    layout: InputLayout


@dataclass(frozen=True, eq=False)
class ProgramPlan:
    """`schedule` is the order of all messages as the server sees them: an Upload that comes in, or the name of a linear
    map that it answers as soon as its uploads are there."""

    params: rlwe.Params
    convs: Mapping[str, ConvPlan]
    uploads: Mapping[str, tuple[Upload, ...]]  # of each map, term by term
    schedule: tuple[Upload | str, ...]
    drawn: frozenset[Upload]  # of masks that the client draws: all these may be sent ahead of the first reply

    @cached_property
    def distinct_uploads(self) -> tuple[Upload, ...]:
        return tuple(item for item in self.schedule if isinstance(item, Upload))

    @cached_property
    def images(self) -> int:
        """How many images go through it at once, or a multiple of them."""
        return max(conv.interleaved for conv in self.convs.values())

    def whole(self, images: int) -> int:
        """Round up to what goes through the plan: the places of images that are not there hold zeros."""
        return -(-images // self.images) * self.images

    @cached_property
    def products(self) -> int:
        """Count those of `images` images."""
        return sum(conv.products * self.images // conv.interleaved for conv in self.convs.values())

    def upload_bytes(self, upload: Upload, images: int) -> int:
        return images // upload.layout.interleaved * rlwe.upload_bytes(self.params, upload.layout)

    def reply_bytes(self, name: str, images: int) -> int:
        conv = self.convs[name]
        return images // conv.interleaved * rlwe.reply_bytes(self.params, conv)


@cache
def _params_for(ring_bits: int) -> rlwe.Params:
    """Parameters are one object for each ring, as keys, ciphertexts and weights require, however often a program is
    planned."""
    return rlwe.Params.for_ring(ring_bits)


@lru_cache(maxsize=8)
def plan_program(program: Program) -> ProgramPlan:
    try:
        params = _params_for(program.ring_bits)
    except ValueError as error:
        raise InputError(
            f"there are no encryption parameters for a ring of {program.ring_bits} bits ({error})",
            where=program.name or "program",
            remedy="Compile the network again, with more `activation_bits`.",
        ) from None
    return search_plan(program, params, 1)


@lru_cache(maxsize=8)
def plan_group(program: Program) -> ProgramPlan:
    """Plan for a group of images; the plan for one where sharing ciphertexts saves nothing, or would take too much
    memory."""
    alone = plan_program(program)
    elements = program.image.size + sum(program.shapes[step.name].size for step in program.steps)
    most = min(MOST_INTERLEAVED, MOST_GROUP_ELEMENTS // elements)
    together = search_plan(program, alone.params, most) if most > 1 else alone
    return together if together.images > 1 else alone


def plan_images(program: Program, images: int) -> ProgramPlan:
    """Return the cheaper plan for `images` images at once: half of a group costs less than as many images alone."""
    group = plan_group(program)
    return group if 2 * images >= group.images else plan_program(program)


def search_plan(program: Program, params: rlwe.Params, most_interleaved: int) -> ProgramPlan:
    search = _Search(program, params, most_interleaved)
    search.run()
    uploads = {name: search.uploads_of(name, conv) for name, conv in search.chosen.items()}
    origins = program.origins  # maps whose replies the client needs to know its share; none where it drew it
    drawn = frozenset(upload for needed in uploads.values() for upload in needed if not origins[upload.tensor])
    return ProgramPlan(params, search.chosen, uploads, tuple(_schedule(uploads, origins)), drawn)


atexit.register(_params_for.cache_clear)  # native objects that outlive the interpreter are reported as leaks
atexit.register(plan_program.cache_clear)
atexit.register(plan_group.cache_clear)


def _schedule(
    uploads: Mapping[str, tuple[Upload, ...]], origins: Mapping[str, frozenset[str]]
) -> Iterator[Upload | str]:
    """Masks are known at the start and go first, in the order of use; a share that only a reply tells goes after it."""
    waiting, arrived, answered = dict(uploads), set[Upload](), set[str]()
    while waiting:
        known = [u for needed in waiting.values() for u in needed if u not in arrived and origins[u.tensor] <= answered]
        for upload in dict.fromkeys(known):
            arrived.add(upload)
            yield upload
            yield from _answer(waiting, arrived, answered)


def _answer(waiting: dict[str, tuple[Upload, ...]], arrived: set[Upload], answered: set[str]) -> Iterator[str]:
    ready = [name for name, needed in waiting.items() if arrived.issuperset(needed)]
    for name in ready:
        del waiting[name]
        answered.add(name)
        yield name


def _own_plans(
    params: rlwe.Params, name: str, shapes: tuple[ConvShape, ...], most_interleaved: int
) -> dict[int, ConvPlan]:
    """A map's best plan for each number of images that its ciphertexts have room for."""
    try:
        plans = {1: rlwe.plan(params, *shapes)}
    except InputError as error:
        raise InputError(error.what, where=name, remedy=error.remedy) from None
    interleaved = 2
    while interleaved <= most_interleaved:
        with suppress(InputError):
            plans[interleaved] = rlwe.plan(params, *shapes, interleaved=interleaved)
        interleaved *= 2
    return plans


class _Search:
    """Starts with each map's own best plan, then lets maps move to layouts that others use while the total falls."""

    def __init__(self, program: Program, params: rlwe.Params, most_interleaved: int) -> None:
        self.params = params
        self.steps = {step.name: step for step in program.linears}
        self.shapes = {
            step.name: tuple(conv_shape(term, program.shapes[term.source], step.shape) for term in step.terms)
            for step in program.linears
        }
        self.own = {name: _own_plans(params, name, shapes, most_interleaved) for name, shapes in self.shapes.items()}
        self.chosen = {name: min(own.values(), key=self._seconds_alone) for name, own in self.own.items()}

    def run(self) -> None:
        for group in self._groups():
            self._move_together(group)
        for _ in range(_SWEEPS):
            moved = [self._move(name) for name in self.shapes]
            if not any(moved):
                break

    def uploads_of(self, name: str, conv: ConvPlan) -> tuple[Upload, ...]:
        terms = self.steps[name].terms
        return tuple(Upload(term.source, term.shift, layout) for term, layout in zip(terms, conv.layouts, strict=True))

    def _total(self, chosen: Mapping[str, ConvPlan]) -> float:
        uploads = {upload for name, conv in chosen.items() for upload in self.uploads_of(name, conv)}
        ciphertexts = sum(upload.layout.ciphertexts / upload.layout.interleaved for upload in uploads)
        answers = sum(self._answer_seconds(conv) for conv in chosen.values())
        return answers + upload_seconds(ciphertexts, self.params.upload_bytes)

    def _answer_seconds(self, conv: ConvPlan) -> float:
        return answer_seconds(conv, self.params.reply_bytes(0)) / conv.interleaved

    def _seconds_alone(self, conv: ConvPlan) -> float:
        """Price a map for one image, its uploads shared with no other map."""
        uploads = conv.uploads / conv.interleaved
        return self._answer_seconds(conv) + upload_seconds(uploads, self.params.upload_bytes)

    def _neighbours(self, name: str) -> list[str]:
        """Maps that read one of its tensors, with the same shift and stride: they could share an upload."""
        reads = self._reads(name)
        return [other for other in self.shapes if other != name and reads & self._reads(other)]

    def _reads(self, name: str) -> set[tuple[str, int, int]]:
        return {(term.source, term.shift, term.stride) for term in self.steps[name].terms}

    def _groups(self) -> list[list[str]]:
        groups: list[list[str]] = []
        left = dict.fromkeys(self.shapes)
        while left:
            group = [next(iter(left))]
            for name in group:
                group += [other for other in self._neighbours(name) if other not in group]
            for name in group:
                del left[name]
            if len(group) > 1:
                groups.append(group)
        return groups

    def _move(self, name: str) -> bool:
        """To the layout of a neighbour or to as few or many images as it likes, if the total falls."""
        best = before = self._total(self.chosen)
        own = self.chosen[name]
        layouts = dict.fromkeys(self.chosen[other].layouts[0] for other in self._neighbours(name))
        agreeing = [conv for layout in layouts for conv in self._agreeing(name, layout)]
        for conv in (*agreeing, *self.own[name].values()):
            total = self._total({**self.chosen, name: conv})
            if total < best:
                best, own = total, conv
        self.chosen[name] = own
        return best < before

    def _move_together(self, group: list[str]) -> None:
        """All to one geometry, one number of channels per ciphertext and one of images."""
        for interleaved in set[int].intersection(*(set(self.own[name]) for name in group)):
            layouts = [self.own[name][interleaved].layouts[0] for name in group]
            pitch = max(layout.row_pitch for layout in layouts)
            rows = max(layout.block // layout.row_pitch for layout in layouts)
            n, best = self.params.n // interleaved, self._total(self.chosen)
            for channels in channel_counts(n // (pitch * rows)):
                for all_phases in (False, True):
                    moved = {name: self._plan(name, rows, pitch, channels, all_phases, interleaved) for name in group}
                    if None in moved.values():
                        continue
                    chosen = {**self.chosen, **{name: conv for name, conv in moved.items() if conv is not None}}
                    if (total := self._total(chosen)) < best:
                        best, self.chosen = total, chosen

    def _agreeing(self, name: str, layout: InputLayout) -> Iterator[ConvPlan]:
        for all_phases in (False, True):
            rows = layout.block // layout.row_pitch
            channels, interleaved = layout.channels_per_ciphertext, layout.interleaved
            conv = self._plan(name, rows, layout.row_pitch, channels, all_phases, interleaved)
            if conv is not None:
                yield conv

    def _plan(
        self, name: str, rows: int, pitch: int, channels: int, all_phases: bool, interleaved: int
    ) -> ConvPlan | None:
        """None where this map needs more room than the others: its channels would not fit."""
        try:
            smallest = rlwe.plan(
                self.params,
                *self.shapes[name],
                min_rows=rows,
                min_row_pitch=pitch,
                channels_per_ciphertext=1,
                interleaved=interleaved,
            )
        except InputError:  # not even one of its channels
            return None
        if channels * smallest.layouts[0].block > self.params.n // interleaved:
            return None
        return rlwe.plan(
            self.params,
            *self.shapes[name],
            min_rows=rows,
            min_row_pitch=pitch,
            channels_per_ciphertext=channels,
            all_phases=all_phases,
            interleaved=interleaved,
        )
