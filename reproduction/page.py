"""docs/results/paper.md: every experiment of the paper beside our kept runs, and a verdict on each claim."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean

from reproduction.arithmetic import write_arithmetic
from reproduction.counted import compare_counts, section_of
from reproduction.deviation import Deviations, deviations_of
from reproduction.experiments import EXPERIMENTS, Experiment, Row
from reproduction.first_epochs import read_first_epochs, write_first_epochs
from reproduction.imagenet_cost import BATCH, SPEED, imagenet_cost
from reproduction.keeping import PLACEMENTS, SEARCHES
from reproduction.kept_searches import KeptPlacement, KeptSearch, read_placements, read_rankings, read_searches
from reproduction.outcomes import KeptResult, Ours, Outcome, read_kept, without_reading
from reproduction.page_text import INTRODUCTION, LATE_RULES, RULES
from reproduction.paper_spread import Prints, networks_printed_twice
from reproduction.private_latency import write_private
from reproduction.verdicts import Verdict, verdict_on
from reproduction.verdicts.levels import in_the_papers_setting
from reproduction.what_ran import write_what_ran

FAR_POINTS = 1.0  # prints of one network that differ by more are named
SEARCHES_OF_CELLS, IMAGENET, PARETO = "search", "imagenet", "cifar100"
FIGURE = """The paper's Pareto figure, in which every method that was run here is marked as such. Those that reduce a
trained network reduced the same one; [reduce.md](reduce.md) has their counts and what they take privately.

![Accuracy against ReLUs, cited and run here](../images/reduced.svg)
"""


def make_page(results: Path) -> str:
    kept, placements = read_kept([results]), read_placements(results / PLACEMENTS)
    rankings, deviations = read_rankings(results / SEARCHES), deviations_of(kept)
    judged = {}
    for experiment in EXPERIMENTS.values():
        outcomes = [_outcome(row, kept) for row in experiment.rows]
        verdict = verdict_on(experiment, outcomes, deviations, placements, rankings)
        judged[experiment.name] = (experiment, outcomes, verdict)
    settings = Settings()
    sections: list[str] = []
    for one in compare_counts():
        sections += section_of(one)
    for name, (experiment, outcomes, verdict) in judged.items():
        sections += _section(name, experiment, outcomes, verdict, settings)
        if experiment.judged == "choice":
            sections += _placements(placements)
        if name == SEARCHES_OF_CELLS:
            sections += _searches(read_searches(results / SEARCHES))
            sections += write_first_epochs(read_first_epochs(results / SEARCHES))
        if name == IMAGENET:
            sections += _write_imagenet(results)
        if name == PARETO:
            sections += [FIGURE]
        sections += write_private(results, experiment)
    sections += [*write_arithmetic(kept), *write_what_ran(results)]
    table = _write_verdicts([(experiment, verdict) for experiment, _, verdict in judged.values()])
    spread = _write_spread(deviations, settings)
    return "\n".join([INTRODUCTION, *table, RULES, *spread, LATE_RULES, *sections, *settings.section()])


def _write_verdicts(judged: Sequence[tuple[Experiment, Verdict]]) -> Iterator[str]:
    yield _count_verdicts([verdict for experiment, verdict in judged if not experiment.ours])
    yield "| experiment | claim | verdict |\n|---|---|---|"
    for one in compare_counts():
        yield f"| [{one.name}](#{one.name}) | {one.claim} | **{one.verdict}** |"
    for experiment, verdict in judged:
        claim = f"*Ours, not the paper's:* {experiment.claim}" if experiment.ours else experiment.claim
        extent = verdict.extent and " " + verdict.extent
        yield f"| [{experiment.name}](#{experiment.name}) | {claim} | **{verdict.word}**{extent} |"
    yield ""


def _count_verdicts(verdicts: Sequence[Verdict]) -> str:
    words = Counter(verdict.word for verdict in verdicts)
    told = ", ".join(f"{words[word]} {word}" for word in ("reproduced", "not reproduced", "undecided", "not run"))
    return f"Of the paper's {len(verdicts)} claims that training bears on: {told}.\n"


def _write_spread(deviations: Deviations, settings: Settings) -> Iterator[str]:
    """Write the spread between seeds of ours, and between the paper's prints of one network."""
    yield "## spread\n\nBetween seeds of one network, pooled over the networks that were trained with several; and the"
    yield "smallest difference that two networks of one, three or eight seeds each show:\n"
    yield "| setting | networks | degrees of freedom | deviation | 1 and 1 | 3 and 3 | 8 and 8 |"
    yield "|---|---|---|---|---|---|---|"
    rows = [(settings.named(differs), deviations.at(data, differs)) for data, differs in deviations.scales()]
    for named, one in [*rows, *([("all", deviations.of_all())] if deviations else [])]:
        shown = " | ".join(f"{one.smallest_difference(n, n):.2f}" for n in (1, 3, 8))
        yield f"| {named} | {one.networks} | {one.degrees} | {one.points:.2f} | {shown} |"
    prints = networks_printed_twice()
    far = [one for one in prints if one.range >= FAR_POINTS]
    yield f"\nThe paper prints {len(prints)} networks more than once with differing accuracies, {len(far)} of them far"
    yield "apart. That is its own spread, beside which all gains are to be read:\n"
    yield "\n".join(f"- {one.network}: {_tell_prints(one)}" for one in far) + "\n"


