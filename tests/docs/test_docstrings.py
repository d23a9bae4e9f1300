"""Every public name has a docstring with an example, and the examples run, but for those that say they take long.

They run in one folder, which has what they name: a trained and a compiled digits network, keys, a picture.
"""

from __future__ import annotations

import ast
import doctest
import inspect
from pathlib import Path

import pytest

import sphynx
from sphynx.data.picture import save_picture
from sphynx.service import keys
from sphynx.space.cell import cell
from sphynx.space.genotype import Genotype

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
EXAMPLES_THAT_RUN = 25


def docstring(name: str) -> str:
    if name == "__version__":  # a string has its type's docstring: this one stands below it
        module = ast.parse((Path(sphynx.__file__).parent / "version.py").read_text())
        return str(ast.literal_eval(ast.unparse(module.body[-1])))
    return vars(sphynx).get(name, getattr(sphynx, name)).__doc__ or ""


def parsed(name: str) -> doctest.DocTest:
    return doctest.DocTestParser().get_doctest(
        inspect.cleandoc(docstring(name)), {"sphynx": sphynx}, f"sphynx.{name}", None, 0
    )


@pytest.mark.parametrize("name", sphynx.__all__)
def test_a_public_name_is_documented_with_an_example(name: str) -> None:
    assert not docstring(name).startswith(f"{name}("), "a dataclass without a docstring"
    assert "sphynx." in "".join(example.source for example in parsed(name).examples)


def test_the_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    cells = Genotype(cell("conv3 0, skip 1"), cell("skip 0, avg_pool 1"))  # quick to compile
    chosen = sphynx.plan("500", image=(1, 8, 8), classes=10, cells=cells).design
    chosen.save("design.json")
    sphynx.train_network(chosen, "digits", out="runs/digits", settings={"epochs": 1})
    sphynx.compile_network("runs/digits").save("compiled/digits")
    keys.init(Path("keys"))
    keys.issue(Path("keys"), "server", hosts=["127.0.0.1"])
    keys.issue(Path("keys"), "alice")
    save_picture(sphynx.open_data("digits").test.images[0].numpy(), Path("digit.png"))
    runner, said = doctest.DocTestRunner(optionflags=FLAGS), list[str]()
    for name in sphynx.__all__:
        runner.run(parsed(name), out=said.append)
    assert not runner.failures, "".join(said)
    ran = [name for name in sphynx.__all__ if any(not e.options.get(doctest.SKIP) for e in parsed(name).examples)]
    assert len(ran) >= EXAMPLES_THAT_RUN, ran
