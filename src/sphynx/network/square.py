"""A channel's parabola a x^2 + b x + c, written so that networks of squares learn like networks of ReLUs.

    n = norm(x)      q = norm(n^2)      y = A q + B n + C        A, B, C: learned, one each for a channel

Both norms are batch norms without weights, so each term has deviation |A| and |B| whatever comes in (as the Hermite
polynomials of AESPA, Park et al. 2022). With coefficients of x itself a step changes y in proportion to x^2: at a usual
learning rate ranges run away, squared again in every layer behind. A trained network has one parabola of x again.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from sphynx.space.reduced import COEFFICIENTS

# The parabola next to a ReLU for inputs of mean 0 and deviation 1, by least squares: Hermite's coefficients of a ReLU
# (1 / sqrt(2 pi), 1/2, 1 / (2 sqrt(pi)) for normalised polynomials of degrees 0, 1, 2). n^2 has mean 1, variance 2.
FIRST_COEFFICIENTS = (0.28209, 0.5, 0.39894)


class Square(nn.Module):
    """`channels` parabolas."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(channels, affine=False)
        self.norm_of_square = nn.BatchNorm2d(channels, affine=False)
        _set_statistics(self.norm_of_square, torch.ones(channels), 2 * torch.ones(channels))
        self.coefficients = nn.Parameter(torch.tensor(FIRST_COEFFICIENTS).repeat(channels, 1).T.contiguous())

    def forward(self, x: Tensor) -> Tensor:
        n = self.norm(x)
        of_square, of_n, constant = self.coefficients.to(n.dtype).view(COEFFICIENTS, -1, 1, 1)
        return of_square * self.norm_of_square(n.square()) + of_n * n + constant

    @torch.no_grad()
    def parabola(self) -> Tensor:
        """a, b, c of each channel as a trained network computes them."""
        (mean, deviation), (mean_2, deviation_2) = _statistics(self.norm), _statistics(self.norm_of_square)
        of_square, of_n, constant = self.coefficients.double()
        a = of_square / (deviation_2 * deviation**2)
        b = of_n / deviation - 2 * a * mean
        return torch.stack([a, b, constant - of_square * mean_2 / deviation_2 - (b + a * mean) * mean]).float()

    @torch.no_grad()
    def follow(self, parabola: Tensor, x: Tensor, channels: Tensor) -> None:
        """Become this parabola in these channels (a boolean each), for inputs that are distributed as these."""
        over = (0, 2, 3)
        x, channels = (x if x.ndim > 2 else x[:, :, None, None]).double(), channels.to(x.device)
        n = (x - x.mean(over, keepdim=True)) / (x.var(over, keepdim=True) + self.norm.eps).sqrt()
        for norm, values in ((self.norm, x), (self.norm_of_square, n.square())):
            known_mean, known_variance = _buffers(norm)
            mean, variance = values.mean(over), values.var(over)
            _set_statistics(
                norm,
                torch.where(channels, mean.to(known_mean), known_mean),
                torch.where(channels, variance.to(known_variance), known_variance),
            )
        (mean, deviation), (mean_2, deviation_2) = _statistics(self.norm), _statistics(self.norm_of_square)
        a, b, c = parabola.double().to(x.device)
        of_square = a * deviation_2 * deviation**2
        own = torch.stack([of_square, (b + 2 * a * mean) * deviation, c + of_square * mean_2 / deviation_2])
        own[2] += (b + a * mean) * mean
        self.coefficients.copy_(torch.where(channels, own.float(), self.coefficients))


def _buffers(norm: nn.BatchNorm2d) -> tuple[Tensor, Tensor]:
    assert norm.running_mean is not None and norm.running_var is not None
    return norm.running_mean, norm.running_var


def _statistics(norm: nn.BatchNorm2d) -> tuple[Tensor, Tensor]:
    """Mean and deviation, as batch norm uses them in evaluation."""
    mean, variance = _buffers(norm)
    return mean.double(), (variance.double() + norm.eps).sqrt()


def _set_statistics(norm: nn.BatchNorm2d, mean: Tensor, variance: Tensor) -> None:
    for buffer, value in zip(_buffers(norm), (mean, variance), strict=True):
        buffer.copy_(value)
