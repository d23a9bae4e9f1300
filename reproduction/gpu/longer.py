"""Runs beyond the reduced scale: teachers and students, the paper's recipe at batch 512, Tiny-ImageNet's largest.

Students of one teacher are compared with the same network without it, all in 200 epochs of `fast`; the teacher of
30.7K to 51.2K is that of 25.6K. A network in 200 epochs is a row of *channels-depth*, too, which fewer do not decide.
"""

from __future__ import annotations

from reproduction.experiments import EXPERIMENTS, Row
from reproduction.gpu.planned import (
    BATCH_512,
    LONG,
    SHORT_EPOCHS,
    Planned,
    by_the_paper,
    name_of,
    network,
    network_of,
    search,
    short,
    short_of_found,
)  # fmt: skip
from sphynx.space.published_cells import SPHYNX

TINY = "tiny-imagenet"
LONGER_EPOCHS = 200
TEACHER = "teacher-200"
TEACHING_SECONDS = 0.87  # of an epoch: what the teacher's answers add
COMPILED_EPOCH_SECONDS = 0.85  # by the paper's recipe at batch 512, test images included
STUDENT_DEPTHS = (6, 8, 10)  # that of D=5 is in `distillation`


def longer_runs() -> list[Planned]:
    """List them in the order in which they are worth their time."""
    return [
        *distillation_by_the_mean(),
        *(_at_batch_512(row) for row in _cifar100() if row.label in ("41.0K", "51.2K")),
        *_other_strategies(),
        *tiny_beside_resnet18(),
        *(_at_batch_512(row) for row in _cifar100() if row.label == "102.4K"),
        *_channels_or_depth(),
    ]


def distillation() -> list[Planned]:
    """Plan distillation at 25.6K by squared logits from the same cells with ReLUs inside, larger; and the student
    without a teacher.

    The paper's formula sums squares over the classes; its text says mean squared error, as torch's is called, a
    hundredth of it.
    """
    row = next(row for row in EXPERIMENTS["distillation"].rows if "inner_relus" in row.options)
    teacher, student = network_of(row), network(SPHYNX)

    def taught(name: str, by: str, **settings: str) -> Planned:
        learned = {"epochs": 200, "distillation": "squared"} | settings
        return Planned(name, "train", 390, lambda _runs: student, settings=learned, needs=by, teacher=by)

    return [
        Planned("teacher-100", "train", 330, lambda _runs: teacher, settings={"epochs": 100}),
        taught("distilled-200", "teacher-100"),
        Planned("undistilled-200", "train", 184, lambda _runs: student, settings={"epochs": 200}),
        Planned("teacher-200", "train", 630, lambda _runs: teacher, settings={"epochs": 200}),
        taught("distilled-200-of-200", "teacher-200"),
        taught("distilled-mean-200-of-200", "teacher-200", distillation_reduction="mean"),
    ]


def distillation_by_the_mean() -> list[Planned]:
    """Plan larger students of the same teacher by the mean, which gains at 25.6K, and each without it."""
    rows = [next(row for row in _cifar100() if (row.channels, row.depth) == (5, depth)) for depth in STUDENT_DEPTHS]
    return [run for row in rows for run in (_student(row), _alone(row))]


def _student(row: Row) -> Planned:
    design, seconds = network_of(row), _alone(row).seconds + LONGER_EPOCHS * TEACHING_SECONDS
    settings = {"epochs": LONGER_EPOCHS, "distillation": "squared", "distillation_reduction": "mean"}
    name = f"distilled-mean-200-of-200-d{row.depth}"
    return Planned(name, "train", seconds, lambda _runs: design, settings=settings, needs=TEACHER, teacher=TEACHER)


def _alone(row: Row) -> Planned:
    return short(network_of(row), f"undistilled-200-d{row.depth}", epochs=LONGER_EPOCHS)


def tiny(row: int, name: str, epoch_seconds: float) -> Planned:
    """Plan one of the paper's networks for Tiny-ImageNet at the reduced scale."""
    design = network_of(EXPERIMENTS[TINY].rows[row])
    seconds, settings = SHORT_EPOCHS * epoch_seconds, {"epochs": SHORT_EPOCHS}
    return Planned(name, "train", seconds, lambda _runs: design, settings=settings, data=TINY, variants=LONG)


def tiny_beside_resnet18() -> list[Planned]:
    """Plan the two that the claim compares; seconds by images, pixels and multiplications of those that were timed."""
    return [tiny(-1, "short-tiny-resnet18", 6.3), tiny(-2, "short-tiny-c15-d10", 24.0)]


def _at_batch_512(row: Row) -> Planned:
    wide = row.channels / 5
    seconds = COMPILED_EPOCH_SECONDS * row.depth / 5 * (1 if wide == 1 else 0.9 * wide)
    size = f"d{row.depth}" if wide == 1 else f"c{row.channels}-d{row.depth}"
    return by_the_paper(f"paper-600-b512-{size}-seed0", network_of(row), seconds, **BATCH_512)


def _other_strategies() -> list[Planned]:
    """Plan searches by other strategies as that by DARTS which kept its convolutions, and their cells at 25.6K."""
    found = []
    for by, epoch_seconds in (("pc-darts", 15.0), ("enas", 40.0), ("gdas", 78.0)):
        needs = f"{by}-c5-seed2-50"
        found += [
            search(needs, f"{by}-c5-seed2", 50, epoch_seconds, seed=2, by=by, channels=5),
            short_of_found(f"short-{by}-c5-seed2-50", f"{by}-c5-seed2", needs),
        ]
    return found


def _channels_or_depth() -> list[Planned]:
    rows = [row for row in EXPERIMENTS["channels-depth"].rows if row.channels != 5]  # C=5: undistilled-200-d10
    return [short(network_of(row), name_of(row).replace("short", "long"), epochs=LONGER_EPOCHS) for row in rows]


def _cifar100() -> tuple[Row, ...]:
    return EXPERIMENTS["cifar100"].rows
