"""Builds the wheels of the committed source twice, in two folders, and tries them: `make wheels`.

The two builds are equal byte for byte, the client's wheel is small, and in empty environments, one without and one with
torch, a wheel plans a network, makes keys, serves, and asks over TLS between two processes (smoke.py). Servers and
clients of both environments meet each other.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
SMOKE = Path(__file__).with_name("smoke.py")
MODEL = "stream-cifar100-25k"
MOST_CLIENT_BYTES = 4_000_000


def main() -> None:
    arguments = argparse.ArgumentParser(prog="python -m tests.wheels", description=__doc__)
    arguments.add_argument("--out", type=Path, default=ROOT / "dist", help="where the wheels go")
    arguments.add_argument("--python", default=sys.executable, help="the interpreter to build for")
    arguments.add_argument("--once", action="store_true", help="do not build a second time")
    arguments.add_argument("--without-torch", action="store_true", help="only build, install and plan")
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        client, models = build_and_compare(given.python, folder, given.out, once=given.once)
        small = environment(given.python, folder / "small", f"{client}[serve]")
        smoke(small, "plan")
        print("installed without torch: plan works", flush=True)
        if not given.without_torch:
            large = environment(given.python, folder / "large", f"{client}[serve,design]", str(models))
            smoke(large, "plan")
            ask_across(small, large, folder)


def build_and_compare(python: str, folder: Path, out: Path, *, once: bool) -> tuple[Path, Path]:
    """The client's wheel and the models', in `out`."""
    out.mkdir(parents=True, exist_ok=True)
    builds = [build(python, folder / name) for name in (("first",) if once else ("first", "in/another/folder"))]
    for wheels in builds[1:]:
        if [digest(wheel) for wheel in wheels] != [digest(wheel) for wheel in builds[0]]:
            for number, wheel in enumerate((*builds[0], *wheels)):
                shutil.copy(wheel, out / f"{number}-{wheel.name}.differs")
            raise SystemExit(f"two builds differ: compare the .differs files in {out}")
    kept = [Path(shutil.copy(wheel, out)) for wheel in builds[0]]
    for wheel in kept:
        print(f"{digest(wheel)}  {wheel.name}  {wheel.stat().st_size:,} bytes, {len(builds)} builds", flush=True)
    if kept[0].stat().st_size > MOST_CLIENT_BYTES:
        raise SystemExit(f"{kept[0].name} is larger than {MOST_CLIENT_BYTES:,} bytes")
    return kept[0], kept[1]


def build(python: str, folder: Path) -> list[Path]:
    """Build sphynx-inference, then sphynx-models, from a copy of the committed source below `folder`."""
    source, wheels = folder / "source", folder / "wheels"
    source.mkdir(parents=True)
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, check=True, capture_output=True).stdout
    subprocess.run(["tar", "-x"], cwd=source, input=archive, check=True)
    when = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, check=True, capture_output=True, text=True)
    command = [python, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(wheels)]
    made = os.environ | {"SOURCE_DATE_EPOCH": when.stdout.strip()}
    for project in (source, source / "models"):
        subprocess.run([*command, str(project)], env=made, check=True, cwd=folder)
    return sorted(wheels.glob("*.whl"), key=lambda wheel: "models" in wheel.name)


def digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def environment(python: str, folder: Path, *packages: str) -> Path:
    """Its Python: an empty environment with these alone."""
    subprocess.run([python, "-m", "venv", str(folder)], check=True)
    constraints = ["-c", str(ROOT / "constraints.txt")]
    own = folder / "bin" / "python"
    subprocess.run([own, "-m", "pip", "install", "--quiet", *constraints, *packages], check=True, cwd=folder)
    return own


def smoke(python: Path, *words: str | Path) -> str:
    """In an empty folder, so that nothing of the source is found by chance."""
    with tempfile.TemporaryDirectory() as folder:
        return subprocess.run([python, SMOKE, *words], cwd=folder, check=True, stdout=subprocess.PIPE, text=True).stdout


def ask_across(small: Path, large: Path, folder: Path) -> None:
    """Torch derives a model's integer weights; then each environment serves the other."""
    compiled, keys = folder / "compiled", folder / "keys"
    smoke(large, "derive", MODEL, compiled)
    smoke(small, "keys", keys)
    for number, (server, client) in enumerate(((small, large), (large, small), (small, small))):
        port = folder / f"port{number}"
        words: Sequence[str | Path] = [server, SMOKE, "serve", compiled, keys / "server", port]
        with subprocess.Popen(words, cwd=folder, stdin=subprocess.PIPE) as serving:
            try:
                print(smoke(client, "ask", keys / "alice", port, compiled), end="", flush=True)
            finally:
                assert serving.stdin is not None
                serving.stdin.close()


if __name__ == "__main__":
    main()
