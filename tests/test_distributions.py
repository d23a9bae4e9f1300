"""Contents of the two distributions, without building them (`make wheels` does), and what comes with a release."""

import json
import re
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import sphynx
from sphynx.data.catalogue import CATALOGUE
from sphynx.data.sample_pictures import sample_photographs
from sphynx.space.published_cells import GENOTYPES
from sphynx.zoo.shipped import load_card, model_names

ROOT = Path(__file__).parents[1]
BUILT = {".pyc", ".so", ".dylib", ".pyd"}  # made on this machine, or by the wheel's own build
MOST_BYTES = 3_000_000  # of a client's wheel before it is compressed, the compiled core left out


def settings(folder: Path) -> Any:
    return tomllib.loads((folder / "pyproject.toml").read_text())


LICENCES = {
    "MIT": "LICENSE",
    "Apache-2.0": "LICENSES/Apache-2.0.txt",
    "CC-BY-2.0": "https://creativecommons.org/licenses/by/2.0/",
}


def files_of(folder: Path) -> list[Path]:
    (package,) = settings(folder)["tool"]["scikit-build"]["wheel"]["packages"]
    return [file for file in (folder / package).rglob("*") if file.is_file() and file.suffix not in BUILT]


def test_a_clients_wheel_has_no_weights() -> None:
    files = files_of(ROOT)
    assert not [file for file in files if file.suffix in {".safetensors", ".pt", ".onnx", ".npz"}]
    assert sum(file.stat().st_size for file in files) < MOST_BYTES
    assert any(file.name == "py.typed" for file in files)


def test_the_models_wheel_has_whole_models_and_no_code() -> None:
    files = files_of(ROOT / "models")
    assert [file.name for file in files if file.suffix == ".py"] == ["__init__.py"]
    folder = next(file.parent for file in files if file.name == "__init__.py")
    for name in model_names(folder):
        assert {str(file.relative_to(folder / name)) for file in files if file.is_relative_to(folder / name)} == {
            "card.json",
            "design.json",
            "model.safetensors",
            "normalisation.json",
            "program/program.json",
            "program/corrections.safetensors",
        }
    assert len(model_names(folder)) >= 2


def test_the_version_is_in_one_place() -> None:
    project = settings(ROOT)
    assert "version" not in project["project"] and project["project"]["dynamic"] == ["version"]
    where = project["tool"]["scikit-build"]["metadata"]["version"]["input"]
    # As scikit-build-core's provider looks for it.
    found = re.search(
        r'^(__version__|VERSION)(?: ?\: ?str)? *= *([\'"])v?(?P<value>.+?)\2', (ROOT / where).read_text(), re.M
    )
    assert found is not None and found["value"] == sphynx.__version__


def test_all_that_a_server_installs_is_pinned_with_hashes() -> None:
    """Its image takes nothing else. What needs torch is pinned by version alone: its builds have different hashes."""
    lock = (ROOT / "deploy" / "requirements.txt").read_text()
    pins = re.findall(r"^([\w.-]+)==\S+(.*(?:\n    .*)*)", lock, re.M)
    project = settings(ROOT)["project"]
    lines = project["dependencies"] + project["optional-dependencies"]["serve"]
    needed = {canonicalize_name(Requirement(line).name) for line in lines}
    missing = needed - {canonicalize_name(name) for name, _ in pins}
    assert not missing, f"{missing}: run `make lock`"
    assert all("--hash=sha256:" in hashes for _, hashes in pins)
    assert "--require-hashes -r /wheels/requirements.txt" in (ROOT / "deploy" / "Dockerfile").read_text()
    assert "torch==" in (ROOT / "constraints.txt").read_text()


def test_an_image_is_made_from_the_sources_of_the_wheel_alone() -> None:
    """A clone often has keys in it, and an environment of gigabytes."""
    project, lines = settings(ROOT), (ROOT / ".dockerignore").read_text().splitlines()
    given = {line.removeprefix("!") for line in lines if line.startswith("!")}
    (package,) = project["tool"]["scikit-build"]["wheel"]["packages"]
    assert lines[1] == "*" and "**/*.so" in lines
    assert given == {
        *("CMakeLists.txt", "core", "deploy/requirements.txt", "pyproject.toml"),
        *(project["project"]["readme"], *project["project"]["license-files"], package.partition("/")[0]),
    }


