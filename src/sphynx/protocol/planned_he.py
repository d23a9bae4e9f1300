"""Count the homomorphic work of a program by the plan that both parties follow, for bundles made alone or in a group.

Estimates without it plan each map by itself, in less time: the compiler weighs many programs.
"""

from __future__ import annotations

from functools import lru_cache
from math import inf

from sphynx.core import rlwe
from sphynx.program.cost.estimate import HeWork
from sphynx.program.ir import Program
from sphynx.protocol.linear_plan import Upload, plan_group, plan_images


def group_size(program: Program) -> int:
    """Count the bundles that a client with a pool asks for at once."""
    return plan_group(program).images


@lru_cache(maxsize=16)
def planned_he(program: Program, bundles: int = 1, weight_memory_bytes: int | None = None) -> dict[str, HeWork]:
    """Count the homomorphic work of each linear map for one bundle of a group of `bundles`. An upload counts for the
    map that reads it first. A server of one process that is always asked for as many holds those weights that fit
    its memory, map after map (weight_memory.py), and transforms the others each time; several processes hold those of
    single bundles first."""
    plan = plan_images(program, bundles)
    images, sent = plan.whole(bundles), set[Upload]()
    free_bytes = inf if weight_memory_bytes is None else weight_memory_bytes
    found = {}
    for step in program.linears:
        conv, new = plan.convs[step.name], set(plan.uploads[step.name]) - sent
        sent |= new
        weights = conv.products / conv.tiles * conv.weight_degree / plan.params.n / bundles
        size = rlwe.prepared_bytes(plan.params, conv)
        is_held = size <= free_bytes
        free_bytes -= size * is_held
        found[step.name] = HeWork(
            products=conv.products * images / conv.interleaved / bundles,
            weights=weights,
            uploads=sum(upload.layout.ciphertexts * images / upload.layout.interleaved for upload in new) / bundles,
            replies=conv.replies * images / conv.interleaved / bundles,
            used=conv.tiles * sum(conv.used_counts) * images / conv.interleaved / bundles,
            upload_bytes=sum(plan.upload_bytes(upload, images) for upload in new) / bundles,
            reply_bytes=plan.reply_bytes(step.name, images) / bundles,
            messages=len(new) + 1,
            transforms=0.0 if is_held else weights,
        )
    return found
