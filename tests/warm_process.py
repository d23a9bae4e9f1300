"""Commands as processes of their own that need not import everything anew: importing torch takes longer than most.

A parent process without threads imports what the commands use, then forks for each of them. `Warm.programs` is a folder
of small programs, `sphynx` and `python`, which hand it their words, folder, environment and streams, pass on SIGINT and
SIGTERM, and end as the command ends. What is about imports or about being killed needs a process that started cold.
"""

from __future__ import annotations

import array
import atexit
import gc
import json
import os
import runpy
import select
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import typer.main

ROOT = Path(__file__).parents[1]
IMPORTED = (
    "torch.utils.data",
    "torch._dynamo",  # by the first optimizer
    "sklearn.datasets",
    "safetensors.torch",
    "cryptography.x509",
    "PIL.Image",
    "rich.table",
    "sphynx.api.designing",
    "sphynx.api.searching",
    "sphynx.api.training",
    "sphynx.api.networks",
    "sphynx.compiler.compile",
    "sphynx.service.hosting",
    "sphynx.service.client",
    "sphynx.service.keys",
)
SPHYNX = "sphynx"
PROGRAM = """#!{python} -SE
import array, json, os, signal, socket, sys
link = socket.socket(socket.AF_UNIX)
link.connect({address!r})
asked = json.dumps([[*{words!r}, *sys.argv[1:]], os.getcwd(), dict(os.environ)]).encode()
asked = len(asked).to_bytes(4, "big") + asked
sent = link.sendmsg([asked], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0, 1, 2]))])
link.sendall(asked[sent:])
command = int.from_bytes(link.recv(4), "big")
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda number, _frame: os.kill(command, number))
sys.exit(int.from_bytes(link.recv(4), "big"))
"""


@cache
def built_once(app: typer.Typer) -> Callable[..., Any]:
    """All verbs and their options, always the same: typer makes them anew for each command, in a fifth of a second."""
    return typer.main.get_command(app)


class Warm:
    """The parent process, until `close`."""

    def __init__(self, folder: Path) -> None:
        self.programs = folder / "bin"
        self.programs.mkdir()
        self._sockets = tempfile.TemporaryDirectory(
            prefix="sphynx-warm-"
        )  # a socket's address has 100 characters at most
        address = str(Path(self._sockets.name) / "commands")
        for name, words in (("python", []), (SPHYNX, [SPHYNX])):
            text = PROGRAM.format(python=sys.executable, address=address, words=words)
            (self.programs / name).write_text(text)
            (self.programs / name).chmod(0o755)
        path = f"{self.programs}{os.pathsep}{os.environ['PATH']}"
        self.environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(address)
            listener.listen(64)
            self._parent = subprocess.Popen(
                [sys.executable, __file__, str(listener.fileno())],
                env=self.environment,
                pass_fds=[listener.fileno()],
                stdin=subprocess.PIPE,
            )

    def sphynx(self, *arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        command = [str(self.programs / SPHYNX), *arguments]
        return subprocess.run(command, cwd=cwd, env=self.environment, capture_output=True, text=True, check=False)

    def close(self) -> None:
        self._parent.communicate()  # it ends when its input does
        self._sockets.cleanup()


def main(descriptor: int) -> None:
    """Forks until its input ends. Whatever is forked for a command returns from `_next`, and runs it."""
    for name in IMPORTED:
        import_module(name)
    from sphynx.cli.main import app
    from sphynx.design import timing

    timing.ENOUGH_SECONDS = 0.0  # forecasts of the fewest calls
    typer.Typer.__call__ = lambda app, *words, **options: built_once(app)(*words, **options)
    built_once(app)
    gc.freeze()
    listener = socket.socket(fileno=descriptor)
    while (link := _next(listener)) is not None:
        if not os.fork():
            listener.close()
            words = _begin(link)
            os._exit(0 if words is None else _run(words))
        link.close()


def _next(listener: socket.socket) -> socket.socket | None:
    while True:
        ready, _, _ = select.select([listener, sys.stdin], [], [], 1.0)
        while _reaped():
            pass
        if sys.stdin in ready:
            return None
        if ready:
            return listener.accept()[0]


def _reaped() -> bool:
    try:
        return os.waitpid(-1, os.WNOHANG)[0] > 0
    except ChildProcessError:
        return False


def _begin(link: socket.socket) -> list[str] | None:
    """Fork: one of the two processes gets the words of the command, the other has told its end."""
    raw, rights, _, _ = link.recvmsg(1 << 20, socket.CMSG_SPACE(3 * 4))
    streams = array.array("i", rights[0][2])
    while len(raw) < 4 + int.from_bytes(raw[:4], "big"):
        raw += link.recv(1 << 20)
    words, folder, environment = json.loads(raw[4:])
    command = os.fork()
    if command:
        link.sendall(command.to_bytes(4, "big"))
        status = os.waitstatus_to_exitcode(os.waitpid(command, 0)[1])
        link.sendall((status if status >= 0 else 128 - status).to_bytes(4, "big"))
        return None
    link.close()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    return list(words)


def _run(words: list[str]) -> int:
    """The exit code. Its end is made by hand: to take apart all that was imported takes a second."""
    try:
        _run_main(words)
        code: object = 0
    except SystemExit as end:
        code = end.code or 0
    except BaseException:
        traceback.print_exc()
        code = 1
    for thread in threading.enumerate():
        if thread is not threading.main_thread() and not thread.daemon:
            thread.join()
    atexit._run_exitfuncs()
    if not isinstance(code, int):
        print(code, file=sys.stderr)
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    return code


def _run_main(words: list[str]) -> None:
    sys.path[0] = ""
    kind, *rest = words
    if kind == SPHYNX:
        from sphynx.cli.main import main as sphynx  # as the installed program does it

        sys.argv = words
        sphynx()
    elif kind == "-m":
        sys.argv = rest
        sys.modules.pop(rest[0], None)
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif kind == "-c":
        sys.argv = ["-c", *rest[1:]]
        exec(compile(rest[0], "<string>", "exec"), {"__name__": "__main__"})
    else:
        sys.argv, sys.path[0] = words, str(Path(kind).resolve().parent)
        runpy.run_path(kind, run_name="__main__")


if __name__ == "__main__":
    main(int(sys.argv[1]))
