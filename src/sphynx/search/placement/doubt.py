"""Judge whether a placement search decided: a sentence on what its probabilities say of the choice."""

from __future__ import annotations

from collections.abc import Sequence

LEAD = 0.1  # of the largest probability: a smaller lead over the second is none
AGAINST_UNIFORM = 1.5  # times the share that a placement has where nothing was learned
# The last part of the epochs, in which the leader must not change. With tau from 1000 the last tenth decides most.
SETTLED = 0.05
EARLY = 0.1  # the first part of the epochs: who leads by then learned fastest, and alone is trained from then on


def doubt(placements: Sequence[Sequence[int]], beta_hat: Sequence[Sequence[float]]) -> str:
    """Why the choice is inconclusive; empty where it is not, or where there was nothing to choose."""
    final = beta_hat[-1]
    if len(final) < 2:
        return ""
    first, second = sorted(range(len(final)), key=lambda place: -final[place])[:2]
    names = [f"({','.join(map(str, placements[place]))})" for place in (first, second)]
    if final[first] < AGAINST_UNIFORM / len(final):
        return (
            f"{names[0]} has {final[first]:.3f}, not much above the {1 / len(final):.3f} "
            f"that each of {len(final)} placements starts with"
        )
    if final[first] - final[second] < LEAD * final[first]:
        return f"{names[0]} has {final[first]:.3f} and {names[1]} {final[second]:.3f}"
    late = beta_hat[-max(1, round(SETTLED * len(beta_hat))) :]
    leaders = {max(range(len(row)), key=row.__getitem__) for row in late}
    if len(leaders) > 1:
        return f"the leader changed in the last {len(late)} of {len(beta_hat)} epochs"
    early = int(EARLY * len(beta_hat))
    if early and beta_hat[early - 1][first] > 0.5:
        had = f"{names[0]} had {beta_hat[early - 1][first]:.3f} after {early} of {len(beta_hat)} epochs"
        return f"{had}, when the others had hardly been trained"
    return ""
