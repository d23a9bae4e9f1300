"""Count what the linear maps of a program cost an image, alone and in groups: ciphertexts, products, bytes, memory.

    python -m benchmarks.packing_counts stream-cifar100-25k sphynx-cifar100-25k

Exact, and the same on every machine; docs/rlwe.md has the table.
"""

from __future__ import annotations

import sys
from collections import Counter

from sphynx.core import rlwe
from sphynx.program.folder import load_program
from sphynx.protocol.linear_plan import MOST_INTERLEAVED, ProgramPlan, plan_program, search_plan
from sphynx.zoo.shipped import program_path


def row(plan: ProgramPlan) -> str:
    """Each number but the last two is for one image."""
    images = plan.images
    uploads = sum(upload.layout.ciphertexts / upload.layout.interleaved for upload in plan.distinct_uploads)
    replies = sum(conv.replies / conv.interleaved for conv in plan.convs.values())
    up_bytes = sum(plan.upload_bytes(upload, images) for upload in plan.distinct_uploads) / images
    down_bytes = sum(plan.reply_bytes(name, images) for name in plan.convs) / images
    prepared_bytes = sum(rlwe.prepared_bytes(plan.params, conv) for conv in plan.convs.values())
    shared = Counter(conv.interleaved for conv in plan.convs.values())
    maps = ", ".join(f"{count} of {interleaved}" for interleaved, count in sorted(shared.items()))
    return (
        f"| {images} | {uploads:.1f} | {replies:.1f} | {plan.products / images:,.0f} | {up_bytes / 1e6:.2f} | "
        f"{down_bytes / 1e6:.2f} | {(up_bytes + down_bytes) / 1e6:.2f} | {prepared_bytes / 1e6:.0f} | {maps} |"
    )


def main(names: list[str]) -> None:
    for name in names:
        program = load_program(program_path(name))
        print(f"\n{name}\n")
        print(
            "| images | uploads | replies | products | MB up | MB down | MB | MB prepared | maps by images they share |"
        )
        print("|---|---|---|---|---|---|---|---|---|")
        most = 1
        while most <= MOST_INTERLEAVED:
            print(row(search_plan(program, plan_program(program).params, most)))
            most *= 2


if __name__ == "__main__":
    main(sys.argv[1:])