def _tell_prints(one: Prints) -> str:
    found = ", ".join(f"{accuracy:.2f} ({source})" for accuracy, source in one.accuracies.items())
    return f"{found}; {one.range:.1f} points apart."


def _write_imagenet(results: Path) -> Iterator[str]:
    cost = imagenet_cost(results)
    hours = f"{cost.fewest_hours:.0f} to {cost.most_hours:.0f} hours of one H200"
    yield f"ImageNet was not run. One seed of its {cost.networks} networks by the paper's {cost.epochs} epochs would"
    yield f"take {hours} by our estimate: their multiplications, at the rate of ResNet18's training on CIFAR-100"
    yield f"or, for the Sphynx networks, of the 25.6K network's (`results/{SPEED}`, batch {BATCH}). Reading"
    yield "and decoding the images is not in it.\n"


class Settings:
    """Number each setting that is not the paper's where it is first used, and explain it once."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, ...], int] = {}

    def named(self, differs: tuple[str, ...]) -> str:
        if not differs:
            return "the paper's"
        number = self._numbers.setdefault(differs, len(self._numbers) + 1)
        epochs = [text for text in differs if text.startswith("epochs ")]
        length = f"{epochs[0].removeprefix('epochs ')} epochs" if epochs else "600 epochs"
        return f"[{number}](#settings): {length}"

    def section(self) -> Iterator[str]:
        yield "## settings\n\nWhere the settings of our runs are not the paper's:\n"
        yield "| setting | unlike the paper |\n|---|---|"
        for differs, number in self._numbers.items():
            yield f"| {number} | {', '.join(differs)} |"
        yield ""


def _outcome(row: Row, kept: list[KeptResult]) -> Outcome:
    found = tuple(ours for file in kept if (ours := file.of(row, {})) is not None)
    return Outcome(row, None, "", found)


def _section(
    name: str, experiment: Experiment, outcomes: list[Outcome], verdict: Verdict, settings: Settings
) -> Iterator[str]:
    yield f"## {name}\n\n{experiment.title} ({experiment.source}). {experiment.told_claim}\n"
    yield from _write_findings(verdict)
    if experiment.networks_of:
        yield f"The networks are those of [{experiment.networks_of}](#{experiment.networks_of}).\n"
        return
    yield "| series | network | paper | ours | setting |\n|---|---|---|---|---|"
    shared = Counter(settings for o in outcomes for settings in {without_reading(ours.differs) for ours in o.kept})
    for outcome in outcomes:
        row = outcome.row
        paper = "-" if row.accuracy is None else f"{row.accuracy:.2f}"
        paper += "" if row.std is None else f" ± {row.std:.2f}"
        if not outcome.kept:
            yield f"| {row.series} | {row.label} | {paper} | not run | |"
        for differs, runs in _choose_shown(_by_settings(outcome.kept), shared).items():
            for key in dict.fromkeys(run.network_key for run in runs):
                ours = _accuracy([run for run in runs if run.network_key == key], named=outcome.has_several_networks)
                yield f"| {row.series} | {row.label} | {paper} | {ours} | {settings.named(differs)} |"
    yield ""


def _write_findings(verdict: Verdict) -> Iterator[str]:
    word = f"**{verdict.word.capitalize()}**{verdict.extent and ' ' + verdict.extent}"
    if len(verdict.findings) == 1:
        yield f"{word}: {verdict.findings[0]}.\n"
        return
    yield f"{word}:\n"
    yield "\n".join(f"- {finding}" for finding in verdict.findings) + "\n"


def _accuracy(runs: list[Ours], *, named: bool) -> str:
    """Write the mean over one network's seeds; where a row has several networks, also which training it was."""
    text = f"{fmean(run.accuracy for run in runs):.2f}" + (f" (n={len(runs)})" if len(runs) > 1 else "")
    best = [run.best_epoch for run in runs if run.best_epoch is not None]
    text += f", best epoch {fmean(best):.2f}" if best else ""
    return text + (f" (`{runs[0].folders[0]}`)" if named else "")


