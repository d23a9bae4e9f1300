"""Networks of a macro search under a budget of ReLUs, as CryptoNAS has them (Ghodsi et al. 2020), and their account.

    stem      x = BN(conv3x3(image -> C))
    layer     x <- BN(convolution(ReLU(x + the outputs of the layers that it skips from)))
    head      linear(mean over the pixels of ReLU(x))

Layers stand in stages; the first layer of every stage but the first halves height and width. Balanced: channels are
then four times as many, so that every layer has equally many ReLUs. Pruned: skips have none, a sum is rectified once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sphynx.errors import InputError, join_faults
from sphynx.record import Record
from sphynx.space.described import Described
from sphynx.space.tally import Account, Shape

CHANNEL_FACTOR = 4  # of a map that is half as high and wide
KERNELS = (3, 5)
_REMEDY = "`sphynx reduce` by the method cryptonas writes such designs; use one unchanged."


@dataclass(frozen=True)
class MacroLayer(Record):
    kernel: int
    separable: bool = False  # a depthwise convolution, then one of 1x1
    skips: tuple[int, ...] = ()  # earlier layers of its stage, the first is 0; the one just before is read anyway


@dataclass(frozen=True)
class MacroDesign(Described):
    FORMAT: ClassVar[str] = "sphynx-macro/1"
    REMEDY: ClassVar[str] = _REMEDY

    channels: int  # C, of the first stage
    stages: tuple[tuple[MacroLayer, ...], ...]
    image: Shape = Shape(3, 32, 32)
    classes: int = 100
    name: str = ""

    def __post_init__(self) -> None:
        faults = []
        if min(self.channels, self.classes, *self.image) < 1:
            faults.append("channels, classes and image sizes must be at least 1")
        if not self.stages or not all(self.stages):
            faults.append("every stage needs a layer")
        for number, stage in enumerate(self.stages):
            for place, layer in enumerate(stage):
                if layer.kernel not in KERNELS:
                    faults.append(f"stage {number}, layer {place} has a kernel of {layer.kernel}, not 3 or 5")
                if any(not 0 <= skip < place - 1 for skip in layer.skips) or len(set(layer.skips)) < len(layer.skips):
                    faults.append(f"stage {number}, layer {place} cannot skip from {list(layer.skips)}")
        if faults:
            raise InputError(join_faults(faults), where=self.name or "macro design", remedy=_REMEDY)

    @property
    def account(self) -> Account:
        account = Account()
        tally = account.total
        x = tally.batch_norm(tally.convolution(self.image, self.channels, 3))
        account.close_row("stem", "conv3", x)
        for number, stage in enumerate(self.stages):
            for place, layer in enumerate(stage):
                stride = stride_of(number, place)
                x = tally.relu(x)
                channels = x.channels * (CHANNEL_FACTOR if stride == 2 else 1)
                if layer.separable:
                    x = tally.convolution(x, x.channels, layer.kernel, stride=stride, groups=x.channels)
                    x = tally.convolution(x, channels, 1)
                else:
                    x = tally.convolution(x, channels, layer.kernel, stride=stride)
                x = tally.batch_norm(x)
                account.close_row(f"stage {number}, layer {place}", _summary(layer), x)
        tally.linear(tally.global_average_pool(tally.relu(x)).channels, self.classes)
        account.close_row("head", "ReLU, pool + linear", Shape(self.classes, 1, 1))
        return account


def stride_of(stage: int, place: int) -> int:
    return 2 if stage > 0 and place == 0 else 1


def _summary(layer: MacroLayer) -> str:
    skips = f" + {', '.join(map(str, layer.skips))}" if layer.skips else ""
    return f"{'separable' if layer.separable else 'conv'}{layer.kernel}{skips}"
