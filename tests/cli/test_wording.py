"""The command line writes the parameters that the library names as flags of the verb that runs."""

from collections.abc import Callable
from pathlib import Path

import pytest
import typer

import sphynx
from sphynx.cli.group import VerbGroup
from sphynx.cli.main import app
from sphynx.cli.verbs import verbs
from sphynx.cli.wording import with_flags
from sphynx.errors import InputError, InterruptedWorkError

VERBS = {context.command_path.removeprefix("sphynx "): context for _, _, context in verbs()}


@pytest.mark.parametrize(
    ("verb", "text", "written"),
    [
        ("design", "Lower `relu_budget` or `tolerance`.", "Lower --relu-budget or --tolerance."),
        ("design", "Give `random_cells=0`.", "Give --random-cells 0."),
        ("design", "Give `strategy`, or leave `random_cells` out.", "Give --strategy, or leave --random-cells out."),
        ("search cells", "Another `strategy`.", "Another --strategy."),
        ("design", 'Use `reduce_at="fixed"`.', "Use --reduce-at fixed."),
        ("design", 'Use `compare="none"`.', "Use --compare none."),
        ("design", '`settings={"cells.depth": 4}`', "--set cells.depth=4"),
        ("train", "Give `resume=True`, or another `out`.", "Give --resume, or another --out."),
        ("eval", "Leave it out: `skip_bad=True`.", "Leave it out: --skip-bad."),
        ("eval", "`stream=True` or `stream=False`", "--stream or --no-stream"),
        ("train", "Not so: `stream=False`", "Not so: `stream=False`"),  # train has no --no-stream
        ("check", "Give `image_size=N`.", "Give --image-size N."),
        ("train", "The `design` is for other images.", "The DESIGN is for other images."),
        ("train", "Lower `learning_rate`.", "Lower --learning-rate."),
        ("design", "Lower `learning_rate`.", "Lower `learning_rate`."),  # its --set has it
        ("check", "Compile with fewer `weight_bits`.", "Compile with fewer --weight-bits."),
        ("infer", "The server's `bundles_per_client` sets the limit.", "The server's --pool sets the limit."),
        ("serve", "Raise `quota_bytes`.", "Raise --quota."),
        ("serve", 'Choose a free port: `listen="HOST:PORT"`.', "Choose a free port: --listen HOST:PORT."),
        ("keys issue", "`hosts`, `name`", "--server, NAME"),
        ("compile", "Write it without `if`.", "Write it without `if`."),
        ("plan", "`sphynx plan` lists designs", "`sphynx plan` lists designs"),
    ],
)
def test_parameters_are_written_as_flags(verb: str, text: str, written: str) -> None:
    assert with_flags(text, VERBS[verb]) == written


def test_errors_keep_their_kind_and_are_written_whole() -> None:
    verbs_that_fail = typer.Typer(cls=VerbGroup)

    @verbs_that_fail.command()
    def ask(relu_budget: str = typer.Option("", "--relu-budget")) -> None:
        raise InputError(f"`relu_budget` is {relu_budget!r}", where="`relu_budget`", remedy="Give `relu_budget=50k`.")

    @verbs_that_fail.command()
    def stop() -> None:
        raise InterruptedWorkError(where="epoch 3")

    with pytest.raises(InputError) as refused:
        verbs_that_fail(["ask"])
    assert str(refused.value) == "--relu-budget: --relu-budget is ''"
    assert refused.value.remedy == "Give --relu-budget 50k." and refused.value.exit_code == 2
    with pytest.raises(InterruptedWorkError) as stopped:
        verbs_that_fail(["stop"])
    assert stopped.value.remedy == "Call it again with --resume."


def test_flags_of_a_verb_within_a_group(tmp_path: Path) -> None:
    with pytest.raises(InputError) as refused:
        app(["keys", "issue", "No Name", "--client", "--keys", str(tmp_path)])
    assert refused.value.where == "NAME"


@pytest.mark.parametrize(
    ("called", "typed", "in_python", "in_the_shell"),
    [
        (
            lambda: sphynx.design_network("digits", relu_budget="1k", out="out", random_cells=3),
            "design --data digits --relu-budget 1k -o out --random-cells 3",
            "Give `strategy`, or leave `random_cells` out.",
            "Give --strategy, or leave --random-cells out.",
        ),
        (
            lambda: sphynx.design_network("digits", relu_budget="1k", out="out", reduce_at="fixed", reduce_cells=2),
            "design --data digits --relu-budget 1k -o out --reduce-at fixed --reduce-cells 2",
            "Leave `reduce_cells` or `reduce_at` out.",
            "Leave --reduce-cells or --reduce-at out.",
        ),
        (
            lambda: sphynx.search_cells("digits", out="out", costs={"conv5": 2.5}),
            "search cells --data digits -o out --cost conv5=2.5",
            "Give their weight, such as `cost_weight=0.1`, or leave `costs` out.",
            "Give their weight, such as --cost-weight 0.1, or leave --cost out.",
        ),
        (
            lambda: sphynx.open_data("digits", image_size=9),
            "data show digits --image-size 9",
            "Leave `image_size` out.",
            "Leave --image-size out.",
        ),
        (
            lambda: sphynx.search_cells("digits", out="out", random_cells=2),
            "search cells --data digits -o out --random-cells 2",
            'Give `rank_recipe="fast"`, or leave both out.',
            "Give --rank fast, or leave both out.",
        ),
        (
            lambda: sphynx.plan("3600", tolerance=0.0),
            "plan --relu-budget 3600 --tolerance 0",
            "or give `tolerance=0.14`.",
            "or give --tolerance 0.14.",
        ),
        (
            lambda: sphynx.plan(latency_budget="90ms", link="modem"),
            "plan --latency-budget 90ms --link modem",
            "`link`: 'modem' is not a valid link",
            "--link: 'modem' is not a valid link",
        ),
    ],
)
def test_each_user_is_told_in_own_words(
    called: Callable[[], object],
    typed: str,
    in_python: str,
    in_the_shell: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as refused:
        called()
    assert in_python in f"{refused.value} {refused.value.remedy}"
    with pytest.raises(InputError) as refused:
        app(typed.split())
    assert in_the_shell in f"{refused.value} {refused.value.remedy}"
