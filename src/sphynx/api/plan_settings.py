"""The settings of a plan: keywords of `sphynx.plan`, flags of the verb."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sphynx.config import setting
from sphynx.program.backends import BackendChoice
from sphynx.space.choices import IMAGENET_STEM_FROM, Balancing, Borders, Convolution, ConvStack, Family, StemChoice
from sphynx.space.genotype import Genotype

CIFAR_IMAGE = (3, 32, 32)


@dataclass(frozen=True, kw_only=True)
class PlanSettings:
    relu_budget: int | str | None = setting(None, "50k, 1.2M or 51200.")
    latency_budget: float | str | None = setting(
        None, "Instead of `relu_budget`: as many ReLUs as fit an online latency such as 100ms."
    )
    link: str = setting(
        "lan", "loopback, lan (0.5 ms, 1 Gbit/s), wan (40 ms, 100 Mbit/s), or a link such as 20ms,300Mbit."
    )
    backend: BackendChoice = setting("auto", "Backend for ReLUs; auto: the one that is faster online.")
    tolerance: float | str = setting("5%", "Allowed deviation from the budget.")
    family: Family = setting("cells", "stream: a linear stream with a few rectified channels beside it.")
    image: tuple[int, int, int] = setting(CIFAR_IMAGE, "Channels, height and width of the images.")
    classes: int = setting(100, "Number of classes.", least=1)
    cells: Genotype | str | Path = setting(
        "sphynx", "A published genotype's name (sphynx, darts-v2, pc-darts, ...) or a file."
    )
    stem: StemChoice = setting("auto", f"auto: imagenet for images of {IMAGENET_STEM_FROM} pixels or more.")
    balancing: Balancing = setting("relu", "Channels at a reduce cell: relu x4, flop x2.")
    conv_stack: ConvStack = setting("single", "Structure of conv3 and conv5.")
    convolution: Convolution = setting("vanilla", "Plain convolutions, or depthwise ones followed by 1x1.")
    borders: Borders = setting("halo", "Borders of a stream network; the compiler can fuse halo borders exactly.")
    width: int = setting(0, "Channels of a stream network's last stage; 0 = chosen by the budget.", least=0)
