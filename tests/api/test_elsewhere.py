"""A client where the system has less than Linux: as on macOS, and without any locks on files."""

import ast
import subprocess
import sys
from pathlib import Path

import numpy as np
from PIL import Image

import sphynx
import sphynx.system

SOURCES = Path(sphynx.__file__).parent
ONLY_SOME_SYSTEMS_HAVE = {"fcntl", "termios", "resource", "pwd", "grp", "msvcrt", "winreg"}

AS_ON_MACOS = """
import fcntl, os, sys
from pathlib import Path

def hide(module, *beginnings):
    for name in [name for name in dir(module) if name.startswith(beginnings)]:
        delattr(module, name)

def refuse(event, given):
    if event == "open" and str(given[0]).startswith(("/proc", "/dev/shm", "/sys")):
        opened.append(given[0])
        raise FileNotFoundError(given[0])

opened = []
hide(os, "memfd_", "MFD_", "sched_", "pidfd_", "eventfd", "EFD_", "splice", "copy_file_range", "posix_fallocate")
hide(fcntl, "F_ADD_SEALS", "F_GET_SEALS", "F_SEAL_", "F_OFD_")
sys.addaudithook(refuse)
from sphynx import system
system.BOOT_ID = system.MOUNTS = system.SHARED_MEMORY = Path("/there is no such thing")
del opened[:]  # other packages have looked
"""


def test_only_one_module_knows_what_only_some_systems_have() -> None:
    for path in sorted(SOURCES.rglob("*.py")):
        if path == Path(sphynx.system.__file__):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            where = f"{path.relative_to(SOURCES)}:{getattr(node, 'lineno', 0)}"
            if isinstance(node, ast.Import):
                assert not {name.name for name in node.names} & ONLY_SOME_SYSTEMS_HAVE, where
            if isinstance(node, ast.ImportFrom):
                assert node.module not in ONLY_SOME_SYSTEMS_HAVE, where
            if isinstance(node, ast.Attribute):
                assert not node.attr.startswith(("memfd_", "MFD_", "pidfd_", "eventfd")), where
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                assert not node.value.startswith(("/proc", "/dev/shm", "/sys")), where


def run(code: str, folder: Path) -> str:
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=folder)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_a_client_asks_with_what_macos_has(
    server: sphynx.Server, tiny: sphynx.Compiled, authority: Path, tmp_path: Path
) -> None:
    image = np.random.default_rng(5).integers(0, 256, (4, 4), np.uint8)
    Image.fromarray(image).save(tmp_path / "cat.png")
    asks = f"""
import sphynx
with sphynx.Client({server.address!r}, keys={str(authority / "alice")!r}, state="bundles") as client:
    client.prepare(2)
    print(*client.infer("cat.png").logits, *client.infer("cat.png").logits)
assert not opened, opened
"""
    logits = tiny.infer(image[None, None])[0]
    assert [float(word) for word in run(AS_ON_MACOS + asks, tmp_path).split()] == [*logits, *logits]


def test_the_verb_asks_with_what_macos_has(server: sphynx.Server, authority: Path, tmp_path: Path) -> None:
    Image.fromarray(np.zeros((4, 4), np.uint8)).save(tmp_path / "cat.png")
    words = ["sphynx", "infer", "cat.png", "--server", server.address, "--keys", str(authority / "alice"), "--json"]
    verb = f"from sphynx.cli.main import main\nsys.argv = {words!r}\nmain()\n"
    assert '"labels"' in run(AS_ON_MACOS + verb, tmp_path)


def test_without_locks_a_client_can_be_imported_and_says_what_it_lacks(
    server: sphynx.Server, authority: Path, tmp_path: Path
) -> None:
    code = f"""
import sys
sys.modules.update(dict.fromkeys({sorted(ONLY_SOME_SYSTEMS_HAVE)!r}))
import sphynx, sphynx.cli.main, sphynx.cli.infer
print(sphynx.plan(25_000).plans[0].relus)
try:
    sphynx.Client({server.address!r}, keys={str(authority / "alice")!r}, state="bundles").prepare(1)
except sphynx.MissingPartError as error:
    print(error.remedy)
"""
    count, remedy = run(code, tmp_path).splitlines()
    assert int(count) and "Linux or macOS" in remedy
