"""Writes the README as a page of the width that hosts of repositories give it, to be measured and looked at.

python docs/render_readme.py out/readme.html        (needs the packages of the docs)
"""

from __future__ import annotations

import sys
from pathlib import Path

import markdown

ROOT = Path(__file__).parents[1]
# As on the page of a repository: 838 pixels of text; code and tables scroll by themselves.
STYLE = """
body { box-sizing: border-box; font: 16px/1.5 system-ui, sans-serif; margin: 1rem auto; max-width: 870px;
  overflow-wrap: break-word; padding: 0 16px }
pre { background: #f6f8fa; font-size: 13.6px; overflow: auto; padding: 16px }
table { border-collapse: collapse; display: block; max-width: 100%; overflow: auto; width: max-content }
td, th { border: 1px solid #d0d7de; padding: 6px 13px }
img { max-width: 100% }
"""


def main() -> None:
    text = (ROOT / "README.md").read_text()
    body = markdown.markdown(text, extensions=["tables", "pymdownx.superfences"])
    body = body.replace('src="docs/', f'src="{(ROOT / "docs").as_uri()}/')
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><style>{STYLE}</style>'
    out = Path(sys.argv[1])
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(f"<!doctype html><title>README</title>{head}<main>{body}</main>\n")


if __name__ == "__main__":
    main()
