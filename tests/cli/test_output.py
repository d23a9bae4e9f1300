"""Tables print what they are given, whoever chose it."""

import pytest

from sphynx.cli.output import print_table


@pytest.mark.parametrize("name", ["[dog]", "[/oops]", "[link=http://example.com]cat[/link]", ":cat:", "[bold]x"])
def test_names_are_printed_as_they_are(capsys: pytest.CaptureFixture[str], name: str) -> None:
    print_table(f"About {name}", ["image", "label"], [["a.png", name]], note=f"Note {name}")
    printed = capsys.readouterr().out
    assert printed.count(name) == 3 and "\x1b" not in printed
