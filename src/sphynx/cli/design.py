"""`sphynx design`: from a data set and a ReLU budget to a trained network, and an honest table beside it."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from sphynx.cli.design_tables import print_result, print_start
from sphynx.cli.options import Images, Output
from sphynx.cli.output import print_json
from sphynx.cli.record_flags import with_record_flags
from sphynx.cli.wording import with_flags
from sphynx.config import setting
from sphynx.design.settings import DesignSettings

_OUT = setting(None, "The run folder. [default: runs/DATA-BUDGET]")


@with_record_flags
def design(
    context: typer.Context,
    images: Images,
    settings: Annotated[DesignSettings, {"out": _OUT}],
    output: Output,
) -> None:
    """Design a network for a data set, of one of two families, from a plan to a trained network.

    A stream network learns from a teacher: plan, teacher, allocation of the ReLUs, the teacher's views, training. The
    teacher is trained first unless trained networks are given.

    Cells: plan, cells, placement of the reduce cells, training, and a comparison. The published cells are used unless a
    strategy searches for others. Found cells are ranked together with the published and some random ones: each is
    trained briefly on part of the training images, and the best on the rest are used. With fewer than 1,000 training
    images the rest is too small for a choice, and nothing is searched unless --random-cells is given. Many random cells
    are ranked in rounds, all of them briefly and the better third for longer: a random search by itself. The final
    table compares the network with the same plan using random and published cells, trained with the same recipe from as
    many seeds.

    Examples:

      sphynx design --data digits --relu-budget 1k

      sphynx design --data digits --relu-budget 1k --strategy gaea --seeds 3 -o runs/digits

      sphynx design --data cifar100 --relu-budget 25.6k --family stream -o runs/stream

      sphynx design --data cifar100 --relu-budget 50k --teacher stream-cifar100-102k --seeds 3 -o runs/taught

      sphynx design --data cifar100 --relu-budget 50k --family cells --time-budget 30m -o runs/cifar

      sphynx design --data photos/ --image-size 32 --relu-budget 25k --reduce-at 0,1 --compare none

      sphynx design --data digits --relu-budget 1k --strategy gaea --seeds 3 -o runs/digits --resume
    """
    from sphynx.api.designing import open_pipeline
    from sphynx.design.family import read_orders

    name = re.sub(r"[^A-Za-z0-9._-]+", "-", Path(images.data).name)
    out = Path(settings.out or Path("runs") / f"{name}-{settings.relu_budget}")
    voice, began = output.voice, dict[str, Any]()
    orders = read_orders(replace(settings, out=out, progress=voice))
    with open_pipeline(images.open(voice), orders) as (pipeline, said):
        notes = [with_flags(note, context) for note in said]
        if output.as_json:
            estimates = [{**estimate.to_json(), "seconds": estimate.seconds} for estimate in pipeline.schedule()]
            began.update(notes=notes, estimates=estimates)
        else:
            print_start(pipeline, notes, voice)
        result = pipeline.run()
    if output.as_json:
        print_json({"out": str(out), **began, **result.to_json()})
    else:
        print_result(result, out)
