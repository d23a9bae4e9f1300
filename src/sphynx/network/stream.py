"""Stream networks in torch; `space.stream` describes and counts them.

With halo borders a block changes the stream on [-1, h + 1) only, so a stage works on that core and puts it back into
its halo once, where a reduction reads all of it.
"""

from __future__ import annotations

from torch import Tensor, nn

from sphynx.network.inside_norm import InsideNorm
from sphynx.space.stream import KERNEL, StreamDesign

CORE = 1  # how far a block's 3x3 convolution reaches beyond the inside


class StreamNetwork(nn.Module):
    def __init__(self, design: StreamDesign) -> None:
        super().__init__()
        self.design = design
        widths, halos = [stage.width for stage in design.stages], design.halos
        stem = nn.Conv2d(design.image.channels, widths[0], *design.stem, design.stem_padding, bias=False)
        self.stem = nn.Sequential(stem, InsideNorm(widths[0], halos[0]))
        self.stages = nn.ModuleList(
            nn.Sequential(*(StreamBlock(stage.width, channels, halo > 0) for channels in stage.channels))
            for stage, halo in zip(design.stages, halos, strict=True)
        )
        padding = design.reduction_padding
        self.reductions = nn.ModuleList(
            nn.Sequential(nn.Conv2d(before, after, KERNEL, 2, padding, bias=False), InsideNorm(after, halo))
            for before, after, halo in zip(widths, widths[1:], halos[1:], strict=False)
        )
        self.head = nn.Linear(widths[-1], design.classes)

    def forward(self, x: Tensor) -> Tensor:
        stream = self.stem(x)
        design = self.design
        for number, (described, stage, halo) in enumerate(zip(design.stages, self.stages, design.halos, strict=True)):
            if number:
                stream = self.reductions[number - 1](stream)
            if described.channels:
                stream = _with_core(stream, stage(_core(stream, halo)), halo)
        height, width = design.maps[-1][1:]
        halo = design.halos[-1]
        inside = stream[:, :, halo : halo + height, halo : halo + width]
        return self.head(inside.mean(dim=(2, 3)))


class StreamBlock(nn.Module):
    """s + BN(conv(ReLU(BN(conv(s))))), s with or without the core's halo of one pixel."""

    def __init__(self, width: int, channels: int, halo: bool) -> None:
        super().__init__()
        self.to_relus = nn.Sequential(
            nn.Conv2d(width, channels, KERNEL, padding=0 if halo else 1, bias=False), InsideNorm(channels, 0), nn.ReLU()
        )
        self.to_stream = nn.Sequential(
            nn.Conv2d(channels, width, KERNEL, padding=2 if halo else 1, bias=False),
            InsideNorm(width, CORE if halo else 0),
        )

    def forward(self, s: Tensor) -> Tensor:
        return s + self.to_stream(self.to_relus(s))


def _core(stream: Tensor, halo: int) -> Tensor:
    if halo <= CORE:
        return stream
    ring = halo - CORE
    return stream[:, :, ring:-ring, ring:-ring]


def _with_core(stream: Tensor, core: Tensor, halo: int) -> Tensor:
    if halo <= CORE:
        return core
    whole = stream.clone()
    _core(whole, halo).copy_(core)
    return whole
