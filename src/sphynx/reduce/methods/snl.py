"""`snl`: Selective Network Linearization (Cho, Joshi, Garg, Reagen, Hegde, ICML 2022).

Every value of a rectified map has a mask, which learns together with the weights under a penalty on the sum of all
masks (`masks`). The largest become ReLUs, the rest identities; then the network is trained on.

What differs: the penalty's weight follows a falling target, where the paper lets it grow after epochs in which too few
masks fell. Masks have a learning rate of their own and are kept between 0 and 1. The original's answers alone teach,
also while masks are learned.
"""

from __future__ import annotations

from sphynx.reduce.masks import choose_by_masks
from sphynx.reduce.task import Choice, Task


def choose_snl(task: Task) -> Choice:
    return choose_by_masks(task, per_value=True, squares=False)
