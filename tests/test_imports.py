"""No circles of imports: a module can be read with what it imports, and nothing that imports it.

The graph is read from the source, with imports inside functions and those for types alone (TYPE_CHECKING), which only
hide a circle. A package counts as its `__init__` module; `sphynx` itself, which names what it offers, does not count.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import sphynx

SOURCE = Path(sphynx.__file__).parent


def module_files() -> dict[str, Path]:
    files = {}
    for path in SOURCE.rglob("*.py"):
        parts = path.relative_to(SOURCE.parent).with_suffix("").parts
        files[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return files


def imported_names(node: ast.AST) -> Iterator[str]:
    """Whatever may be a module: `from a import b` imports a, and a.b where that is one."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        assert node.module is not None and node.level == 0, "imports are absolute here"
        yield node.module
        yield from (f"{node.module}.{alias.name}" for alias in node.names)
    else:
        for child in ast.iter_child_nodes(node):
            yield from imported_names(child)


def import_graph() -> dict[str, set[str]]:
    files = module_files()
    return {
        module: {name for name in imported_names(ast.parse(path.read_text())) if name in files and name != module}
        for module, path in files.items()
        if module != "sphynx"
    }


def test_no_module_imports_what_imports_it() -> None:
    graph = import_graph()
    assert "sphynx.core.ring" in graph["sphynx.protocol.linear"]  # the graph is read at all
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as circle:
        raise AssertionError("a circle of imports: " + " <- ".join(circle.args[1])) from None


def test_imports_within_functions_and_those_for_types_count() -> None:
    source = "if TYPE_CHECKING:\n    import a\nelse:\n    import b\ndef f():\n    from c import d\n"
    assert list(imported_names(ast.parse(source))) == ["a", "b", "c", "c.d"]
