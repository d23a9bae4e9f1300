"""The names of `import sphynx`: found lazily, hidden by nothing, the same for type checkers as when running."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import sphynx

FACE = Path(sphynx.__file__)


def python(code: str) -> str:
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.strip()


def submodules() -> list[str]:
    found = pkgutil.walk_packages([str(FACE.parent)], "sphynx.")
    return [module.name for module in found if not module.name.endswith("__main__")]


def test_importing_the_package_loads_neither_torch_nor_numpy() -> None:
    heavy = "('torch', 'numpy', 'rich', 'typer', 'PIL')"
    assert python(f"import sys, sphynx; print([m for m in {heavy} if m in sys.modules])") == "[]"


def test_every_name_is_what_it_was_after_every_submodule_is_imported() -> None:
    before = {name: getattr(sphynx, name) for name in sphynx.__all__}
    for module in submodules():
        if module != "sphynx.run.ray_sweep" or find_spec("ray") is not None:  # an extra that tests do without
            importlib.import_module(module)
    assert len(submodules()) > 200
    assert {name: getattr(sphynx, name) for name in sphynx.__all__} == before
    assert not {module.split(".")[1] for module in submodules()} & set(sphynx.__all__)


def test_type_checkers_see_the_same_names_from_the_same_places() -> None:
    """The names below `if TYPE_CHECKING` are those that `__getattr__` finds, and all of them are in `__all__`."""
    tree = ast.parse(FACE.read_text())
    guarded = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {
        alias.asname or alias.name: node.module
        for node in guarded.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert seen == sphynx._DEFINED_IN
    assert set(seen) < set(sphynx.__all__) == set(dir(sphynx))
    assert sphynx.__all__ == sorted(sphynx.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="networks"):
        _ = sphynx.networks


@pytest.mark.parametrize("name", sphynx.__all__)
def test_every_name_is_documented(name: str) -> None:
    value = getattr(sphynx, name)
    if not callable(value):
        return
    assert inspect.getdoc(value)
    if isinstance(value, type) and value.__module__.startswith("sphynx.api"):
        public = [member for key, member in vars(value).items() if not key.startswith("_") and callable(member)]
        assert not [member.__qualname__ for member in public if not inspect.getdoc(member)]


def test_what_needs_torch_says_so_where_there_is_none() -> None:
    code = (
        "import sys; sys.modules['torch'] = None\nimport sphynx\n"
        "print(sphynx.plan('25.6k').design.relus, sphynx.Compiled.__name__)\n"
        "try: sphynx.evaluate_network\nexcept sphynx.MissingPartError as error: print(error, '|', error.remedy)"
    )
    assert python(code).splitlines() == [
        "25600 Compiled",
        "sphynx.evaluate_network needs the package torch | pip install '.[design]' in a clone of Sphynx",
    ]
