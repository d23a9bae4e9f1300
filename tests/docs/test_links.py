"""Every relative link of the README and the pages leads to a file that is there, and to its heading if it names one."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"\]\(([^)\s]+)\)")
PATH = re.compile(r"`([\w*/]+(?:/[\w*]*|\.py|\.csv))`")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """As GitHub makes them: small letters, spaces to dashes, punctuation gone."""
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in HEADING.findall(page.read_text())}


def fault(page: Path, link: str) -> str:
    if re.match(r"[a-z]+:", link):
        return ""  # another site; nothing is asked from the network here
    path, _, anchor = link.partition("#")
    target = (page.parent / path).resolve() if path else page
    if not target.exists() or not target.is_relative_to(ROOT.resolve()):
        return f"{link}: no such file"
    return f"{link}: no such heading" if anchor and anchor not in anchors(target) else ""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links(page: Path) -> None:
    assert not [found for link in LINK.findall(page.read_text()) if (found := fault(page, link))]


def test_every_page_is_in_the_table_of_contents() -> None:
    listed = set(LINK.findall((ROOT / "docs" / "index.md").read_text()))
    pages = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")}
    assert pages - listed == {"index.md"}


def test_every_path_on_the_map_of_the_code_exists() -> None:
    table = (ROOT / "docs" / "architecture.md").read_text().split("## Where things are")[1].split("\n## ")[0]
    paths = PATH.findall(table)
    assert len(paths) > 40
    assert not [path for path in paths if not any([*(ROOT / "src/sphynx").glob(path), *ROOT.glob(path)])]


def test_every_file_on_the_way_of_a_run_exists() -> None:
    way = (ROOT / "docs" / "architecture.md").read_text().split("## A run on its way")[1].split("\n## ")[0]
    files = re.findall(r"[\w/]+\.py", way)
    assert len(files) > 20
    assert not [file for file in files if not (ROOT / "src/sphynx" / file).is_file()]


def test_layers_and_walls_on_the_page_are_those_that_are_checked() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    layers, verbs, _, wing, client, shipped = settings["contracts"]
    picture = page.split("## Layers")[1].split("    core/ (C++20")[0]
    checked = [name.strip().removeprefix("sphynx.") for row in layers["layers"] for name in row.split("|")]
    assert re.findall(r"^    (\w+) ", picture, re.MULTILINE) == checked
    without_torch, without_core = (
        set(re.findall(r"`(\w+)`", wall)) for wall in page.split("## Where")[0].split("\n- ")[1:3]
    )
    assert without_core == {name.removeprefix("sphynx.") for name in wing["source_modules"]}
    files = {f"sphynx.cli.{file.stem}" for file in (ROOT / "src" / "sphynx" / "cli").glob("*.py")}
    assert set(verbs["modules"]) < files
    assert without_torch == {name.split(".")[-1] for name in client["source_modules"]}
    (derived,) = re.findall(r"^- Shipped models are derived without torch: (.*)\.$", page, re.MULTILINE)
    named = {f"sphynx.{path.replace('/', '.')}" for path in re.findall(r"`([\w/]+)`", derived)}
    assert named == set(shipped["source_modules"])


def test_every_room_of_the_package_is_a_layer() -> None:
    (layers, *_) = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    checked = {name.strip().removeprefix("sphynx.") for row in layers["layers"] for name in row.split("|")}
    package = ROOT / "src" / "sphynx"
    rooms = {file.parent.name for file in package.glob("*/__init__.py")} | {file.stem for file in package.glob("*.py")}
    assert rooms - {"__init__", "__main__"} == checked  # the package itself, and its command line by another name


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    page = ROOT / "docs" / "index.md"
    assert "no such file" in fault(page, "absent.md")
    assert "no such file" in fault(page, str(tmp_path))
    assert "no such heading" in fault(page, "serving.md#no-heading-like-this")
    assert not fault(page, "serving.md#on-the-wire")
