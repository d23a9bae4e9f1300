"""Count the homomorphic work of a program by the plan that both parties follow, for bundles made alone or in a group.

Estimates without it plan each map by itself, in less time: the compiler weighs many programs.
"""

from __future__ import annotations

from functools import lru_cache

from sphynx.program.cost.estimate import HeWork
from sphynx.program.ir import Program
from sphynx.protocol.linear_plan import Upload, plan_group, plan_images


def group_size(program: Program) -> int:
    """Count the bundles that a client with a pool asks for at once."""
    return plan_group(program).images


@lru_cache(maxsize=16)
def planned_he(program: Program, bundles: int = 1) -> dict[str, HeWork]:
    """Count the homomorphic work of each linear map for one bundle of a group of `bundles`. An upload counts for the
    map that reads it first."""
    plan = plan_images(program, bundles)
    images, sent = plan.whole(bundles), set[Upload]()
    found = {}
    for step in program.linears:
        conv, new = plan.convs[step.name], set(plan.uploads[step.name]) - sent
        sent |= new
        found[step.name] = HeWork(
            products=conv.products * images / conv.interleaved / bundles,
            weights=conv.products / conv.tiles * conv.weight_degree / plan.params.n / bundles,
            uploads=sum(upload.layout.ciphertexts * images / upload.layout.interleaved for upload in new) / bundles,
            replies=conv.replies * images / conv.interleaved / bundles,
            used=conv.tiles * sum(conv.used_counts) * images / conv.interleaved / bundles,
            upload_bytes=sum(plan.upload_bytes(upload, images) for upload in new) / bundles,
            reply_bytes=plan.reply_bytes(step.name, images) / bundles,
            messages=len(new) + 1,
        )
    return found