def _choose_shown(
    found: dict[tuple[str, ...], list[Ours]], shared: Counter[tuple[str, ...]]
) -> dict[tuple[str, ...], list[Ours]]:
    """Keep runs in the paper's own setting, by either batch, or comparable with another row; else the nearest."""
    comparable = {
        differs: runs
        for differs, runs in found.items()
        if in_the_papers_setting(differs) or shared[without_reading(differs)] > 1
    }
    nearest = {differs: found[differs] for differs in sorted(found, key=len)[:1]}
    return dict(sorted((comparable or nearest).items(), key=lambda entry: len(entry[0])))


def _placements(found: list[KeptPlacement]) -> Iterator[str]:
    yield "What Algorithm 1 chose (`results/placement/`; two reduce cells, the published cells):\n"
    yield "Those that count are in the released form with tau from 1000, without waiting; those with rivals by"
    yield "probability count for [likely-rivals](#likely-rivals).\n"
    yield "| file | network | gradient | tau from | epochs | choice | its probability | in doubt |"
    yield "|---|---|---|---|---|---|---|---|"
    for one in found:
        place = ",".join(map(str, one.best))
        network = f"C={one.channels} D={one.depth}"
        choice = f"({place}) | {one.probability:.3f} | {one.doubt}"
        yield f"| {one.name} | {network} | {one.method} | {one.tau_start:g} | {one.epochs} | {choice} |"
    yield ""


def _searches(found: list[KeptSearch]) -> Iterator[str]:
    yield "Do convolutions survive the search? Of the eight edges of each cell that was taken (`results/search/`):\n"
    yield "| file | strategy | supernet | C, D | epochs | held-out % | convolutions: normal, reduce |"
    yield "|---|---|---|---|---|---|---|"
    for one in found:
        form = one.recipe.get("supernet", "text")
        size = f"{one.recipe['channels']}, {one.recipe['depth']}"
        epochs = f"{one.epochs} of {one.recipe['epochs']}"
        normal, reduce = one.convolutions()
        held_out = "-" if one.held_out is None else f"{100 * one.held_out:.2f}"
        yield f"| {one.name} | {one.strategy} | {form} | {size} | {epochs} | {held_out} | {normal}, {reduce} |"
    yield ""


def _by_settings(kept: tuple[Ours, ...]) -> dict[tuple[str, ...], list[Ours]]:
    found: dict[tuple[str, ...], list[Ours]] = {}
    for ours in kept:
        found.setdefault(ours.differs, []).append(ours)
    return found
