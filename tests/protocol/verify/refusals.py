"""Count how often each way of cheating is refused, with no logits sent: `python -m tests.protocol.verify.refusals`."""

from __future__ import annotations

import argparse
import time
from itertools import count

from tests.protocol.verify.attempts import attempt, is_honest
from tests.protocol.verify.cheats import CHEATS, PROGRAM, WEIGHTS, Cheat

from sphynx.protocol.linear import ServerModel
from sphynx.protocol.verify.plan import plan_check


def main() -> None:
    parse = argparse.ArgumentParser(description=__doc__)
    parse.add_argument("names", nargs="*", metavar="NAME", help="Ways of cheating, by name; all without any.")
    parse.add_argument("--times", type=int, default=1000, help="Attempts of each kind.")
    parse.add_argument("--seed", type=int, default=0, help="Of the places and amounts of the first attempt.")
    told = parse.parse_args()
    model = ServerModel(PROGRAM, WEIGHTS, check=plan_check(PROGRAM, WEIGHTS))
    print(f"{model.check}, {told.times} attempts each, seeds from {told.seed}", flush=True)
    seeds, start_s = count(told.seed), time.monotonic()
    for name in told.names or CHEATS:
        outcomes = [attempt(model, CHEATS[name], next(seeds)) for _ in range(told.times)]
        refused = sum(one.is_refused and not one.logits_bytes and one.answers is None for one in outcomes)
        print(f"{name}: {refused} refused, {time.monotonic() - start_s:.0f} s", flush=True)
    answered = sum(is_honest(model, attempt(model, Cheat(lambda *_: None), next(seeds))) for _ in range(told.times))
    print(f"honest: {answered} answered, {time.monotonic() - start_s:.0f} s")


if __name__ == "__main__":
    main()