def test_what_others_made_is_credited() -> None:
    """Both distributions carry the licence and the notice; each card says on what terms its data were published."""
    notice = (ROOT / "NOTICE").read_text()
    photographs = [path.stem for path in sample_photographs()]
    for folder in (ROOT, ROOT / "models"):
        assert {"LICENSE", "NOTICE"} <= set(settings(folder)["project"]["license-files"])
        assert (folder / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()
        assert (folder / "NOTICE").read_text() == notice
    assert all(re.search(rf"\b{name}\b", notice) for name in (*GENOTYPES, *photographs))
    for name in model_names():
        card = load_card(name)
        known = CATALOGUE.get(card["data"]["name"])
        assert card["terms"] == known.terms if known else card["terms"].startswith("CC BY")


def test_every_file_has_a_licence_and_who_is_named_is_credited() -> None:
    rules = tomllib.loads((ROOT / "REUSE.toml").read_text())["annotations"]
    assert rules[0]["path"] == "**" and rules[0]["SPDX-License-Identifier"] == "MIT"  # so that every file has one
    notice, licence = ((ROOT / name).read_text() for name in ("NOTICE", "LICENSE"))
    used = {name for rule in rules for name in rule["SPDX-License-Identifier"].split(" AND ")}
    assert used == set(LICENCES)
    shipped = settings(ROOT)["project"]["license-files"]
    for where in LICENCES.values():  # its text is in the distribution, or its address, where it asks for no more
        assert where in notice if where.startswith("https:") else where in shipped and (ROOT / where).is_file()
    ours = "2026 The Sphynx maintainers"
    assert rules[0]["SPDX-FileCopyrightText"] == ours and ours in licence
    for rule in rules[1:]:
        paths = rule["path"] if isinstance(rule["path"], list) else [rule["path"]]
        assert all((ROOT / path).is_file() for path in paths)
        others = [holder for holder in rule["SPDX-FileCopyrightText"] if holder != ours]
        names = [name for holder in others for name in re.sub(r"^\d{4} ", "", holder).split(", ")]
        assert others and all(name in " ".join(notice.split()) for name in names)
    shown = {path for rule in rules if "CC-BY" in rule["SPDX-License-Identifier"] for path in rule["path"]}
    assert {f"docs/images/app.{kind}" for kind in ("png", "webp")} <= shown


def test_a_bill_of_materials_names_all_that_a_server_installs() -> None:
    ran = subprocess.run(
        [sys.executable, str(ROOT / ".ci" / "sbom.py"), "numpy"], capture_output=True, text=True, check=True
    )
    bill = json.loads(ran.stdout)
    assert bill["metadata"]["component"]["name"] == "numpy" and bill["bomFormat"] == "CycloneDX"
    made = runpy.run_path(str(ROOT / ".ci" / "sbom.py"))["bill"]("typer", set())
    names = {part["name"] for part in made["components"]}
    assert {"rich", "markdown-it-py"} <= names  # what rich needs is in it as well
    references = {made["metadata"]["component"]["bom-ref"], *(part["bom-ref"] for part in made["components"])}
    assert references == {entry["ref"] for entry in made["dependencies"]}
    assert all(set(entry["dependsOn"]) <= references for entry in made["dependencies"])


def test_the_size_of_the_models_is_told_as_it_is() -> None:
    folder = ROOT / "models" / "src" / "sphynx_models"
    size_mb = sum(file.stat().st_size for file in folder.rglob("*") if file.suffix in (".safetensors", ".json")) / 1e6
    for page, pattern in (("README.md", r"trained networks \((\d+) MB\)"), ("models/README.md", r"take (\d+) MB")):
        found = re.search(pattern, (ROOT / page).read_text())
        assert found is not None and abs(int(found[1]) - size_mb) < 1, (page, size_mb)


def test_who_publishes_is_named_and_placeholders_are_named_as_such() -> None:
    for folder in (ROOT, ROOT / "models"):
        text, project = (folder / "pyproject.toml").read_text(), settings(folder)["project"]
        assert project["authors"] and project["classifiers"]
        urls = project["urls"].values()
        assert all(".invalid/" in url for url in urls) == ("placeholder" in text)
    security = (ROOT / "SECURITY.md").read_text()
    assert ("@sphynx.invalid" in security) == ("a placeholder:" in security)


def test_the_citation_names_this_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == sphynx.__version__
    assert f"\n## {sphynx.__version__} - {citation['date-released']}\n" in (ROOT / "CHANGELOG.md").read_text()


def test_wheels_are_made_for_both_kinds_of_cpu_and_every_python() -> None:
    made = settings(ROOT)["tool"]["cibuildwheel"]
    assert (made["linux"]["archs"], made["macos"]["archs"]) == (["x86_64", "aarch64"], ["arm64"])
    pythons = ("cp311", "cp312", "cp313")
    assert made["build"] == [f"{python}-{system}" for system in ("manylinux_*", "macosx_arm64") for python in pythons]
