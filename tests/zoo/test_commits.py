"""The commits that cards name have the sources that their networks were trained with."""

import subprocess

import pytest
from tools.source_commits import CLONE, hash_of_commit

from sphynx.zoo.chain import find_unknowns
from sphynx.zoo.shipped import load_card, model_names

NAMED = [name for name in model_names() if load_card(name)["provenance"]["commit"]]


def _has_history() -> bool:
    if not (CLONE / ".git").exists():
        return False
    shown = subprocess.run(
        ["git", "-C", str(CLONE), "rev-parse", "--is-shallow-repository"], capture_output=True, text=True, check=False
    )
    return shown.stdout.strip() == "false"


@pytest.mark.skipif(not _has_history(), reason="needs the whole history of the clone")
@pytest.mark.parametrize("name", NAMED)
def test_the_commit_on_a_card_has_the_sources_of_its_hash(name: str) -> None:
    made = load_card(name)["provenance"]
    assert hash_of_commit(made["commit"]) == made["source_sha256"]


def test_a_card_that_names_no_commit_says_so() -> None:
    without = set(model_names()) - set(NAMED)
    assert all(any("commit of its code is not known" in said for said in find_unknowns(load_card(n))) for n in without)
