"""The first example of bring-a-network.md runs as it stands, without a download."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "bring-a-network.md"


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_its_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    (example,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    exec(compile(example, str(PAGE), "exec"), {})
    assert capsys.readouterr().out == "() 128\n"
    assert (tmp_path / "compiled/mine/program.json").is_file()
    assert PAGE.read_text().index("sphynx inspect") < PAGE.read_text().index("sphynx compile")
