"""Models by name: without the distribution that has them, and with one of another release."""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from sphynx.errors import InputError
from sphynx.program.folder import load_program
from sphynx.service.answer_record import AnswerRecord
from sphynx.zoo.by_name import compiled_folder
from sphynx.zoo.shipped import load_card, model_names, program_path, warning_of

# As `pip install .` alone leaves it: Python takes None in sys.modules for a package that is not there.
WITHOUT_MODELS = """
import sys
sys.modules["sphynx_models"] = None
from sphynx.cli.main import main
sys.argv = ["sphynx", *sys.argv[1:]]
main()
"""


def without_models(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", WITHOUT_MODELS, *words], capture_output=True, text=True, check=False)


def test_a_list_of_no_models_says_how_to_install_them() -> None:
    listed = without_models("models")
    assert listed.returncode == 0 and "pip install ./models" in listed.stdout
    as_json = without_models("models", "ls", "--json")
    assert as_json.returncode == 0 and json.loads(as_json.stdout) == []


@pytest.mark.parametrize(
    "words",
    [("models", "show"), ("eval",), ("estimate",)],
    ids=lambda words: " ".join(words),
)
def test_a_name_without_its_models_is_refused_with_the_remedy(words: tuple[str, ...]) -> None:
    refused = without_models(*words, "sphynx-cifar100-25k")
    assert refused.returncode == 2, refused.stderr
    assert "sphynx-cifar100-25k: there is no such folder, and no model of that name" in refused.stderr
    assert "pip install ./models" in refused.stderr


def model_of_another_release(folder: Path, *, card: str = "sphynx-model/1", program: str = "sphynx-program/1") -> None:
    (folder / "one" / "program").mkdir(parents=True)
    (folder / "one" / "card.json").write_text(json.dumps({"format": card}))
    (folder / "one" / "program" / "program.json").write_text(json.dumps({"format": program}))


def test_a_card_of_another_release_names_both_formats(tmp_path: Path) -> None:
    model_of_another_release(tmp_path, card="sphynx-model/9")
    with pytest.raises(InputError, match=r"'sphynx-model/9'; this version reads 'sphynx-model/1'") as refused:
        load_card("one", tmp_path)
    assert "pip install . ./models" in refused.value.remedy


@pytest.mark.parametrize(
    ("version", "message"),
    [(99, "it is of format version 99; this installation reads up to"), (0, "its format is 'sphynx-program/0', not")],
)
def test_a_program_of_another_release_is_refused_before_anything_else_of_it(
    version: int, message: str, tmp_path: Path
) -> None:
    """Newer models with an older sphynx, and the reverse."""
    model_of_another_release(tmp_path, program=f"sphynx-program/{version}")
    ways: tuple[Callable[[], Path], ...] = (
        lambda: program_path("one", tmp_path),
        lambda: compiled_folder("one", lambda _: None, tmp_path),
    )
    for way in ways:
        with pytest.raises(InputError, match=message) as refused:
            load_program(way())
        assert "program.json" in refused.value.where and "sphynx" in refused.value.remedy


@pytest.mark.parametrize("name", model_names())
def test_models_that_are_installed_are_of_this_release(name: str) -> None:
    assert load_card(name)["name"] == name and load_program(program_path(name)).relu_count


def test_a_network_with_a_warning_gives_it_beside_its_answers() -> None:
    warning = warning_of("stream-chest-xray-11k")
    assert "not a medical device" in warning and warning_of("digits") == ""
    record = AnswerRecord(datetime(2026, 1, 1), "stream-chest-xray-11k", "00", "here", "semi-honest", ())
    assert warning in record.to_html() and "Warning" not in replace(record, network="digits").to_html()
