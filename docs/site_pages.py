"""Pages of the documentation site beside docs/: those of the repository's root, and the examples as pages.

A hook of mkdocs (mkdocs.yml). Links are written for the repository; here each is turned into the link between the
pages of the site that show the same files. Headings get the anchors that the repository's view gives them, and examples
in docstrings (>>> lines) are shown as code.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path, PurePosixPath
from textwrap import dedent

from markdown import Markdown
from markdown.extensions import Extension
from markdown.preprocessors import Preprocessor
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
ROOT_PAGES = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
LINK = re.compile(r"\[([^\[\]]*)\]\(([^)\s]+)\)")
EXAMPLE = re.compile(r"^ *>>> .*\n(?:.*\S.*\n)*", re.MULTILINE)
# In the site's search, pages that say what a thing is come before those that list where its name occurs.
# docs/search_site.py tries it.
PLAINLY, EXPLAINING, LISTING = 9.0, 3.0, 0.4
BOOSTS = {
    "privacy.md": PLAINLY,
    **dict.fromkeys(("protocol.md", "getting-started.md", "serving.md", "app.md", "stream.md"), EXPLAINING),
    **dict.fromkeys(("results/paper.md", "results/rules.md", "results/stream.md", "results/zoo.md"), LISTING),
    **dict.fromkeys(("CHANGELOG.md", "reference.md", "python-reference.md", "experiments.md", "searches.md"), LISTING),
}
BEFORE_FENCES = 28  # markdown's priority: whitespace is 30, pymdownx.superfences 25
TITLE = re.compile(r"^# (.+)$", re.MULTILINE)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    config.mdx_configs.setdefault("toc", {})["slugify"] = anchor
    config.markdown_extensions.append(ExamplesAsCode())  # type: ignore[arg-type]
    return config


class ExamplesAsCode(Extension):
    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802
        md.preprocessors.register(_Examples(md), "examples", BEFORE_FENCES)


class _Examples(Preprocessor):
    def run(self, lines: list[str]) -> list[str]:
        text = "\n".join(lines) + "\n"
        return EXAMPLE.sub(lambda found: f"```pycon\n{without_marks(found[0])}```\n", text).split("\n")


def without_marks(example: str) -> str:
    return re.sub(r"  # doctest: .*", "", dedent(example))


def anchor(title: str, separator: str) -> str:
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", separator)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for name in ROOT_PAGES:
        files.append(File.generated(config, name, content=(ROOT / name).read_text()))
    for example in sorted(ROOT.glob("examples/*.py")):
        files.append(File.generated(config, site_path(f"examples/{example.name}"), content=of_script(example)))
    for notebook in sorted(ROOT.glob("examples/*.ipynb")):
        files.append(File.generated(config, site_path(f"examples/{notebook.name}"), content=of_notebook(notebook)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    del config, files
    source = page.file.src_uri
    if source in BOOSTS:
        page.meta.setdefault("search", {})["boost"] = BOOSTS[source]
    in_repository = source if source in ROOT_PAGES else f"docs/{source}"
    return LINK.sub(lambda found: relinked(found[1], found[2], in_repository, source), markdown)


def relinked(text: str, link: str, in_repository: str, source: str) -> str:
    """A link of a file of the repository as one of the page that shows it; a file's name becomes the page's title."""
    path, hash_sign, heading = link.partition("#")
    if not path or re.match(r"[a-z]+:", link):
        return f"[{text}]({link})"
    target = os.path.normpath(PurePosixPath(in_repository).parent / path)
    if target.endswith(".md") and PurePosixPath(text).name == PurePosixPath(target).name:
        text = title_of(ROOT / target)
    there = os.path.relpath(site_path(target), PurePosixPath(source).parent)
    return f"[{text}]({there}{hash_sign}{heading})"


def title_of(page: Path) -> str:
    found = TITLE.search(page.read_text())
    return found[1] if found else page.stem


def site_path(target: str) -> str:
    """The page or file of the site that shows a file of the repository."""
    if target == "README.md":
        return "index.md"
    if target.startswith("examples/"):
        return str(PurePosixPath(target).with_suffix(".md"))
    return target.removeprefix("docs/")


def of_script(script: Path) -> str:
    return f"# {script.name}\n\n`examples/{script.name}`\n\n```python\n{script.read_text()}```\n"


def of_notebook(notebook: Path) -> str:
    cells = [
        f"```python\n{text}\n```" if cell["cell_type"] == "code" else text
        for cell in json.loads(notebook.read_text())["cells"]
        if (text := "".join(cell["source"]))
    ]
    return "\n\n".join([*cells, f"This page is the notebook `examples/{notebook.name}`."]) + "\n"
