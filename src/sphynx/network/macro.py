"""Networks of a macro search in torch, as `space.macro` describes them."""

from __future__ import annotations

from torch import Tensor, nn

from sphynx.space.macro import CHANNEL_FACTOR, MacroDesign, MacroLayer, stride_of


class MacroNetwork(nn.Module):
    def __init__(self, design: MacroDesign) -> None:
        super().__init__()
        self.design = design
        channels = design.channels
        self.stem = nn.Sequential(
            nn.Conv2d(design.image.channels, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels)
        )
        self.stages = nn.ModuleList()
        for number, stage in enumerate(design.stages):
            layers: list[nn.Module] = []
            for place, layer in enumerate(stage):
                made = channels * (CHANNEL_FACTOR if stride_of(number, place) == 2 else 1)
                layers.append(_layer(layer, channels, made, stride_of(number, place)))
                channels = made
            self.stages.append(nn.ModuleList(layers))
        self.activation = nn.ReLU()
        self.head = nn.Linear(channels, design.classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        for stage, layers in zip(self.design.stages, self.stages, strict=True):
            made: list[Tensor] = []
            for described, layer in zip(stage, layers.children(), strict=True):
                for skip in described.skips:
                    x = x + made[skip]
                x = layer(x)
                made.append(x)
        return self.head(self.activation(x).mean(dim=(2, 3)))


def _layer(layer: MacroLayer, channels_in: int, channels: int, stride: int) -> nn.Sequential:
    kernel, padding = layer.kernel, layer.kernel // 2
    if layer.separable:
        depthwise = nn.Conv2d(
            channels_in, channels_in, kernel, stride=stride, padding=padding, groups=channels_in, bias=False
        )
        convolutions: list[nn.Module] = [depthwise, nn.Conv2d(channels_in, channels, 1, bias=False)]
    else:
        convolutions = [nn.Conv2d(channels_in, channels, kernel, stride=stride, padding=padding, bias=False)]
    return nn.Sequential(nn.ReLU(), *convolutions, nn.BatchNorm2d(channels))
