"""`autorep`: AutoReP (Peng, Huang, Zhou, Luo, Wang, Wang, Zhao, Xie, Li, Ding, ICCV 2023).

As `snl`, but what is no ReLU becomes a parabola of its channel, fitted to the distribution of the channel's inputs and
then learned.

What differs: masks are soft while they are learned, as SNL's; the paper has hard ones with hysteresis, learned through
a straight-through gradient. Parabolas are fitted to a batch's own values by least squares, not to a normal distribution
of their mean and deviation.
"""

from __future__ import annotations

from sphynx.reduce.masks import choose_by_masks
from sphynx.reduce.task import Choice, Task


def choose_autorep(task: Task) -> Choice:
    return choose_by_masks(task, per_value=True, squares=True)
