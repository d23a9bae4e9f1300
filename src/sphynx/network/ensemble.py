"""Several networks that answer as one, by the mean of their logits: teachers who err in different places."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from sphynx.network.build import AnyNetwork
from sphynx.space.files import AnyDesign


class Ensemble(nn.Module):
    """The members know the same classes in the same order. Its design is the first one's."""

    def __init__(self, members: Sequence[AnyNetwork]) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)
        self.design: AnyDesign = members[0].design

    def forward(self, x: Tensor) -> Tensor:
        return torch.stack([member(x).float() for member in self.members]).mean(0)


Teacher = AnyNetwork | Ensemble


def members_of(teacher: Teacher) -> tuple[AnyNetwork, ...]:
    return tuple(teacher.members) if isinstance(teacher, Ensemble) else (teacher,)  # type: ignore[arg-type]  # as it was made
